package rocketmq_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"mqlab/brokers"
	"mqlab/brokers/brokertest"
	"mqlab/brokers/rocketmq"
	"mqlab/brokers/rocketmq/embedded"
)

const (
	// realBroker names a RocketMQ on which the suite is run as well:
	// rocketmq://host:port of the name server.
	realBroker = "MQLAB_TEST_BROKER_ROCKETMQ"
	// childName makes this test binary a child of the suite.
	childName = "MQLAB_TEST_CHILD"
	golden    = "testdata/conformance.txt"
	// different lists what the real broker does otherwise.
	different = "testdata/differences.txt"
)

var update = flag.Bool("update", false, "write the stand-in's transcript to "+golden)

func TestMain(m *testing.M) {
	if brokertest.Child(context.Background(), rocketmq.Driver{}, os.Getenv(childName)) {
		return
	}
	goleak.VerifyTestMain(m, leaks()...)
}

// TestConformance runs the suite on the stand-in.
func TestConformance(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Options{AccessKey: "mqlab", SecretKey: "op3n/s@same"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it never fails
	got := conform(t, s.URL(), brokers.Durable, brokers.Quorum)
	if *update && !t.Failed() {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, got, "")
}

// TestConformanceOfRealBroker runs it on RocketMQ, against the same golden file.
func TestConformanceOfRealBroker(t *testing.T) {
	url := os.Getenv(realBroker)
	if url == "" {
		t.Skip(realBroker + " is not set")
	}
	if raceDetector {
		t.Skip(clientRace)
	}
	known, err := os.ReadFile(different)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, conform(t, url), string(known))
}

// clientRace is why a part of the suite is run without the race detector, which
// scripts/test.sh does.
const clientRace = "the client library's Shutdown writes a flag (internal/client.go:555) that its own rebalance reads (576): " +
	"the race detector ends the test for it"

// raced are the cases in which a client ends while it looks for a broker that
// is gone: there the library's race shows.
func raced() map[string]string {
	if !raceDetector {
		return nil
	}
	return map[string]string{"redelivery-after-cut": clientRace, "ack-after-cut": clientRace, "send-after-cut": clientRace, "goroutines": clientRace}
}

func conform(t *testing.T, url string, lacks ...brokers.Capability) (transcript string) {
	at, err := brokers.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// RocketMQ counts what was given back; of a crash it says nothing.
	first := brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1}
	brokertest.Run(t, brokertest.Subject{
		Driver: rocketmq.Driver{}, Address: at, Lacks: lacks, Transcript: &out,
		Destination: brokers.Destination{Topic: "conformance"},
		Marks:       brokertest.Marks{First: first, Again: first, Nacked: brokers.Marks{Redelivered: brokers.Yes, Attempt: 2}},
		Child: func(ctx context.Context, name string, env ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(append(os.Environ(), env...), childName+"="+name)
			return cmd
		},
		Habits: brokertest.Habits{OneAtATime: true},
		Cut:    cut,
		Skip:   raced(),
		// The stand-in's side of the connections that the client leaves open.
		Leaks: append(leaks(), goleak.IgnoreAnyFunction("mqlab/brokers/rocketmq/embedded.(*conn).read"),
			goleak.IgnoreAnyFunction("mqlab/brokers/rocketmq/embedded.(*conn).write")),
	})
	return out.String()
}

// cut goes between a client and both servers: the name server's answer leads to
// a second proxy, in front of the broker.
func cut(t *testing.T, at brokers.Address) (through brokers.Address, both func()) {
	t.Helper()
	addr, err := rocketmq.BrokerOf(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	u := at.URL()
	u.Host = addr
	broker, err := brokers.ParseAddress(u.String())
	if err != nil {
		t.Fatal(err)
	}
	proxied, cutBroker := brokertest.Cut(t, broker, nil)
	through, cutNames := brokertest.Cut(t, at, func(_, _ string) [][2][]byte {
		return [][2][]byte{{[]byte(addr), []byte(proxied.URL().Host)}}
	})
	return through, func() { cutNames(); cutBroker() }
}

// compare shows how each case differs from the golden file.
func compare(t *testing.T, transcript, known string) {
	t.Helper()
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, diff := range brokertest.Differences(string(raw), known, transcript) {
		t.Error(diff)
	}
}

// leaks are goroutines that the client (v2.1.3-0.20251226070945) leaves behind
// after Shutdown. In a role's process they end with it.
func leaks() []goleak.Option {
	const client = "github.com/apache/rocketmq-client-go/v2/"
	var options []goleak.Option
	for _, function := range []string{
		client + "internal.(*rmqClient).Start.func1.1", // sleeps 10 s before it first asks whether it is over
		client + "internal.(*rmqClient).Start.func1.2", // sleeps 10 ms likewise
		client + "internal.(*rmqClient).Start.func1.3", // sleeps 1 s likewise
		client + "internal.(*rmqClient).Start.func1.4", // sleeps 10 s likewise

		client + "internal/remote.(*remotingClient).receiveResponse", // nobody closes the connection to the name server; it idles out after 120 s

		client + "consumer.(*pushConsumer).pullMessage", // waits for the answer to its long poll, which nobody will read: 30 s

		"github.com/patrickmn/go-cache.(*janitor).Run", // started when the package is loaded

		client + "consumer.(*pushConsumer).Start.func1.2",     // sleeps the consume timeout, 15 minutes
		client + "consumer.(*statsItemSet).init.func4",        // sleeps to the next minute before it first asks whether it is over
		client + "consumer.(*statsItemSet).init.func5",        // to the next hour
		client + "consumer.(*statsItemSet).init.func6",        // to the next day
		client + "internal.(*rmqClient).RebalanceImmediately", // waits for an answer that a cut connection does not bring: 3 s
		client + "internal.(*rmqClient).RebalanceIfNotPaused", // likewise
	} {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	return options
}
