package rabbitmq_test

import (
	"errors"
	"strings"
	"testing"

	"mqlab/brokers"
	"mqlab/brokers/rabbitmq"
	"mqlab/brokers/rabbitmq/embedded"
)

// A channel that the broker closes alone is no lost connection: the consumer
// hears the broker's own words.
func TestClosedChannelSaysWhy(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	at, err := brokers.ParseAddress(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, d, dest := t.Context(), rabbitmq.Driver{}, brokers.Destination{Queue: "reason"}
	if err := d.Prepare(ctx, at, dest); err != nil {
		t.Fatal(err)
	}
	p, err := d.OpenProducer(ctx, at, dest, brokers.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx) //nolint:errcheck // the test is over
	if _, err := p.Send(ctx, brokers.Message{ID: "m1", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	c, err := d.OpenConsumer(ctx, at, dest, brokers.ConsumerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx) //nolint:errcheck // the test is over
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Ack(ctx); !errors.Is(err, brokers.ErrAckRefused) {
		t.Fatalf("a second ack: %v", err)
	}
	_, err = c.Receive(ctx)
	if !errors.Is(err, brokers.ErrRefused) || errors.Is(err, brokers.ErrConnectionLost) || !strings.Contains(err.Error(), "406") {
		t.Errorf("after the channel was closed: %v", err)
	}
}
