// Package rabbitmq is the driver for RabbitMQ: AMQP 0-9-1 for the messages, the
// management API for the numbers that AMQP does not tell.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers"
)

// Driver implements brokers.Driver; the zero value is ready.
type Driver struct{}

// Name is the product's name.
func (Driver) Name() string { return "rabbitmq" }

// Scheme is that of RabbitMQ's URLs.
func (Driver) Scheme() string { return "amqp" }

// Keys lists the scenario keys that RabbitMQ has beside the common ones.
func (Driver) Keys() []string {
	return []string{"destination.queue", "destination.queue-type", "destination.transient",
		"consumer.prefetch", "consumer.heartbeat"}
}

// Figures lists the numbers of State: ready and unacknowledged messages, depth
// (their sum), pending (what comes later by itself; a plain queue has none) and
// consumers.
func (Driver) Figures() []string {
	return []string{"ready", "unacknowledged", "depth", "pending", "consumers"}
}

// SentWord is the status word of a confirmed send.
func (Driver) SentWord() string { return "confirmed" }

// Check says what is missing in a destination.
func (Driver) Check(d brokers.Destination) error {
	switch {
	case d.Queue == "":
		return errors.New("destination.queue is missing")
	case strings.HasPrefix(d.Queue, "amq."):
		return errors.New("destination.queue begins with amq., which RabbitMQ keeps for itself")
	case strings.ContainsFunc(d.Queue, unicode.IsControl):
		return errors.New("destination.queue has a control character")
	case len(d.Queue) > 180:
		return errors.New("destination.queue is longer than the 180 bytes that leave room for a run's suffix") // AMQP short strings have 255
	case d.QueueType != "" && d.QueueType != "classic" && d.QueueType != "quorum":
		return fmt.Errorf("destination.queue-type is classic or quorum, not %q", d.QueueType)
	case d.QueueType == "quorum" && d.Transient:
		return errors.New("a quorum queue is always durable")
	}
	return nil
}

// Prepare declares the queue.
func (Driver) Prepare(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	s, err := open(ctx, at, options{name: "mqlab setup"})
	if err != nil {
		return err
	}
	var args amqp.Table
	if d.QueueType == "quorum" {
		args = amqp.Table{"x-queue-type": "quorum"}
	}
	err = s.call(ctx, func() error {
		_, err := s.ch.QueueDeclare(d.OnWire(d.Queue), !d.Transient, false, false, false, args)
		return err
	})
	if err != nil {
		err = fmt.Errorf("declare queue %s: %w", d.Queue, err)
	}
	return errors.Join(err, s.close(ctx))
}

// Remove deletes the queue, whatever is in it.
func (Driver) Remove(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	s, err := open(ctx, at, options{name: "mqlab cleanup"})
	if err != nil {
		return err
	}
	err = s.call(ctx, func() error {
		_, err := s.ch.QueueDelete(d.OnWire(d.Queue), false, false, false)
		return err
	})
	if err != nil && !errors.Is(err, brokers.ErrNotFound) {
		return errors.Join(fmt.Errorf("delete queue %s: %w", d.Queue, err), s.close(ctx))
	}
	return s.close(ctx)
}

// Probe asks the broker for its version.
func (Driver) Probe(ctx context.Context, at brokers.Address) (string, error) {
	s, err := open(ctx, at, options{name: "mqlab probe"})
	if err != nil {
		return "", err
	}
	version, _ := s.conn.Properties["version"].(string)
	return version, s.close(ctx)
}
