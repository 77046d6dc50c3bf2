package pulsar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"mqlab/brokers"
)

// producer sends one message after another, each in an entry of its own. It
// ends with its first connection: the library would send again what was not
// confirmed, and a role could not tell a second message from a first one.
type producer struct {
	l *link
	p pulsar.Producer
}

// OpenProducer finds the topic and connects.
func (Driver) OpenProducer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ProducerOptions) (brokers.Producer, error) {
	a, err := enter(ctx, at)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := a.find(ctx, d); err != nil {
		return nil, fmt.Errorf("open a producer for topic %s: %w", d.Topic, err)
	}
	l, err := newLink(a.site, o.ClientName)
	if err != nil {
		return nil, err
	}
	p := &producer{l: l}
	err = l.call(ctx, func() (err error) {
		p.p, err = l.client.CreateProducer(pulsar.ProducerOptions{
			Topic:           a.site.topic(d),
			DisableBatching: true, // one message, one entry: the backlog counts entries
			SendTimeout:     -1,   // Send has a context
			// The library ends when its one connection does; see link.
			MaxReconnectToBroker: noReconnect(), BackOffPolicyFunc: l.reconnecting,
			PartitionsAutoDiscoveryInterval: never,
		})
		return err
	})
	if err != nil {
		p.closeLink(ctx)
		return nil, fmt.Errorf("open a producer for topic %s: %w", d.Topic, err)
	}
	return p, nil
}

// sent is what the library says about one message.
type sent struct {
	id  pulsar.MessageID
	err error
}

// Send publishes and waits for the broker's receipt. When the connection
// breaks first, nobody knows whether the message is stored.
func (p *producer) Send(ctx context.Context, m brokers.Message) (brokers.Receipt, error) {
	start := time.Now()
	payload := m.Body
	if payload == nil {
		payload = []byte{} // nil would be a deletion mark
	}
	done := make(chan sent, 1)
	p.p.SendAsync(ctx, &pulsar.ProducerMessage{
		Payload: payload, Key: m.Key,
		Properties: map[string]string{"messageId": m.ID, "eventType": m.Type, "correlationId": m.CorrelationID, "traceId": m.TraceID},
	}, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { done <- sent{id, err} })
	select {
	case s := <-done:
		if s.err != nil && ctx.Err() != nil {
			return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, ctx.Err())
		}
		if s.err != nil {
			return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, refusal(s.err))
		}
		return brokers.Receipt{Fields: []brokers.Field{idField(s.id)}, Took: time.Since(start)}, nil
	case <-p.l.lost:
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, brokers.ErrConnectionLost)
	case <-ctx.Done():
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, ctx.Err())
	}
}

// refusal is translate for what the library itself refuses to send.
func refusal(err error) error {
	switch {
	case errors.Is(err, pulsar.ErrProducerClosed):
		return brokers.ErrClosed
	case errors.Is(err, pulsar.ErrMessageTooLarge), errors.Is(err, pulsar.ErrMetaTooLarge):
		return fmt.Errorf("%w: %w", brokers.ErrRefused, err)
	}
	return translate(err)
}

// idField is a message's place in the broker's words: ledger:entry:partition.
func idField(id pulsar.MessageID) brokers.Field {
	return brokers.Field{Key: "brokerMessageId", Value: fmt.Sprintf("%d:%d:%d", id.LedgerID(), id.EntryID(), id.PartitionIdx())}
}

// Close ends the connection.
func (p *producer) Close(ctx context.Context) error {
	p.closeLink(ctx)
	return nil
}

func (p *producer) closeLink(ctx context.Context) {
	p.l.close(ctx, func() {
		if p.p != nil {
			p.p.Close()
		}
	})
}
