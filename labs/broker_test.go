package labs

import (
	"context"
	"errors"
	"sync"
	"time"

	"mqlab/brokers"
)

// fakeBroker is driver, inspector and control in one: a broker that is nothing
// but numbers. What it still owes stands in the world's file "left".
type fakeBroker struct {
	world  string
	origin brokers.Origin
	words  string // its last words
	died   chan struct{}

	// hook may change an answer; it is called from the runner's own goroutine,
	// n counts the answers from 1.
	hook func(n int, s *brokers.State) error
	// onRemove is called before a removal.
	onRemove func(brokers.Destination) error

	mu      sync.Mutex
	asked   []time.Time
	removed []string // on the wire
}

func newFakeBroker(world string) *fakeBroker {
	at, err := brokers.ParseAddress("amqp://guest:hush@127.0.0.1:5672")
	if err != nil {
		panic(err) // a constant
	}
	return &fakeBroker{world: world, died: make(chan struct{}),
		origin: brokers.Origin{Product: "rabbitmq", Provider: "native", Version: "0.0.0", Address: at}}
}

func (b *fakeBroker) Name() string   { return "rabbitmq" }
func (b *fakeBroker) Scheme() string { return "amqp" }
func (b *fakeBroker) Keys() []string {
	return []string{"destination.queue", "destination.queue-type", "destination.transient", "consumer.prefetch", "consumer.heartbeat"}
}
func (b *fakeBroker) Figures() []string {
	return []string{"ready", "unacknowledged", "depth", "consumers"}
}
func (b *fakeBroker) SentWord() string { return "confirmed" }

func (b *fakeBroker) Check(d brokers.Destination) error {
	if d.Queue == "" {
		return errors.New("destination.queue is missing")
	}
	return nil
}

func (b *fakeBroker) Prepare(context.Context, brokers.Address, brokers.Destination) error { return nil }

func (b *fakeBroker) Remove(_ context.Context, _ brokers.Address, d brokers.Destination) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.onRemove != nil {
		if err := b.onRemove(d); err != nil {
			return err
		}
	}
	b.removed = append(b.removed, d.OnWire(d.Queue))
	return nil
}

func (b *fakeBroker) OpenProducer(context.Context, brokers.Address, brokers.Destination, brokers.ProducerOptions) (brokers.Producer, error) {
	return nil, errors.New("the runner opens no producer")
}

func (b *fakeBroker) OpenConsumer(context.Context, brokers.Address, brokers.Destination, brokers.ConsumerOptions) (brokers.Consumer, error) {
	return nil, errors.New("the runner opens no consumer")
}

func (b *fakeBroker) OpenInspector(context.Context, brokers.Address) (brokers.Inspector, error) {
	return b, nil
}

func (b *fakeBroker) Probe(context.Context, brokers.Address) (string, error) { return "0.0.0", nil }

func (b *fakeBroker) State(context.Context, brokers.Destination) (brokers.State, error) {
	left := int64(told(b.world, "left"))
	s := brokers.State{Figures: map[string]*int64{"depth": &left, "consumers": nil}, Left: left, Idle: true}
	b.mu.Lock()
	b.asked = append(b.asked, time.Now())
	n := len(b.asked)
	b.mu.Unlock()
	if b.hook != nil {
		if err := b.hook(n, &s); err != nil {
			return brokers.State{}, err
		}
	}
	return s, nil
}

func (b *fakeBroker) Close() error           { return nil }
func (b *fakeBroker) Origin() brokers.Origin { return b.origin }
func (b *fakeBroker) Died() <-chan struct{}  { return b.died }
func (b *fakeBroker) Log() []byte            { return []byte(b.words) }
func (b *fakeBroker) Release() error         { return nil }

func (b *fakeBroker) Act(context.Context, brokers.Act) error { return brokers.ErrNotOurs }

// refuse is a hook of a broker that does not answer.
func refuse(_ *stage, _ int, s *brokers.State) error {
	if s.Left > 0 {
		return errors.New("the management API is busy")
	}
	return nil
}
