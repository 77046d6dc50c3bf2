package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

const (
	// retrySoon is the delay level of a message that is given back: one second on
	// every broker. The client's own choice would be ten seconds, then thirty.
	retrySoon = 1
	// deadLetter is the level that sends a message to the dead-letter topic.
	deadLetter = -1
)

// delivery is one handing-over. Its handler waits for the verdict.
type delivery struct {
	c       *consumer
	m       *primitive.MessageExt
	topic   string // where it lay: the topic or the group's retry topic
	term    int    // the consumer's term with that topic's queue
	settled chan verdict
	done    atomic.Bool
}

// Message is the message as it was published.
func (d *delivery) Message() brokers.Message { return fromWire(d.m) }

// Marks: RocketMQ counts how often a message was given back. It has no word for
// a consumer that died.
func (d *delivery) Marks() brokers.Marks {
	m := brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1 + int(d.m.ReconsumeTimes), Consumer: d.c.name, Fields: []brokers.Field{
		{Key: "partitionOrQueue", Value: strconv.Itoa(d.m.Queue.QueueId)},
		{Key: "offset", Value: strconv.FormatInt(d.m.QueueOffset, 10)},
		{Key: "consumerGroup", Value: d.c.d.Readers()},
	}}
	if d.m.ReconsumeTimes > 0 {
		m.Redelivered = brokers.Yes
	}
	return m
}

// Ack lets the handler return success and waits until the broker has the offset.
func (d *delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", verdict{result: client.ConsumeSuccess})
}

// Nack makes the client send the message back: to come again after a second,
// after those that wait already, or to the dead-letter topic. It has two halves,
// the copy and the offset; the client moves the offset after the copy was taken,
// so that a crash between the two gives the message twice, but loses nothing.
func (d *delivery) Nack(ctx context.Context, requeue bool) error {
	v := verdict{result: client.ConsumeRetryLater, level: deadLetter}
	if requeue {
		v.level = retrySoon
	}
	return d.settle(ctx, "nack", v)
}

// settle gives the verdict to the handler. The broker refuses no late ack, the
// client throws it away without a word; that it does not count is known here,
// since a queue goes to another consumer only when this client shares them out
// anew, and a connection is lost only where the session sees it.
func (d *delivery) settle(ctx context.Context, what string, v verdict) error {
	fail := func(err error) error { return fmt.Errorf("%s %s: %w", what, d.Message().ID, err) }
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	refuse := func(err error) error { return fail(fmt.Errorf("%w: %w", brokers.ErrAckRefused, err)) }
	if !d.done.CompareAndSwap(false, true) {
		return refuse(errSettled)
	}
	select {
	case <-d.c.closed:
		return refuse(brokers.ErrClosed)
	default:
	}
	if d.c.s.gone() {
		return refuse(brokers.ErrConnectionLost)
	}
	if d.c.term(d.topic) != d.term {
		d.settled <- verdict{dropped: true}
		return refuse(errMoved)
	}
	d.settled <- v
	err := d.confirm(ctx)
	if err == nil && v.result != client.ConsumeSuccess {
		err = d.c.s.awaitIndexed(ctx) // the copy
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, brokers.ErrConnectionLost):
		return refuse(err)
	case ctx.Err() == nil && d.c.term(d.topic) != d.term:
		return refuse(errMoved)
	}
	return fail(err)
}

// confirm waits until the group's offset on the broker is past the message. The
// client stores the offset in its memory some time after the handler has
// returned, sends it when it is asked to, and gets no answer. It is asked when
// nothing older can come after it on the client's connection.
func (d *delivery) confirm(parent context.Context) error {
	ctx, cancel := context.WithTimeoutCause(parent, settleTimeout,
		fmt.Errorf("%w: the client did not bring the offset to the broker within %v", brokers.ErrRefused, settleTimeout))
	defer cancel()
	var sent time.Time
	for wait := askAgain / 8; ; wait = min(2*wait, persistEvery) {
		var err error
		moved := d.c.term(d.topic) != d.term
		switch {
		case moved: // the client has sent the offset when it gave up the queue
		case sent.IsZero():
			if d.c.remembers(d.topic) <= d.m.QueueOffset || d.c.pullOnItsWay() {
				break
			}
			fallthrough
		case time.Since(sent) > persistEvery:
			err, sent, wait = d.c.client.PersistConsumerOffset(), time.Now(), askAgain/8
		}
		if err == nil && (moved || !sent.IsZero()) {
			var offset *int64
			if offset, err = d.c.s.committed(ctx, d.c.n.group, d.topic); err == nil && offset != nil && *offset > d.m.QueueOffset {
				return nil
			}
		}
		if err == nil {
			err = pause(ctx, wait)
		}
		if err != nil {
			if ctx.Err() != nil && parent.Err() == nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
}
