package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-client-go/v2"
	client "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

const (
	// pullBatch is the most that one pull brings. The client puts up to 34 pulls
	// aside; at 1,000 messages it would start to log, and read what another of its
	// goroutines writes.
	pullBatch = 16
)

// pushClient is the official push consumer, with methods that its interface does
// not have.
type pushClient interface {
	rmq.PushConsumer
	PersistConsumerOffset() error
	Rebalance()
}

// consumer turns the handler that the client calls into one delivery at a time:
// the handler waits until the role has settled what it received.
type consumer struct {
	s        *session
	d        brokers.Destination
	n        names
	name     string
	instance string
	client   pushClient

	offers    chan *delivery
	cancelled chan struct{}
	closed    chan struct{}
	ending    sync.Once
	closing   sync.Once

	balanced chan struct{} // closed when the first sharing-out has been here for both topics
	quiesced chan struct{} // closed when the last one has

	mu sync.Mutex
	// terms counts by topic how often this consumer got or lost the queue: odd
	// means that it has it.
	terms map[string]int
	first int // how often the first sharing-out has been here
	last  bool
	// places is for pullOnItsWay.
	places places
}

// OpenConsumer joins the group. It returns when the broker has the member; the
// queue may still be another member's. There is no prefetch: the broker hands out
// nothing that it would have to take back, and what the client has pulled ahead
// is nobody's until it is received. (A client that pulled 34 times ahead of a
// message that is held for more than two minutes takes its queue for stuck and
// begins it again: the message then comes twice, and its ack is an error.)
func (Driver) OpenConsumer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ConsumerOptions) (brokers.Consumer, error) {
	c := &consumer{
		d: d, n: onWire(d), name: o.Consumer, instance: cmp.Or(o.Instance, instance(o.ClientName)),
		offers: make(chan *delivery), cancelled: make(chan struct{}), closed: make(chan struct{}),
		balanced: make(chan struct{}), quiesced: make(chan struct{}), terms: map[string]int{}, places: places{},
	}
	var err error
	if c.s, err = open(ctx, at, c.n.topic); err == nil {
		_, err = c.s.route(ctx, c.n.retry)
		if errors.Is(err, brokers.ErrNotFound) {
			err = fmt.Errorf("the group's retry topic is missing: %w", err)
		}
		if err == nil {
			c.s.watch(c.n.topic)
			err = c.start(ctx)
		}
		if err != nil {
			c.s.close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe group %s to topic %s: %w", d.Readers(), d.Topic, err)
	}
	return c, nil
}

// start makes the client and starts it. The client's Start knows no context: when
// ctx ends first, what it has started is shut down as soon as it is back.
func (c *consumer) start(ctx context.Context) error {
	quiet()
	made, err := rmq.NewPushConsumer(
		client.WithNsResolver(primitive.NewPassthroughResolver([]string{c.s.nameServer()})),
		client.WithInstance(c.instance),
		client.WithGroupName(c.n.group),
		client.WithCredentials(c.s.cred),
		client.WithConsumeFromWhere(client.ConsumeFromFirstOffset),
		client.WithConsumeMessageBatchMaxSize(1),
		client.WithConsumeGoroutineNums(1),
		client.WithPullBatchSize(pullBatch),
		client.WithStrategy(c.allocate),
	)
	if err != nil {
		return err
	}
	c.client = made.(pushClient)
	if err := c.client.Subscribe(c.n.topic, client.MessageSelector{}, c.handle); err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() { // ends with Start, which the client's own timeouts bound
		started <- c.client.Start()
	}()
	select {
	case err := <-started:
		if err == nil {
			c.await(ctx, c.balanced)
		}
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.s.lost():
		err = brokers.ErrConnectionLost
	}
	close(c.closed)
	go func() { // as above
		<-started           //nolint:errcheck // the caller has gone
		c.client.Shutdown() //nolint:errcheck // it never fails
	}()
	return err
}

// await waits for something that the client is about to do.
func (c *consumer) await(ctx context.Context, what <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-what:
	case <-c.s.lost():
	case <-ctx.Done():
	}
}

// shutdown ends the client, which sends its offsets once more: where that leads
// nowhere, it goes on behind the caller's back until its own dial ends, 15 s.
func (c *consumer) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	go func() {
		defer cancel()
		if !c.s.gone() {
			c.quiesce(ctx)
		}
		c.giveUp()
		c.client.Shutdown() //nolint:errcheck // it never fails
	}()
	<-ctx.Done()
}

// quiesce lets the client finish sharing out queues. A Shutdown in the middle of
// that would be followed by a heartbeat on a new connection, which puts a member
// into the group that nobody can remove for two minutes.
func (c *consumer) quiesce(ctx context.Context) {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.client.Suspend() // no more of it when the broker asks for it
	// A second Start does nothing but one more sharing-out, in its turn after
	// those under way.
	if c.client.Start() == nil {
		c.await(ctx, c.quiesced)
	}
}

