package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers"
)

// producer publishes through the default exchange, persistent and mandatory,
// and waits for each confirm.
type producer struct {
	s       *session
	d       brokers.Destination
	mode    uint8
	returns chan amqp.Return
}

// OpenProducer connects, looks for the queue and switches confirms on.
func (Driver) OpenProducer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ProducerOptions) (brokers.Producer, error) {
	s, err := open(ctx, at, options{name: o.ClientName})
	if err != nil {
		return nil, err
	}
	p := &producer{s: s, d: d, mode: amqp.Persistent}
	if o.Transient {
		p.mode = amqp.Transient
	}
	err = s.barrier(ctx, d.OnWire(d.Queue))
	if err == nil {
		err = s.call(ctx, func() error { return s.ch.Confirm(false) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a producer for queue %s: %w", d.Queue, err), s.close(ctx))
	}
	// One message is under way at a time, so one place is enough.
	p.returns = s.ch.NotifyReturn(make(chan amqp.Return, 1))
	return p, nil
}

// Send publishes and waits for the confirm. A message that no queue took comes
// back before its confirm, which is positive all the same.
func (p *producer) Send(ctx context.Context, m brokers.Message) (brokers.Receipt, error) {
	start := time.Now()
	wait, err := p.s.ch.PublishWithDeferredConfirmWithContext(ctx, "", p.d.OnWire(p.d.Queue), true, false, amqp.Publishing{
		DeliveryMode: p.mode, ContentType: "application/json",
		MessageId: m.ID, CorrelationId: m.CorrelationID, Type: m.Type,
		Headers: amqp.Table{"traceId": m.TraceID, "eventType": m.Type, "aggregateId": m.Key},
		Body:    m.Body,
	})
	if err != nil {
		return brokers.Receipt{}, fmt.Errorf("publish %s: %w", m.ID, translate(err))
	}
	acked, err := wait.WaitContext(ctx)
	switch {
	case err != nil:
		return brokers.Receipt{}, fmt.Errorf("wait for the confirm of %s: %w", m.ID, err)
	case !acked && p.s.ch.IsClosed():
		return brokers.Receipt{}, fmt.Errorf("wait for the confirm of %s: %w", m.ID, p.s.reason())
	case !acked:
		return brokers.Receipt{}, fmt.Errorf("publish %s: %w: negative confirm", m.ID, brokers.ErrRefused)
	}
	select {
	case r, open := <-p.returns:
		if open {
			return brokers.Receipt{}, fmt.Errorf("publish %s: %w: %w: %d %s", m.ID, brokers.ErrRefused, brokers.ErrUnroutable, r.ReplyCode, r.ReplyText)
		}
	default:
	}
	return brokers.Receipt{Fields: []brokers.Field{{Key: "routingKey", Value: p.d.Queue}}, Took: time.Since(start)}, nil
}

// Close ends the connection.
func (p *producer) Close(ctx context.Context) error { return p.s.close(ctx) }
