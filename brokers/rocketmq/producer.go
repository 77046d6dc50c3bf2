package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	rmq "github.com/apache/rocketmq-client-go/v2"
	rmqerrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"mqlab/brokers"
)

// sendTimeout bounds one send when the caller's context does not.
const sendTimeout = 10 * time.Second

// sender publishes with the official client, one synchronous send after another.
type sender struct {
	s      *session
	topic  string
	client rmq.Producer
	idle   chan struct{} // closed when the last SendSync is back
}

// OpenProducer connects. It looks for the topic first: the client would let the
// broker make a missing one.
func (Driver) OpenProducer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ProducerOptions) (brokers.Producer, error) {
	s, err := open(ctx, at, d.OnWire(d.Topic))
	if err != nil {
		return nil, fmt.Errorf("open a producer for topic %s: %w", d.Topic, err)
	}
	quiet()
	p := &sender{s: s, topic: d.OnWire(d.Topic), idle: make(chan struct{})}
	close(p.idle)
	p.client, err = rmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.nameServer()})),
		producer.WithInstanceName(instance(o.ClientName)),
		producer.WithGroupName(p.topic+"-producer"),
		producer.WithCredentials(s.cred),
		producer.WithRetry(0), // a second try could store the message twice
		producer.WithSendMsgTimeout(sendTimeout),
		producer.WithCompressMsgBodyOverHowmuch(math.MaxInt), // the body goes out as it is
	)
	if err == nil {
		err = p.client.Start()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("open a producer for topic %s: %w", d.Topic, err)
	}
	s.watch(p.topic)
	return p, nil
}

// result is what the client's SendSync returned.
type result struct {
	r   *primitive.SendResult
	err error
}

// Send publishes and waits for the broker's answer, and then until an inspector
// would count the message. A message that the broker stored but did not flush or
// replicate as it is set up to is an error.
func (p *sender) Send(ctx context.Context, m brokers.Message) (brokers.Receipt, error) {
	start := time.Now()
	if p.s.gone() {
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, brokers.ErrConnectionLost)
	}
	// The client waits for its answer even when the connection is gone, and looks
	// for a route without regard to a context.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.s.alive, cancel)()
	sent, idle := make(chan result, 1), make(chan struct{})
	p.idle = idle
	go func() { // ends with SendSync, which waiting or the client's 6 s bound
		r, err := p.client.SendSync(waiting, toWire(p.topic, m))
		sent <- result{r, err}
		close(idle)
	}()
	var r *primitive.SendResult
	var err error
	select {
	case s := <-sent:
		r, err = s.r, s.err
	case <-waiting.Done():
		err = waiting.Err()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, ctx.Err())
	case err != nil:
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, p.failure(err))
	case r.Status != primitive.SendOK:
		return brokers.Receipt{}, fmt.Errorf("send %s: %w: the message is stored, but its status is %d", m.ID, brokers.ErrRefused, r.Status)
	}
	took := time.Since(start)
	p.s.awaitCounted(ctx, p.topic, r.QueueOffset)
	return brokers.Receipt{Took: took, Fields: []brokers.Field{
		{Key: "partitionOrQueue", Value: strconv.Itoa(r.MessageQueue.QueueId)},
		{Key: "offset", Value: strconv.FormatInt(r.QueueOffset, 10)},
		{Key: "brokerMessageId", Value: r.OffsetMsgID},
	}}, nil
}

// Close ends the client, behind the caller's back where a send that was given up
// still looks for its route.
func (p *sender) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	ended := make(chan struct{})
	go func() { // ends with the send, see there
		defer close(ended)
		<-p.idle
		p.client.Shutdown() //nolint:errcheck // it never fails
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	p.s.close()
	return nil
}

// failure is what went wrong with a send, in the contract's words. The client
// has the broker's own words only as text.
func (p *sender) failure(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled): // by the watch, not by the caller
		return brokers.ErrConnectionLost
	case p.s.gone():
		return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
	case errors.Is(err, rmqerrors.ErrNotRunning):
		return fmt.Errorf("%w: %w", brokers.ErrClosed, err)
	case strings.HasSuffix(text, "route info not found"):
		return fmt.Errorf("%w: %w: %w", brokers.ErrRefused, brokers.ErrNotFound, err)
	case strings.HasPrefix(text, "CODE: "):
		return fmt.Errorf("%w: %w", brokers.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
}
