package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers"
)

// consumer turns the pushed deliveries into one at a time.
type consumer struct {
	s          *session
	queue      string
	name       string
	deliveries <-chan amqp.Delivery

	mu        sync.Mutex
	cancelled bool
}

// OpenConsumer subscribes with manual acknowledgement.
func (Driver) OpenConsumer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ConsumerOptions) (brokers.Consumer, error) {
	s, err := open(ctx, at, options{name: o.ClientName, heartbeat: o.Heartbeat})
	if err != nil {
		return nil, err
	}
	// Without a name the client would invent one, and Cancel would not know it.
	c := &consumer{s: s, queue: d.OnWire(d.Queue), name: cmp.Or(o.Consumer, "mqlab")}
	err = s.call(ctx, func() error {
		if err := s.ch.Qos(max(1, o.Prefetch), 0, false); err != nil {
			return err
		}
		var err error
		c.deliveries, err = s.ch.Consume(c.queue, c.name, false, false, false, false, nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to queue %s: %w", d.Queue, err), s.close(ctx))
	}
	return c, nil
}

// Receive waits for the next delivery. What the client had buffered before a
// Cancel stays there: nobody has seen it, and the end of the channel gives it
// back.
func (c *consumer) Receive(ctx context.Context) (brokers.Delivery, error) {
	c.mu.Lock()
	cancelled := c.cancelled
	c.mu.Unlock()
	if cancelled {
		return nil, fmt.Errorf("receive: %w", brokers.ErrClosed)
	}
	select {
	case d, ok := <-c.deliveries:
		if !ok {
			return nil, fmt.Errorf("receive: %w", c.ended())
		}
		return &delivery{c: c, d: d}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("receive: %w", ctx.Err())
	}
}

// ended says why no more deliveries come.
func (c *consumer) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cancelled:
		return brokers.ErrClosed
	case !c.s.conn.IsClosed() && !c.s.ch.IsClosed():
		return fmt.Errorf("%w: the queue was deleted", brokers.ErrRefused)
	}
	return c.s.reason()
}

// Cancel ends the subscription; what was pushed already stays with this
// channel until it is settled or the channel ends.
func (c *consumer) Cancel(ctx context.Context) error {
	c.mu.Lock()
	c.cancelled = true
	c.mu.Unlock()
	if err := c.s.call(ctx, func() error { return c.s.ch.Cancel(c.name, false) }); err != nil {
		return fmt.Errorf("cancel the subscription: %w", err)
	}
	return nil
}

// Close ends the connection; what was not settled goes back to the queue.
func (c *consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	c.cancelled = true
	c.mu.Unlock()
	return c.s.close(ctx)
}

// delivery is one handing-over.
type delivery struct {
	c *consumer
	d amqp.Delivery
}

// Message is the message as it was published.
func (d *delivery) Message() brokers.Message {
	trace, _ := d.d.Headers["traceId"].(string)
	key, _ := d.d.Headers["aggregateId"].(string)
	return brokers.Message{ID: d.d.MessageId, Key: key, Type: d.d.Type, CorrelationID: d.d.CorrelationId, TraceID: trace, Body: d.d.Body}
}

// Marks are the redelivered flag and the attempts that dead lettering
// (x-death, reason rejected) and quorum queues (x-delivery-count) count.
func (d *delivery) Marks() brokers.Marks {
	m := brokers.Marks{Redelivered: brokers.No, Attempt: 1, Consumer: d.c.name}
	if d.d.Redelivered {
		m.Redelivered = brokers.Yes
	}
	deaths, _ := d.d.Headers["x-death"].([]any)
	for _, e := range deaths {
		if t, ok := e.(amqp.Table); ok && t["reason"] == "rejected" {
			n, _ := t["count"].(int64)
			m.Attempt += int(n)
		}
	}
	if n, ok := d.d.Headers["x-delivery-count"].(int64); ok {
		m.Attempt += int(n)
	}
	return m
}

// Ack acknowledges and returns when the broker has taken it. basic.ack has no
// answer, so a synchronous request on the same channel follows it.
func (d *delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", func() error { return d.d.Ack(false) })
}

// Nack gives the message back.
func (d *delivery) Nack(ctx context.Context, requeue bool) error {
	return d.settle(ctx, "nack", func() error { return d.d.Nack(false, requeue) })
}

func (d *delivery) settle(ctx context.Context, what string, f func() error) error {
	err := d.c.s.call(ctx, f)
	if err == nil {
		err = d.c.s.barrier(ctx, d.c.queue)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The channel or the connection is gone: whoever has the message now, it
	// is not this consumer.
	return fmt.Errorf("%s %s: %w: %w", what, d.d.MessageId, brokers.ErrAckRefused, err)
}
