package rocketmq

import (
	"context"
	"errors"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/google/go-cmp/cmp"

	"mqlab/brokers"
	"mqlab/brokers/rocketmq/embedded"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	for _, d := range []brokers.Destination{
		{}, {Topic: "t", Queue: "q"}, {Topic: "t", Transient: true}, {Topic: "t", Partitions: 2}, {Topic: "a b"}, {Topic: "%RETRY%t"},
		{Topic: "заказы"}, {Topic: long}, {Topic: "t", Group: "a b"}, {Topic: "t", Group: long},
	} {
		if err := (Driver{}).Check(d); err == nil {
			t.Errorf("%+v passes", d)
		}
	}
	if err := (Driver{}).Check(brokers.Destination{Topic: "orders-1_a|b", Group: "readers"}); err != nil {
		t.Error(err)
	}
}

// Both parts of the credentials or none, no other setting, and never the secret.
func TestSettings(t *testing.T) {
	for _, text := range []string{"rocketmq://h:1?tls=true", "rocketmq://key@h:1", "rocketmq://h:1/namespace"} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := settings(u); err == nil {
			t.Errorf("%s passes", text)
		}
	}
	u, err := url.Parse("rocketmq://key:s3cr%2Ft@h")
	if err != nil {
		t.Fatal(err)
	}
	hostPort, cred, err := settings(u)
	if err != nil || hostPort != "h:9876" || cred.SecretKey != "s3cr/t" {
		t.Errorf("%s, %+v, %v", hostPort, cred, err)
	}
}

// What RocketMQ separates properties with must not separate a text.
func TestMessageComesBack(t *testing.T) {
	for _, m := range []brokers.Message{
		{ID: "a\x01b\x02c", Key: "two keys \x00", Type: "100%25", CorrelationID: "\xff\xfe", TraceID: "", Body: []byte{}},
		{ID: "%zz", Key: "k", Type: "ü", CorrelationID: "a+b", TraceID: "  ", Body: []byte{0}},
	} {
		w := toWire("t", m)
		received := &primitive.MessageExt{}
		received.Body = w.Body
		received.UnmarshalProperties([]byte(w.MarshallProperties()))
		if diff := cmp.Diff(m, fromWire(received)); diff != "" {
			t.Errorf("sent (-) and received (+):\n%s", diff)
		}
	}
}

// fixture is a stand-in with a prepared destination.
func fixture(t *testing.T) (brokers.Address, brokers.Destination) {
	t.Helper()
	s, err := embedded.Open(context.WithoutCancel(t.Context()), embedded.Options{}) // the consumers end after the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // it never fails
	at, err := brokers.ParseAddress(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	d := brokers.Destination{Topic: "orders", Group: "readers"}
	if err := (Driver{}).Prepare(t.Context(), at, d); err != nil {
		t.Fatal(err)
	}
	return at, d
}

func consume(t *testing.T, at brokers.Address, d brokers.Destination, instance string) brokers.Consumer {
	t.Helper()
	c, err := (Driver{}).OpenConsumer(t.Context(), at, d, brokers.ConsumerOptions{Instance: instance})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) }) //nolint:errcheck // the test's context is over by then
	return c
}

// send sends m1.
func send(t *testing.T, at brokers.Address, d brokers.Destination) {
	t.Helper()
	p, err := (Driver{}).OpenProducer(t.Context(), at, d, brokers.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context()) //nolint:errcheck // it never fails
	if _, err := p.Send(t.Context(), brokers.Message{ID: "m1", Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
}

// The stand-in is ready in the only sense that counts.
func TestTry(t *testing.T) {
	at, _ := fixture(t)
	if version, err := brokers.Try(t.Context(), Driver{}, at); err != nil || version != "1.0.0" {
		t.Errorf("version %q, %v", version, err)
	}
}

// A topic that is there with other queues is not taken for the wanted one.
func TestPrepareOtherQueues(t *testing.T) {
	at, d := fixture(t)
	s, err := open(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.broker.ask(t.Context(), reqCreateTopic, fields{"topic": "orders", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := (Driver{}).Prepare(t.Context(), at, d); !errors.Is(err, brokers.ErrRefused) {
		t.Errorf("prepare: %v", err)
	}
}

// A queue goes to another consumer while its message is in hand: the late ack is
// refused, and the message is the other's.
func TestAckAfterTheQueueMoved(t *testing.T) {
	at, d := fixture(t)
	send(t, at, d)
	late := receive(t, consume(t, at, d, "2")).(*delivery)
	other := receive(t, consume(t, at, d, "1")) // the first name gets the only queue
	for late.c.term(late.topic) == late.term {  // until the client knows it, the broker takes its offset
		if err := pause(t.Context(), askAgain); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Ack(t.Context()); !errors.Is(err, brokers.ErrAckRefused) {
		t.Errorf("the late ack: %v", err)
	}
	if err := other.Ack(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each pull that follows a message carries the offset from before it: sent after
// the ack, it would take the ack back.
func TestAckIsNotUndone(t *testing.T) {
	for range 2 * runtime.NumCPU() { // the client is to lose the processor in between
		busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			busy.Process.Kill() //nolint:errcheck // it does not end by itself
			busy.Wait()         //nolint:errcheck // killed
		}()
	}
	at, d := fixture(t)
	i, err := (Driver{}).OpenInspector(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close() //nolint:errcheck // it never fails
	c := consume(t, at, d, "")
	for n := range 150 {
		send(t, at, d)
		if err := receive(t, c).Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		st, err := i.State(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if st.Left != 0 {
			t.Fatalf("after ack %d the broker still counts %d message(s)", n+1, st.Left)
		}
	}
}

// An ack with an ended context does nothing, and can be made up for.
func TestAckRespectsContext(t *testing.T) {
	at, d := fixture(t)
	send(t, at, d)
	m := receive(t, consume(t, at, d, ""))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Ack(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := m.Ack(t.Context()); err != nil {
		t.Error(err)
	}
}

// The marks and the receipt say where a message lies, and the group by its plain
// name.
func TestFields(t *testing.T) {
	at, d := fixture(t)
	d.Suffix = "run1"
	if err := (Driver{}).Prepare(t.Context(), at, d); err != nil {
		t.Fatal(err)
	}
	p, err := (Driver{}).OpenProducer(t.Context(), at, d, brokers.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context()) //nolint:errcheck // it never fails
	r, err := p.Send(t.Context(), brokers.Message{ID: "m1", Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Fields) != 3 || r.Fields[1] != (brokers.Field{Key: "offset", Value: "0"}) || len(r.Fields[2].Value) != 32 {
		t.Errorf("the receipt: %v", r.Fields)
	}
	m := receive(t, consume(t, at, d, ""))
	want := []brokers.Field{{Key: "partitionOrQueue", Value: "0"}, {Key: "offset", Value: "0"}, {Key: "consumerGroup", Value: "readers"}}
	if diff := cmp.Diff(want, m.Marks().Fields); diff != "" {
		t.Error(diff)
	}
	if err := m.Ack(t.Context()); err != nil {
		t.Error(err)
	}
}

// receive takes m1.
func receive(t *testing.T, c brokers.Consumer) brokers.Delivery {
	t.Helper()
	m, err := c.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.Message().ID != "m1" {
		t.Fatalf("received %s, want m1", m.Message().ID)
	}
	return m
}
