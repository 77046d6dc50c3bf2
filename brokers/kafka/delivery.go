package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"mqlab/brokers"
)

// delivery is one handing-over of a record.
type delivery struct {
	c       *consumer
	r       *kgo.Record
	settled bool
}

// Message is the message as it was sent.
func (d *delivery) Message() brokers.Message {
	m := brokers.Message{Key: string(d.r.Key), Body: d.r.Value}
	for _, h := range d.r.Headers {
		switch h.Key {
		case headerMessage:
			m.ID = string(h.Value)
		case headerType:
			m.Type = string(h.Value)
		case headerCorrelation:
			m.CorrelationID = string(h.Value)
		case headerTrace:
			m.TraceID = string(h.Value)
		}
	}
	return m
}

// Marks hold the record's place. Kafka knows positions only: it neither marks
// nor counts what it hands over again.
func (d *delivery) Marks() brokers.Marks {
	return brokers.Marks{Redelivered: brokers.Unknown, Attempt: 1, Consumer: d.c.name,
		Fields: append(place(d.r), brokers.Field{Key: "consumerGroup", Value: d.c.d.Readers()})}
}

// Ack commits the position behind the record: everything before it in the
// partition counts as done, too. It returns with the broker's answer.
func (d *delivery) Ack(ctx context.Context) error {
	return d.settle("ack", func() error {
		to := d.r.Offset + 1
		if p, ok := d.c.passed[d.r.Partition]; ok && p.from == to {
			to = p.to
		}
		return d.c.commit(ctx, d.r.Partition, d.r.LeaderEpoch, to)
	})
}

// Nack goes back to the record, so that it and what lies behind it in the
// partition are polled again; Kafka itself has no word for it. Without requeue
// the record is passed by: Kafka has no dead letters.
func (d *delivery) Nack(ctx context.Context, requeue bool) error {
	if !requeue {
		return d.Ack(ctx)
	}
	return d.settle("nack", func() error {
		d.c.polled = slices.DeleteFunc(d.c.polled, func(r *kgo.Record) bool { return r.Partition == d.r.Partition })
		delete(d.c.passed, d.r.Partition)
		d.c.s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
			d.r.Topic: {d.r.Partition: {Epoch: d.r.LeaderEpoch, Offset: d.r.Offset}}})
		return nil
	})
}

// settle does it once: a second commit could move the group back over what was
// committed since.
func (d *delivery) settle(what string, f func() error) error {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if d.settled {
		return fmt.Errorf("%s offset %d: %w: it is settled already", what, d.r.Offset, brokers.ErrAckRefused)
	}
	if err := f(); err != nil {
		return fmt.Errorf("%s offset %d: %w", what, d.r.Offset, err)
	}
	d.settled = true
	d.c.inHand--
	return nil
}

// commit moves the group's position, on the word of the member that polled. A
// refusal means that the group has gone on without it: what was polled belongs
// to somebody else by now. The caller holds the lock.
func (c *consumer) commit(ctx context.Context, partition, epoch int32, to int64) error {
	if c.refused {
		return fmt.Errorf("%w: the group went on without this member", brokers.ErrAckRefused)
	}
	committing, cancel := c.s.during(ctx)
	defer cancel()
	r := &kgo.Record{Topic: c.d.OnWire(c.d.Topic), Partition: partition, LeaderEpoch: epoch, Offset: to - 1}
	err := c.s.client.CommitRecords(committing, r)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	c.refused, c.polled = true, nil
	clear(c.passed)
	return fmt.Errorf("%w: %w", brokers.ErrAckRefused, c.s.reason(ctx, err))
}
