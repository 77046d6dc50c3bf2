package rabbitmq_test

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
	"mqlab/brokers/rabbitmq"
	"mqlab/brokers/rabbitmq/embedded"
)

const (
	// realBroker names a RabbitMQ on which the suite is run as well:
	// amqp://user:password@host:port?management=http://host:port.
	realBroker = "MQLAB_TEST_BROKER_RABBITMQ"
	// childName makes this test binary a child of the suite.
	childName = "MQLAB_TEST_CHILD"
	golden    = "testdata/conformance.txt"
)

var update = flag.Bool("update", false, "write the stand-in's transcript to "+golden)

func TestMain(m *testing.M) {
	if brokertest.Child(context.Background(), rabbitmq.Driver{}, os.Getenv(childName)) {
		return
	}
	goleak.VerifyTestMain(m)
}

// TestConformance runs the suite on the stand-in.
func TestConformance(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Options{User: "mqlab", Password: "op3n/s@same"})
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
	compare(t, got)
}

// TestConformanceOfRealBroker runs it on RabbitMQ, against the same golden file.
func TestConformanceOfRealBroker(t *testing.T) {
	url := os.Getenv(realBroker)
	if url == "" {
		t.Skip(realBroker + " is not set")
	}
	compare(t, conform(t, url))
}

func conform(t *testing.T, url string, lacks ...brokers.Capability) (transcript string) {
	at, err := brokers.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	again := brokers.Marks{Redelivered: brokers.Yes, Attempt: 1} // classic queues count nothing
	brokertest.Run(t, brokertest.Subject{
		Driver: rabbitmq.Driver{}, Address: at, Lacks: lacks, Transcript: &out,
		Destination: brokers.Destination{Queue: "conformance"},
		Other:       brokers.Destination{Queue: "conformance", Transient: true},
		Marks:       brokertest.Marks{First: brokers.Marks{Redelivered: brokers.No, Attempt: 1}, Again: again, Nacked: again},
		Child: func(ctx context.Context, name string, env ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(append(os.Environ(), env...), childName+"="+name)
			return cmd
		},
		Elsewhere: func(at brokers.Address) brokers.Address {
			u := at.URL()
			u.Path = "/no-such-vhost"
			at, err := brokers.ParseAddress(u.String())
			if err != nil {
				t.Fatal(err)
			}
			return at
		},
	})
	return out.String()
}

// compare shows how each case differs from the golden file.
func compare(t *testing.T, transcript string) {
	t.Helper()
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, diff := range brokertest.Differences(string(raw), "", transcript) {
		t.Error(diff)
	}
}
