package role

import (
	"context"
	"errors"
	"fmt"

	"mqlab/brokers"
	"mqlab/cmd/mqlab/role/designs"
	"mqlab/gate"
	"mqlab/labs"
)

// consumer takes deliveries one after the other and lets its design handle
// them.
type consumer struct {
	*role
	settings labs.Consumer
	design   designs.Design
	store    *Store
	source   brokers.Consumer
}

// consume runs until the runner asks for the end, a signal comes, or so many
// deliveries were handled as the command line says.
func (r *role) consume(ctx context.Context) (err error) {
	c := &consumer{role: r, settings: r.lab.Scenario.ConsumerOf(r.step)}
	if c.design, err = designs.New(c.settings.Design); err != nil {
		return err
	}
	if c.store, err = OpenStore(ctx, r.storePath(c.settings.Store), r.lab.Name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.store.Close()) }()
	c.source, err = r.driver.OpenConsumer(ctx, r.o.Address, r.dest, brokers.ConsumerOptions{ClientName: r.client,
		Consumer: c.settings.Name, Prefetch: c.settings.Prefetch, Heartbeat: c.settings.Heartbeat.Std(),
		Instance: r.lab.Scenario.InstanceOf(r.step), Protocol: c.settings.Protocol, Session: c.settings.Session.Std(),
		Isolation: c.settings.Isolation, Subscription: c.settings.SubscriptionType})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.source.Close(ctx)) }()
	received, err := c.loop(ctx)
	// The last line is written when the end went well too: nothing follows it.
	if err := errors.Join(err, c.design.Drain(ctx), c.source.Close(ctx)); err != nil {
		return err
	}
	r.log.line("done", labs.Pair{Key: r.dest.Kind(), Value: r.dest.Name()}, number("received", received))
	return nil
}

// loop ends without an error when it was asked to.
func (c *consumer) loop(ctx context.Context) (received int64, err error) {
	receiving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := c.watch(ctx, receiving, stop)
	defer func() { stop(errStopped); err = errors.Join(err, <-watched) }()
	for c.o.Received == 0 || received < int64(c.o.Received) {
		d, err := c.source.Receive(receiving)
		if err != nil {
			if errors.Is(context.Cause(receiving), errStopped) || errors.Is(err, brokers.ErrClosed) { // a Cancel is heard before its reason
				return received, nil
			}
			return received, err
		}
		received++
		if err := c.handle(ctx, d); err != nil {
			return received, err
		}
		if receiving.Err() != nil {
			return received, nil
		}
	}
	return received, nil
}

// errStopped ends the receiving in order.
var errStopped = errors.New("asked to stop")

// watch stops the receiving on the runner's word or on a signal. On a signal
// the subscription is cancelled at once, before a delivery in hand is
// acknowledged, so that the ack does not bring the next one.
func (c *consumer) watch(ctx, receiving context.Context, stop func(error)) <-chan error {
	ended := make(chan error, 1)
	signals, unwatch := stopSignals()
	go func() { // ends with the receiving
		defer unwatch()
		select {
		case <-c.gate.Finishing():
			stop(errStopped)
		case <-signals:
			err := c.source.Cancel(ctx)
			c.log.line("stopping", labs.Pair{Key: c.dest.Kind(), Value: c.dest.Name()})
			stop(errStopped)
			ended <- err
			return
		case <-receiving.Done():
		}
		ended <- nil
	}()
	return ended
}

// handle is one delivery from its line to its acknowledgement.
func (c *consumer) handle(ctx context.Context, d brokers.Delivery) error {
	h := &handling{consumer: c, d: d, marks: d.Marks()}
	envelope, err := labs.ReadEnvelope(d.Message().Body)
	if err != nil {
		envelope = labs.Envelope{MessageID: d.Message().ID, AggregateID: d.Message().Key}
	}
	h.about = append(envelope.Pairs(), labs.Pair{Key: "destination", Value: c.dest.Name()})
	h.envelope, h.readable = envelope, err == nil
	c.log.line("received", append(append(h.pairs(), words(h.marks.Fields)...), labs.Pair{Key: "consumer", Value: h.marks.Consumer}, number("attempt", int64(h.marks.Attempt)),
		labs.Pair{Key: "redelivered", Value: string(h.marks.Redelivered)})...)
	if err == nil {
		err = h.work(ctx)
	}
	if err != nil {
		return h.failed(ctx, err)
	}
	return nil
}

// handling is what belongs to one delivery.
type handling struct {
	*consumer
	d        brokers.Delivery
	marks    brokers.Marks
	envelope labs.Envelope
	about    []labs.Pair
	settled  bool
	readable bool // the body is an envelope
}

// pairs are a fresh copy of what every line about the delivery begins with.
func (h *handling) pairs() []labs.Pair { return append([]labs.Pair(nil), h.about...) }

func (h *handling) work(ctx context.Context) error {
	if err := h.reach(ctx, gate.AfterDelivery); err != nil {
		return err
	}
	order, err := h.envelope.Payload.Order()
	if err != nil {
		return err
	}
	key := h.envelope.MessageID
	if h.settings.Key == "aggregateId" {
		key = h.envelope.AggregateID
	}
	return h.design.Handle(ctx, &designs.Work{Key: key, MessageID: h.envelope.MessageID, Order: order,
		Redelivered: h.marks.Redelivered == brokers.Yes, Store: h.store,
		Reach: h.reach, Confirm: h.confirm, Log: h.logAttempt})
}

func (h *handling) reach(ctx context.Context, cp gate.Checkpoint) error {
	return h.role.reach(ctx, cp, h.envelope.MessageID, h.envelope.AggregateID, func() { h.log.line("crash_injected", h.pairs()...) })
}

func (h *handling) confirm(ctx context.Context) error {
	h.settled = true
	err := h.d.Ack(ctx)
	if errors.Is(err, brokers.ErrAckRefused) {
		h.log.line("ack_refused", append(h.pairs(), labs.Pair{Key: "error", Value: err.Error()})...)
	}
	return err
}

func (h *handling) logAttempt(status string, pairs ...labs.Pair) {
	h.log.line(status, append(append(h.pairs(), number("attempt", int64(h.marks.Attempt))), pairs...)...)
}

// failed gives the delivery back: to be tried again when a second try can
// help, for good when it cannot. What the broker did end is the role's end.
func (h *handling) failed(ctx context.Context, err error) error {
	kind := "error"
	switch {
	case errors.Is(err, brokers.ErrConnectionLost), errors.Is(err, brokers.ErrRefused), errors.Is(err, brokers.ErrAckRefused):
		return err
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errInjected):
		kind = "injected"
	case errors.Is(err, labs.ErrInvalidOrder):
		kind = "invalid_order"
	}
	h.log.line("business_failed", append(h.pairs(), labs.Pair{Key: "errorType", Value: kind}, labs.Pair{Key: "error", Value: err.Error()})...)
	if h.settled {
		return nil // too late to give it back
	}
	again := kind != "invalid_order" && h.readable
	if err := h.d.Nack(ctx, again); err != nil {
		return fmt.Errorf("give the delivery back: %w", err)
	}
	return nil
}
