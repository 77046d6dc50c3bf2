package pulsar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"mqlab/brokers"
)

// delivery is one handing-over.
type delivery struct {
	c *consumer
	m pulsar.Message
}

// Message is the message as it was sent.
func (d *delivery) Message() brokers.Message {
	p := d.m.Properties()
	return brokers.Message{ID: p["messageId"], Key: d.m.Key(), Type: p["eventType"],
		CorrelationID: p["correlationId"], TraceID: p["traceId"], Body: d.m.Payload()}
}

// Marks hold the redelivery count, which only nacks on shared and key-shared
// subscriptions raise: a message whose consumer died comes again with 0, so
// that 0 says nothing.
func (d *delivery) Marks() brokers.Marks {
	m := brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1 + int(d.m.RedeliveryCount()), Consumer: d.c.o.Consumer,
		Fields: []brokers.Field{idField(d.m.ID()), {Key: "subscription", Value: d.c.d.Readers()}}}
	if m.Attempt > 1 {
		m.Redelivered = brokers.Yes
	}
	return m
}

// Ack acknowledges and returns when the broker has answered. The broker takes
// an ack twice, and one for a message that is in other hands by now.
func (d *delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", func(s *subscription) error { return s.c.AckID(d.id()) })
}

// Nack gives the message back. With requeue it returns at once: the message is
// not acknowledged, so that it comes again whatever happens; within nackDelay
// by the library's word, or earlier by the end of this consumer, which does not
// count as an attempt. On exclusive and failover subscriptions everything that
// is not acknowledged comes again with it, uncounted. Without requeue the
// message is acknowledged: Pulsar's broker has no dead letters of its own.
func (d *delivery) Nack(ctx context.Context, requeue bool) error {
	if !requeue {
		return d.settle(ctx, "drop", func(s *subscription) error { return s.c.AckID(d.id()) })
	}
	return d.settle(ctx, "nack", func(s *subscription) error { s.c.NackID(d.id()); return nil })
}

// id is the message's id without the connection that brought it: after a lost
// one the next takes the ack just as well.
func (d *delivery) id() pulsar.MessageID {
	id := d.m.ID()
	return pulsar.NewMessageID(id.LedgerID(), id.EntryID(), id.BatchIdx(), id.PartitionIdx())
}

// settle waits for a connection if there is none at the moment.
func (d *delivery) settle(ctx context.Context, what string, f func(*subscription) error) error {
	for {
		s, changed, err := d.c.now()
		if err == nil {
			err = s.call(ctx, func() error { return f(s) })
			if err == nil || ctx.Err() != nil {
				return err
			}
			// The library fails a call a moment before it says that the connection
			// is lost, and the consumer needs some time to come back.
			if errors.Is(err, brokers.ErrConnectionLost) {
				select {
				case <-changed:
					continue
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(answerTimeout): // an answer is missing, not the connection
				}
			}
		}
		// Whoever has the message now, it is not this consumer.
		return fmt.Errorf("%s %s: %w: %w", what, d.m.Properties()["messageId"], brokers.ErrAckRefused, err)
	}
}
