package pulsar_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"mqlab/brokers"
	"mqlab/brokers/brokertest"
	"mqlab/brokers/pulsar"
	"mqlab/brokers/pulsar/embedded"
)

const (
	// realBroker names a Pulsar on which the suite is run as well:
	// pulsar://host:port?admin=http://host:port.
	realBroker = "MQLAB_TEST_BROKER_PULSAR"
	// childName makes this test binary a child of the suite.
	childName = "MQLAB_TEST_CHILD"
)

var update = flag.Bool("update", false, "write the stand-in's transcripts to testdata")

func TestMain(m *testing.M) {
	if brokertest.Child(context.Background(), pulsar.Driver{}, os.Getenv(childName)) {
		return
	}
	goleak.VerifyTestMain(m)
}

// variant is a subscription type, and what follows from it: an exclusive
// subscription has one consumer and counts nothing, a shared one has many and
// counts what was handed out and given back.
type variant struct {
	subscription string
	nacked       brokers.Marks
	habits       brokertest.Habits
}

func variants() []variant {
	return []variant{
		{"exclusive", brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1},
			brokertest.Habits{SecondAckTaken: true, OneConsumer: true, Ahead: 1, Uncounted: true}},
		{"shared", brokers.Marks{Redelivered: brokers.Yes, Attempt: 2},
			brokertest.Habits{SecondAckTaken: true, Ahead: 1}},
	}
}

func (v variant) golden() string {
	return filepath.Join("testdata", "conformance-"+v.subscription+".txt")
}

// TestConformance runs the suite on the stand-in.
func TestConformance(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.subscription, func(t *testing.T) {
			s, err := embedded.Open(t.Context(), embedded.Options{Token: "op3n/s@same"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // it never fails
			got := conform(t, v, s.URL(), brokers.Durable)
			if *update && !t.Failed() {
				if err := os.WriteFile(v.golden(), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, v, got)
		})
	}
}

// TestConformanceOfRealBroker runs it on Pulsar, against the same golden files.
func TestConformanceOfRealBroker(t *testing.T) {
	url := os.Getenv(realBroker)
	if url == "" {
		t.Skip(realBroker + " is not set")
	}
	for _, v := range variants() {
		t.Run(v.subscription, func(t *testing.T) { compare(t, v, conform(t, v, url)) })
	}
}

func conform(t *testing.T, v variant, url string, lacks ...brokers.Capability) (transcript string) {
	at, err := brokers.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	first := brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1}
	brokertest.Run(t, brokertest.Subject{
		Driver: pulsar.Driver{}, Address: at, Lacks: lacks, Transcript: &out,
		Destination: brokers.Destination{Topic: "conformance"},
		Consumer:    brokers.ConsumerOptions{Subscription: v.subscription},
		Marks:       brokertest.Marks{First: first, Again: first, Nacked: v.nacked}, // a death is not marked
		Habits:      v.habits,
		Child: func(ctx context.Context, name string, env ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(append(os.Environ(), env...), childName+"="+name)
			return cmd
		},
		Cut: func(t *testing.T, at brokers.Address) (brokers.Address, func()) {
			// The answer to a lookup holds the broker's own address.
			return brokertest.Cut(t, at, func(broker, proxy string) [][2][]byte {
				return [][2][]byte{{[]byte(broker), []byte(proxy)}}
			})
		},
		Elsewhere: func(at brokers.Address) brokers.Address {
			u := at.URL()
			u.Path = "/public/no-such-namespace"
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
func compare(t *testing.T, v variant, transcript string) {
	t.Helper()
	raw, err := os.ReadFile(v.golden())
	if err != nil {
		t.Fatal(err)
	}
	for _, diff := range brokertest.Differences(string(raw), "", transcript) {
		t.Error(diff)
	}
}
