package pulsar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"mqlab/brokers"
)

const (
	// patience is how long a consumer tries to come back after its connection
	// broke; a broker that is gone for longer has lost it.
	patience = time.Second
	// aMoment is the pause before the first try: a broker that deletes a topic
	// closes its consumers first, and would make it again for one that is quick.
	aMoment = 250 * time.Millisecond
	// tryAgain is the pause between two tries.
	tryAgain = 50 * time.Millisecond
	// nackDelay is how long the library collects messages that were given back.
	nackDelay = 200 * time.Millisecond
)

// consumer turns the pushed messages into one delivery at a time. As the
// library does by itself, it comes back after a lost connection; unlike the
// library it gives up after patience, and it never makes a topic.
type consumer struct {
	at   brokers.Address
	d    brokers.Destination
	o    brokers.ConsumerOptions
	kind pulsar.SubscriptionType

	stop    context.CancelFunc // ends what follows
	keeping sync.WaitGroup     // the goroutine that comes back

	mu        sync.Mutex
	sub       *subscription // the present one
	changed   chan struct{} // closed when what is below or above changes
	ended     error         // why there is none any more
	cancelled bool
}

// subscription is a consumer of the library on its one connection.
type subscription struct {
	*link
	c        pulsar.Consumer
	messages chan pulsar.ConsumerMessage
}

// OpenConsumer finds the topic and subscribes, at the first message where the
// subscription is new. The broker hands out Prefetch messages and, once one of
// them is received, one more.
func (Driver) OpenConsumer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ConsumerOptions) (brokers.Consumer, error) {
	kind, err := subscriptionType(o.Subscription)
	if err != nil {
		return nil, err
	}
	c := &consumer{at: at, d: d, o: o, kind: kind, changed: make(chan struct{})}
	if c.sub, err = c.subscribe(ctx); err != nil {
		return nil, err
	}
	kept, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.keeping.Go(func() { c.keep(kept) })
	return c, nil
}

func subscriptionType(word string) (pulsar.SubscriptionType, error) {
	switch word {
	case "", "exclusive":
		return pulsar.Exclusive, nil
	case "shared":
		return pulsar.Shared, nil
	case "failover":
		return pulsar.Failover, nil
	case "key-shared":
		return pulsar.KeyShared, nil
	}
	return 0, fmt.Errorf("consumer.subscription-type is exclusive, shared, failover or key-shared, not %q", word)
}

func (c *consumer) subscribe(ctx context.Context) (*subscription, error) {
	a, err := enter(ctx, c.at)
	if err != nil {
		return nil, err
	}
	defer a.close()
	what := fmt.Sprintf("subscribe to topic %s as %s", c.d.Topic, c.d.Readers())
	if err := a.find(ctx, c.d); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	l, err := newLink(a.site, c.o.ClientName)
	if err != nil {
		return nil, err
	}
	// Without a buffer: what nobody has asked for stays in the library's queue.
	s := &subscription{link: l, messages: make(chan pulsar.ConsumerMessage)}
	err = l.call(ctx, func() (err error) {
		s.c, err = l.client.Subscribe(pulsar.ConsumerOptions{
			Topic: a.site.topic(c.d), SubscriptionName: c.d.OnWire(c.d.Readers()), Name: c.o.Consumer, Type: c.kind,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
			MessageChannel:              s.messages, ReceiverQueueSize: max(1, c.o.Prefetch),
			AckWithResponse: true, // without it an ack waits 100 ms in the library and dies with the process
			// The default rounds a nack's time to 256 ms.
			NackRedeliveryDelay: nackDelay, NackPrecisionBit: new(int64),
			MaxReconnectToBroker: noReconnect(), BackOffPolicyFunc: l.reconnecting,
			AutoDiscoveryPeriod: never,
		})
		return err
	})
	if err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

// close gives back what was not settled.
func (s *subscription) close(ctx context.Context) {
	s.link.close(ctx, func() {
		if s.c != nil {
			s.c.Close()
		}
	})
}

// keep comes back after each lost connection, and ends when that fails or with
// its context.
func (c *consumer) keep(ctx context.Context) {
	for {
		c.mu.Lock()
		old := c.sub
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-old.lost:
		}
		old.close(ctx)
		s, err := c.comeBack(ctx)
		c.mu.Lock()
		if err != nil {
			c.ended = err
		} else {
			c.sub = s
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// comeBack subscribes again. The broker may not have noticed yet that the old
// connection is gone, so that even a refusal is worth another try; in the end
// it is a lost connection all the same, and the last answer is only told.
func (c *consumer) comeBack(ctx context.Context) (*subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := "nobody was asked"
	for pause := aMoment; ; pause = tryAgain {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w and did not come back in %v: %s", brokers.ErrConnectionLost, patience, last)
		case <-time.After(pause):
		}
		s, err := c.subscribe(ctx)
		if err == nil {
			return s, nil
		}
		last = err.Error()
		if errors.Is(err, brokers.ErrNotFound) {
			return nil, err
		}
	}
}

// now is the present subscription, and what closes when there is another one.
func (c *consumer) now() (s *subscription, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sub, c.changed, c.ended
}

// Receive waits for the next delivery. What the library had buffered before a
// Cancel stays there: nobody has seen it, and Close gives it back.
func (c *consumer) Receive(ctx context.Context) (brokers.Delivery, error) {
	for {
		s, changed, err := c.now()
		if c.isCancelled() {
			err = brokers.ErrClosed
		}
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		select {
		case m := <-s.messages:
			if !s.alive() {
				continue // the broker hands it out once more
			}
			return &delivery{c: c, m: m.Message}, nil
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("receive: %w", ctx.Err())
		}
	}
}

func (c *consumer) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// Cancel ends the receiving; Pulsar has no word for that, so the broker goes on
// to hand out what the library has asked for, and Close gives it back.
func (c *consumer) Cancel(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cancelled {
		c.cancelled = true
		close(c.changed)
		c.changed = make(chan struct{})
	}
	return nil
}

// Close ends the subscription's connection; what was not settled goes back.
func (c *consumer) Close(ctx context.Context) error {
	if err := c.Cancel(ctx); err != nil {
		return err
	}
	c.stop()
	c.keeping.Wait()
	c.mu.Lock()
	s := c.sub
	if !errors.Is(c.ended, brokers.ErrClosed) {
		c.ended = brokers.ErrClosed
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	s.close(ctx)
	return nil
}
