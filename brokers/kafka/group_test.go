package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mqlab/brokers"
	"mqlab/brokers/brokertest"
	"mqlab/brokers/kafka"
	"mqlab/brokers/kafka/embedded"
)

// everywhere runs a test on the stand-in and, if there is one, on the real broker.
func everywhere(t *testing.T, f func(t *testing.T, at brokers.Address)) {
	t.Run("embedded", func(t *testing.T) { f(t, address(t, standIn(t, embedded.Options{}).URL())) })
	t.Run("real", func(t *testing.T) { f(t, address(t, realURL(t))) })
}

// topic makes one with messages in it, for as long as the test runs.
func topic(t *testing.T, at brokers.Address, ids ...string) brokers.Destination {
	t.Helper()
	d := brokers.Destination{Topic: "group", Suffix: strings.ToLower(rand.Text()[:10])}
	must(t, kafka.Driver{}.Prepare(t.Context(), at, d))
	t.Cleanup(func() { must(t, kafka.Driver{}.Remove(context.WithoutCancel(t.Context()), at, d)) })
	p, err := kafka.Driver{}.OpenProducer(t.Context(), at, d, brokers.ProducerOptions{})
	must(t, err)
	for _, id := range ids {
		_, err := p.Send(t.Context(), brokers.Message{ID: id, Body: []byte(id)})
		must(t, err)
	}
	must(t, p.Close(t.Context()))
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func consumer(t *testing.T, at brokers.Address, d brokers.Destination, o brokers.ConsumerOptions) brokers.Consumer {
	t.Helper()
	c, err := kafka.Driver{}.OpenConsumer(t.Context(), at, d, o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close(context.WithoutCancel(t.Context()))) })
	return c
}

func take(t *testing.T, c brokers.Consumer, id string) brokers.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := c.Receive(ctx)
	must(t, err)
	if d.Message().ID != id {
		t.Fatalf("received %q, want %q", d.Message().ID, id)
	}
	return d
}

func state(t *testing.T, at brokers.Address, d brokers.Destination) brokers.State {
	t.Helper()
	i, err := kafka.Driver{}.OpenInspector(t.Context(), at)
	must(t, err)
	st, err := i.State(t.Context(), d)
	must(t, errors.Join(err, i.Close()))
	return st
}

// TestStaticMember: the one who comes back under its old name need not wait for
// the session of the one before, and the broker is idle all the time.
func TestStaticMember(t *testing.T) {
	everywhere(t, func(t *testing.T, at brokers.Address) {
		d := topic(t, at, "m1", "m2")
		o := brokers.ConsumerOptions{Instance: "pod", Session: 30 * time.Second}
		first := consumer(t, at, d, o)
		take(t, first, "m1")
		must(t, first.Close(t.Context())) // says no goodbye
		if st := state(t, at, d); !st.Idle || *st.Figures["members"] != 1 || st.Figures["committed"] != nil || st.Left != 2 {
			t.Errorf("after the first: idle %t, members %d, committed %v, left %d", st.Idle, *st.Figures["members"], st.Figures["committed"], st.Left)
		}
		start := time.Now()
		second := consumer(t, at, d, o)
		must(t, take(t, second, "m1").Ack(t.Context()))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it came again after %v", took)
		}
		if st := state(t, at, d); *st.Figures["committed"] != 1 || st.Left != 1 {
			t.Errorf("committed %d, left %d", *st.Figures["committed"], st.Left)
		}
	})
}

// TestNextProtocol: with the group protocol of KIP-848 the broker keeps the
// group; what it says about it is found elsewhere.
func TestNextProtocol(t *testing.T) {
	everywhere(t, func(t *testing.T, at brokers.Address) {
		d := topic(t, at, "m1", "m2")
		o := brokers.ConsumerOptions{Protocol: "consumer"}
		c := consumer(t, at, d, o)
		must(t, take(t, c, "m1").Ack(t.Context()))
		if st := state(t, at, d); st.Idle || *st.Figures["members"] != 1 || *st.Figures["committed"] != 1 || st.Left != 1 {
			t.Errorf("idle %t, members %d, committed %d, left %d", st.Idle, *st.Figures["members"], *st.Figures["committed"], st.Left)
		}
		must(t, c.Close(t.Context()))
		if st := state(t, at, d); !st.Idle || *st.Figures["members"] != 0 {
			t.Errorf("after close: idle %t, members %d", st.Idle, *st.Figures["members"])
		}
		take(t, consumer(t, at, d, o), "m2")
	})
}

