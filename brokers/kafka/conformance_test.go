package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqlab/brokers"
	"mqlab/brokers/brokertest"
	"mqlab/brokers/kafka"
	"mqlab/brokers/kafka/embedded"
)

const (
	// realBroker names a Kafka on which the suite is run as well: kafka://host:port.
	realBroker = "MQLAB_TEST_BROKER_KAFKA"
	// childName makes this test binary a child of the suite.
	childName   = "MQLAB_TEST_CHILD"
	golden      = "testdata/conformance.txt"
	differences = "testdata/differences.txt"
)

var update = flag.Bool("update", false, "write the stand-in's transcript to "+golden)

func TestMain(m *testing.M) {
	if brokertest.Child(context.Background(), kafka.Driver{}, os.Getenv(childName)) {
		return
	}
	goleak.VerifyTestMain(m)
}

// standIn starts one that ends with the test.
func standIn(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // it never fails
	return s
}

// TestConformance runs the suite on the stand-in.
func TestConformance(t *testing.T) {
	s := standIn(t, embedded.Options{User: "mqlab", Password: "op3n/s@same"})
	got := conform(t, s.URL(), brokers.Durable)
	if *update && !t.Failed() {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, got, false)
}

// TestConformanceOfRealBroker runs it on Kafka, against the same golden file.
func TestConformanceOfRealBroker(t *testing.T) {
	compare(t, conform(t, realURL(t)), true)
}

func realURL(t *testing.T) string {
	t.Helper()
	u := os.Getenv(realBroker)
	if u == "" {
		t.Skip(realBroker + " is not set")
	}
	return u
}

func address(t *testing.T, text string) brokers.Address {
	t.Helper()
	at, err := brokers.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func conform(t *testing.T, url string, lacks ...brokers.Capability) (transcript string) {
	var out bytes.Buffer
	same := brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1} // Kafka marks nothing and counts nothing
	brokertest.Run(t, brokertest.Subject{
		Driver: kafka.Driver{}, Address: address(t, url), Lacks: lacks, Transcript: &out,
		Destination: brokers.Destination{Topic: "conformance"},
		Other:       brokers.Destination{Topic: "conformance", Partitions: 3},
		Consumer:    brokers.ConsumerOptions{Session: time.Second}, // dynamic members: the broker knows when they are gone
		Marks:       brokertest.Marks{First: same, Again: same, Nacked: same},
		Habits:      brokertest.Habits{OneAtATime: true, Ahead: 1}, // one partition has one reader, who fetches all there is
		Child: func(ctx context.Context, name string, env ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(append(os.Environ(), env...), childName+"="+name)
			return cmd
		},
		Cut: func(t *testing.T, at brokers.Address) (brokers.Address, func()) {
			return brokertest.Cut(t, at, metadata)
		},
	})
	return out.String()
}

// metadata is how the broker's answer to Metadata and FindCoordinator names it:
// the host with its length, in 1 byte plus one (compact) or in 2, and the port
// in 4 (https://kafka.apache.org/protocol).
func metadata(broker, proxy string) (pairs [][2][]byte) {
	named := func(hostPort string, compact bool) []byte {
		host, p, err := net.SplitHostPort(hostPort)
		if err != nil {
			panic(err)
		}
		port, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			panic(err)
		}
		b := binary.BigEndian.AppendUint16(nil, uint16(len(host)))
		if compact {
			b = []byte{byte(len(host) + 1)}
		}
		return binary.BigEndian.AppendUint32(append(b, host...), uint32(port))
	}
	for _, compact := range []bool{true, false} {
		pairs = append(pairs, [2][]byte{named(broker, compact), named(proxy, compact)})
	}
	return pairs
}

func compare(t *testing.T, transcript string, isReal bool) {
	t.Helper()
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var known []byte
	if isReal {
		if known, err = os.ReadFile(differences); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for _, diff := range brokertest.Differences(string(want), string(known), transcript) {
		t.Error(diff)
	}
}