// giveUp lets the client drop its queues as if they were another's by now.
// Shutdown would close their channels while a pull may be sending on one, which
// ends the process.
func (c *consumer) giveUp() {
	c.client.PersistConsumerOffset() //nolint:errcheck // every ack has seen to it already
	for _, topic := range []string{c.n.topic, c.n.retry} {
		c.client.Unsubscribe(topic) //nolint:errcheck // it never fails
	}
	c.client.Rebalance()
}

// allocate is the client's own way to share out queues; on the way the consumer
// learns which ones it has. It is called for the topic and for the retry topic.
func (c *consumer) allocate(group, self string, all []*primitive.MessageQueue, members []string) []*primitive.MessageQueue {
	mine := client.AllocateByAveragely(group, self, all, members)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		if byStart() && !isClosed(c.quiesced) {
			close(c.quiesced)
		}
		runtime.Goexit() // nothing is to follow
	}
	if c.first < 2 && byStart() {
		if c.first++; c.first == 2 {
			close(c.balanced)
		}
	}
	if len(all) > 0 {
		if has := c.terms[all[0].Topic]%2 == 1; has != (len(mine) > 0) {
			c.terms[all[0].Topic]++
		}
	}
	return mine
}

// byStart reports whether the client shares out queues because of a Start, and
// not because the broker or a timer told it to: by the client's function that is
// on the stack, since nothing else tells.
func byStart() bool {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".RebalanceImmediately") {
			return true
		}
		if !more {
			return false
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (c *consumer) term(topic string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms[topic]
}

// handle is called by the client, for the topic and for the retry topic one
// message after the other each. A message that is not settled must count neither
// as consumed nor as failed, and the end of the goroutine is the only result
// that is neither.
func (c *consumer) handle(ctx context.Context, messages ...*primitive.MessageExt) (client.ConsumeResult, error) {
	concurrently, _ := primitive.GetConcurrentlyCtx(ctx)
	m := messages[0] // the batch size is 1
	d := &delivery{c: c, m: m, topic: concurrently.MQ.Topic, term: c.term(concurrently.MQ.Topic), settled: make(chan verdict, 1)}
	select {
	case c.offers <- d:
	case <-c.closed:
		runtime.Goexit()
	}
	select {
	case v := <-d.settled:
		if v.dropped {
			runtime.Goexit()
		}
		concurrently.DelayLevelWhenNextConsume = v.level
		return v.result, nil
	case <-c.closed:
		runtime.Goexit()
	}
	return client.ConsumeRetryLater, nil
}

// Receive waits for the next delivery. The client tries for ever to reach a
// broker that is gone; the session's own connection ends the waiting.
func (c *consumer) Receive(ctx context.Context) (brokers.Delivery, error) {
	if err := c.ended(); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	select {
	case d := <-c.offers:
		if err := c.ended(); err != nil {
			d.settled <- verdict{dropped: true}
			return nil, fmt.Errorf("receive: %w", err)
		}
		return d, nil
	case <-c.cancelled:
	case <-c.s.lost():
	case <-ctx.Done():
		return nil, fmt.Errorf("receive: %w", ctx.Err())
	}
	return nil, fmt.Errorf("receive: %w", c.ended())
}

// ended says why no more deliveries come, nil if they do.
func (c *consumer) ended() error {
	select {
	case <-c.cancelled:
		return brokers.ErrClosed
	default:
	}
	if c.s.gone() {
		return brokers.ErrConnectionLost
	}
	return nil
}

// Cancel ends the handing-out. RocketMQ gives a queue to others only when its
// consumer leaves the group, and a consumer that has left can settle nothing: so
// the member stays until Close.
func (c *consumer) Cancel(context.Context) error {
	c.ending.Do(func() { close(c.cancelled) })
	return nil
}

// Close leaves the group and returns when the broker has noticed, for which
// closeTimeout is its time. What was not settled comes again.
func (c *consumer) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.ending.Do(func() { close(c.cancelled) })
		close(c.closed)
		c.shutdown(ctx)
		c.awaitLeft(ctx)
		c.s.close()
	})
	return nil
}

// awaitLeft waits until the broker has seen the end of the client's connection.
func (c *consumer) awaitLeft(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	for {
		ids, err := c.s.consumers(ctx, c.n.group)
		if err != nil || !slices.ContainsFunc(ids, func(id string) bool { return strings.HasSuffix(id, "@"+c.instance) }) {
			return
		}
		if pause(ctx, askAgain) != nil {
			return
		}
	}
}

// verdict is what the role made of a delivery.
type verdict struct {
	result  client.ConsumeResult
	level   int  // when the broker gives it back
	dropped bool // nothing was made of it
}

// errSettled and errMoved say why the driver knows that an ack does not count.
var (
	errSettled = errors.New("it is settled already")
	errMoved   = errors.New("the queue is another consumer's now")
)

const (
	// settleTimeout is how long the client has to tell the broker of a result.
	settleTimeout = 2 * time.Second
	// persistEvery is the pause between two requests to send the offset. More of
	// them at a time could overtake each other in the broker.
	persistEvery = 10 * time.Millisecond
)