// TestRemoveWithMembers: a group is removed though a member is in it that
// never said goodbye.
func TestRemoveWithMembers(t *testing.T) {
	everywhere(t, func(t *testing.T, at brokers.Address) {
		for _, o := range []brokers.ConsumerOptions{{Instance: "pod"}, {Session: 30 * time.Second}, {Protocol: "consumer"}} {
			d := topic(t, at, "m1")
			c := consumer(t, at, d, o)
			must(t, take(t, c, "m1").Ack(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			must(t, kafka.Driver{}.Remove(ctx, at, d))
			cancel()
			must(t, kafka.Driver{}.Prepare(t.Context(), at, d))
			if st := state(t, at, d); st.Figures["committed"] != nil {
				t.Errorf("%+v: the group's position is still there: %d", o, *st.Figures["committed"])
			}
		}
	})
}

// TestTransactions: control records and aborted messages lie in the log but
// are nobody's. A consumer that leaves nothing undone leaves no lag.
func TestTransactions(t *testing.T) {
	everywhere(t, func(t *testing.T, at brokers.Address) {
		for _, isolation := range []string{"read-committed", ""} {
			d := topic(t, at)
			transact(t, at, d, true, "m1", "m2", "m3")
			transact(t, at, d, false, "m4", "m5")
			holds(t, at, d, 7) // five messages, and two control records, which the broker writes in its own time
			c := consumer(t, at, d, brokers.ConsumerOptions{Isolation: isolation, Session: 5 * time.Second})
			want := []string{"m1", "m2", "m3"}
			if isolation == "" {
				want = append(want, "m4", "m5")
			}
			for _, id := range want {
				must(t, take(t, c, id).Ack(t.Context()))
			}
			ctx, cancel := context.WithCancel(t.Context())
			received := make(chan error, 1)
			go func() { // ends with cancel
				_, err := c.Receive(ctx)
				received <- err
			}()
			holds(t, at, d, 0)
			cancel()
			if err := <-received; !errors.Is(err, context.Canceled) {
				t.Errorf("%q: a receive after the last message: %v", isolation, err)
			}
		}
	})
}

// holds waits until the broker holds so many for the group.
func holds(t *testing.T, at brokers.Address, d brokers.Destination, left int64) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		st := state(t, at, d)
		if st.Left == left {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left %d, want %d", st.Left, left)
		}
	}
}

// transact sends messages in one transaction and ends it.
func transact(t *testing.T, at brokers.Address, d brokers.Destination, commit bool, ids ...string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(at.URL().Host), kgo.TransactionalID(fmt.Sprint("tx-", rand.Text())))
	must(t, err)
	defer cl.Close()
	must(t, cl.BeginTransaction())
	for _, id := range ids {
		r := &kgo.Record{Topic: d.OnWire(d.Topic), Value: []byte(id), Headers: []kgo.RecordHeader{{Key: "messageId", Value: []byte(id)}}}
		must(t, cl.ProduceSync(t.Context(), r).FirstErr())
	}
	must(t, cl.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
}

// TestNackKeepsTheOthers: going back in one partition leaves what was polled
// of the others alone.
func TestNackKeepsTheOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, at brokers.Address) {
		d := brokers.Destination{Topic: "group", Partitions: 4, Suffix: strings.ToLower(rand.Text()[:10])}
		must(t, kafka.Driver{}.Prepare(t.Context(), at, d))
		t.Cleanup(func() { must(t, kafka.Driver{}.Remove(context.WithoutCancel(t.Context()), at, d)) })
		p, err := kafka.Driver{}.OpenProducer(t.Context(), at, d, brokers.ProducerOptions{})
		must(t, err)
		for n := range 12 {
			_, err := p.Send(t.Context(), brokers.Message{ID: fmt.Sprint("m", n), Key: fmt.Sprint("k", n), Body: []byte("x")})
			must(t, err)
		}
		must(t, p.Close(t.Context()))
		c := consumer(t, at, d, brokers.ConsumerOptions{Prefetch: 20, Session: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		seen := map[string]bool{}
		for n := 0; len(seen) < 12; n++ {
			m, err := c.Receive(ctx)
			must(t, err)
			if n == 0 {
				must(t, m.Nack(ctx, true))
				continue
			}
			seen[m.Message().ID] = true
			must(t, m.Ack(ctx))
		}
		holds(t, at, d, 0)
	})
}

// TestAdvertisedElsewhere: a broker that sends its clients to an address where
// nobody listens is not reached, and the error names that address.
func TestAdvertisedElsewhere(t *testing.T) {
	at := address(t, standIn(t, embedded.Options{}).URL())
	var nobody string
	through, _ := brokertest.Cut(t, at, func(broker, _ string) [][2][]byte {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		nobody = ln.Addr().String()
		must(t, ln.Close())
		return metadata(broker, nobody)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := kafka.Driver{}.Probe(ctx, through)
	if !errors.Is(err, brokers.ErrConnectionLost) || !strings.Contains(err.Error(), nobody) {
		t.Errorf("want a lost connection to %s: %v", nobody, err)
	}
}
