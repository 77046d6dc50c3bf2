package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mqlab/brokers"
)

// consumer is one member of a group that hands out the polled records one by
// one.
type consumer struct {
	s        *session
	d        brokers.Destination
	name     string
	prefetch int
	dynamic  bool
	ended    context.Context // ends with Cancel and Close
	end      context.CancelFunc

	mu      sync.Mutex
	polled  []*kgo.Record    // not handed out yet
	inHand  int              // handed out and not settled
	refused bool             // the group has gone on without this member since the last poll
	passed  map[int32]passed // control records behind the last one in hand
}

// passed is a row of control records from one offset on, to be committed past
// with the record before it.
type passed struct{ from, to int64 }

// OpenConsumer joins the group: as a static member when it has an instance,
// which takes the place of the one before it at once, otherwise as a dynamic
// one, which a crashed one keeps waiting until its session has ended.
func (Driver) OpenConsumer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ConsumerOptions) (brokers.Consumer, error) {
	opts := []kgo.Opt{kgo.ConsumerGroup(d.OnWire(d.Readers())), kgo.ConsumeTopics(d.OnWire(d.Topic)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.FetchMaxWait(500 * time.Millisecond),
		// A commit must meet the generation that the record was polled in: without
		// the block a late one is taken and moves the group back.
		kgo.BlockRebalanceOnPoll(),
		// They are never handed out, but only who sees them can commit past them.
		kgo.KeepControlRecords()}
	if o.Instance != "" {
		opts = append(opts, kgo.InstanceID(d.OnWire(o.Instance)))
	}
	if o.Session > 0 {
		opts = append(opts, kgo.SessionTimeout(o.Session), kgo.HeartbeatInterval(o.Session/4))
	}
	if o.Isolation == "read-committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.Protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	s, err := open(at, o.ClientName, opts...)
	if err != nil {
		return nil, err
	}
	if _, err := s.topic(ctx, d); err != nil {
		s.close()
		return nil, err
	}
	c := &consumer{s: s, d: d, name: o.Consumer, prefetch: max(1, o.Prefetch), dynamic: o.Instance == "", passed: map[int32]passed{}}
	c.ended, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Receive polls when nothing is left of the poll before.
func (c *consumer) Receive(ctx context.Context) (brokers.Delivery, error) {
	for {
		if c.ended.Err() != nil {
			return nil, fmt.Errorf("receive: %w", brokers.ErrClosed)
		}
		r, err := c.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		if r != nil {
			return &delivery{c: c, r: r}, nil
		}
		if err := c.poll(ctx); err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
	}
}

// next takes the next record that is a message, or nil when a poll is due.
// Control records, which end transactions, are committed past: at once, or
// with the message before them when that is still in hand.
func (c *consumer) next(ctx context.Context) (*kgo.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.polled) > 0 {
		r := c.polled[0]
		c.polled = c.polled[1:]
		if !r.Attrs.IsControl() {
			c.inHand++
			return r, nil
		}
		if c.inHand == 0 {
			if err := c.commit(ctx, r.Partition, r.LeaderEpoch, r.Offset+1); err != nil {
				return nil, err
			}
			continue
		}
		p, ok := c.passed[r.Partition]
		if !ok || p.to != r.Offset {
			p.from = r.Offset
		}
		p.to = r.Offset + 1
		c.passed[r.Partition] = p
	}
	return nil, nil
}

// poll waits for records. A rebalance may go on only while nothing is in hand.
func (c *consumer) poll(ctx context.Context) error {
	c.mu.Lock()
	if c.inHand == 0 {
		c.s.client.AllowRebalance()
		c.refused = false
	}
	c.mu.Unlock()
	polling, cancel := c.s.during(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ended, cancel)
	defer stop()
	fetches := c.s.client.PollRecords(polling, c.prefetch)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polled = append(c.polled, fetches.Records()...)
	if len(c.polled) == 0 && c.inHand == 0 {
		c.s.client.AllowRebalance() // a poll that was cut short blocks it, too
	}
	switch {
	case len(c.polled) > 0:
		return nil
	case c.ended.Err() != nil:
		return brokers.ErrClosed
	case polling.Err() != nil:
		return c.s.reason(ctx, polling.Err())
	}
	for _, e := range fetches.Errors() {
		var lost *kgo.ErrDataLoss
		if errors.As(e.Err, &lost) {
			continue // the client goes on from where the log begins
		}
		return c.s.reason(ctx, e.Err)
	}
	return nil
}

// Cancel ends the polling. The member stays in the group, or the commits of
// what is in hand would be refused.
func (c *consumer) Cancel(context.Context) error {
	c.end()
	return nil
}

// Close leaves the group: a dynamic member says goodbye, the place of a static
// one stays taken until its session ends or it comes back.
func (c *consumer) Close(ctx context.Context) error {
	c.end()
	c.s.once.Do(func() {
		if c.dynamic {
			leaving, cancel := context.WithTimeout(ctx, closeTimeout)
			leaving, stop := c.s.during(leaving)
			c.s.client.AllowRebalance()
			// Whoever cannot say goodbye is missed after its session.
			c.s.client.LeaveGroupContext(leaving) //nolint:errcheck // as above
			stop()
			cancel()
		}
		c.s.stop()
		c.s.client.CloseAllowingRebalance()
		<-c.s.watched
	})
	return nil
}
