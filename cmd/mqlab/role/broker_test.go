package role

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mqlab/brokers"
)

// fakeBroker is a driver whose one queue lies in memory. Fields that are set
// make it misbehave.
type fakeBroker struct {
	onEmpty  func() // the queue has nothing for a waiting consumer; called once
	ackErr   error
	nackErr  error
	sendErr  error
	openErr  error
	closeErr error
	broken   bool // an empty queue is a lost connection

	mu       sync.Mutex
	queue    []handed
	log      []string // what the role asked for, in order
	prepared int
}

type handed struct {
	m     brokers.Message
	again bool
}

func (b *fakeBroker) note(format string, a ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprintf(format, a...))
}

// asked is what the role asked for, in order.
func (b *fakeBroker) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.log...)
}

func (b *fakeBroker) Name() string   { return "rabbitmq" }
func (b *fakeBroker) Scheme() string { return "amqp" }
func (b *fakeBroker) Keys() []string {
	return []string{"destination.queue", "consumer.prefetch", "consumer.heartbeat"}
}
func (b *fakeBroker) Figures() []string               { return []string{"depth"} }
func (b *fakeBroker) SentWord() string                { return "confirmed" }
func (b *fakeBroker) Check(brokers.Destination) error { return nil }

func (b *fakeBroker) Prepare(context.Context, brokers.Address, brokers.Destination) error {
	b.prepared++
	return b.openErr
}

func (b *fakeBroker) Remove(context.Context, brokers.Address, brokers.Destination) error { return nil }

func (b *fakeBroker) OpenInspector(context.Context, brokers.Address) (brokers.Inspector, error) {
	return nil, errors.New("a role opens no inspector")
}

func (b *fakeBroker) Probe(context.Context, brokers.Address) (string, error) { return "0", nil }

func (b *fakeBroker) OpenProducer(_ context.Context, _ brokers.Address, d brokers.Destination, _ brokers.ProducerOptions) (brokers.Producer, error) {
	return &fakeProducer{b, d}, b.openErr
}

func (b *fakeBroker) OpenConsumer(_ context.Context, _ brokers.Address, _ brokers.Destination, o brokers.ConsumerOptions) (brokers.Consumer, error) {
	b.note("open %s prefetch %d heartbeat %s", o.Consumer, o.Prefetch, o.Heartbeat)
	if b.openErr != nil {
		return nil, b.openErr
	}
	return &fakeConsumer{b: b, name: o.Consumer, closed: make(chan struct{})}, nil
}

type fakeProducer struct {
	b *fakeBroker
	d brokers.Destination
}

func (p *fakeProducer) Send(_ context.Context, m brokers.Message) (brokers.Receipt, error) {
	if p.b.sendErr != nil {
		return brokers.Receipt{}, p.b.sendErr
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.queue = append(p.b.queue, handed{m: m})
	return brokers.Receipt{Fields: []brokers.Field{{Key: "routingKey", Value: p.d.Queue}}}, nil
}

func (p *fakeProducer) Close(context.Context) error { return nil }

type fakeConsumer struct {
	b      *fakeBroker
	name   string
	once   sync.Once
	empty  sync.Once
	closed chan struct{}
}

func (c *fakeConsumer) Receive(ctx context.Context) (brokers.Delivery, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("receive: %w", ctx.Err())
	}
	c.b.mu.Lock()
	if len(c.b.queue) > 0 {
		h := c.b.queue[0]
		c.b.queue = c.b.queue[1:]
		c.b.mu.Unlock()
		return &fakeDelivery{c: c, h: h}, nil
	}
	c.b.mu.Unlock()
	if c.b.broken {
		return nil, fmt.Errorf("receive: %w", brokers.ErrConnectionLost)
	}
	if c.b.onEmpty != nil {
		c.empty.Do(c.b.onEmpty)
	}
	if c.b.broken { // since then
		return nil, fmt.Errorf("receive: %w", brokers.ErrConnectionLost)
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("receive: %w", ctx.Err())
	case <-c.closed:
		return nil, fmt.Errorf("receive: %w", brokers.ErrClosed)
	}
}

func (c *fakeConsumer) Cancel(context.Context) error {
	c.b.note("cancel")
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *fakeConsumer) Close(context.Context) error {
	c.b.note("close")
	c.once.Do(func() { close(c.closed) })
	return c.b.closeErr
}

type fakeDelivery struct {
	c *fakeConsumer
	h handed
}

func (d *fakeDelivery) Message() brokers.Message { return d.h.m }

func (d *fakeDelivery) Marks() brokers.Marks {
	m := brokers.Marks{Redelivered: brokers.No, Attempt: 1, Consumer: d.c.name}
	if d.h.again {
		m.Redelivered = brokers.Yes
	}
	return m
}

func (d *fakeDelivery) Ack(context.Context) error {
	d.c.b.note("ack %s", d.h.m.Key)
	return d.c.b.ackErr
}

func (d *fakeDelivery) Nack(_ context.Context, requeue bool) error {
	d.c.b.note("nack %s requeue=%v", d.h.m.Key, requeue)
	if d.c.b.nackErr != nil {
		return d.c.b.nackErr
	}
	if requeue {
		d.c.b.mu.Lock()
		defer d.c.b.mu.Unlock()
		d.c.b.queue = append(d.c.b.queue, handed{d.h.m, true})
	}
	return nil
}
