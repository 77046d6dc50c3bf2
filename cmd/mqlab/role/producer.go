package role

import (
	"context"
	"errors"

	"mqlab/brokers"
	"mqlab/gate"
	"mqlab/labs"
)

// produce sends the messages one by one, each after the confirm of the one
// before it.
func (r *role) produce(ctx context.Context) (err error) {
	settings := r.lab.Scenario.ProducerOf(r.step)
	p, err := r.driver.OpenProducer(ctx, r.o.Address, r.dest, brokers.ProducerOptions{ClientName: r.client, Transient: settings.Transient})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	sent := int64(0)
	for _, name := range settings.Messages {
		if err := r.send(ctx, p, r.lab.Fixtures[name]); err != nil {
			return err
		}
		sent++
	}
	r.log.line("done", labs.Pair{Key: "destination", Value: r.dest.Name()}, number(r.driver.SentWord(), sent))
	return nil
}

// send publishes one message; its line is written when the confirm is handled.
func (r *role) send(ctx context.Context, p brokers.Producer, f labs.Fixture) error {
	e := f.Envelope
	reach := func(cp gate.Checkpoint) error {
		return r.reach(ctx, cp, e.MessageID, e.AggregateID, func() {
			r.log.line("crash_injected", append(e.Pairs(), labs.Pair{Key: "destination", Value: r.dest.Name()})...)
		})
	}
	if err := reach(gate.BeforePublish); err != nil {
		return err
	}
	receipt, err := p.Send(ctx, brokers.Message{ID: e.MessageID, Key: e.AggregateID, Type: e.EventType,
		CorrelationID: e.CorrelationID, TraceID: e.TraceID, Body: f.Body})
	if errors.Is(err, brokers.ErrUnroutable) {
		r.log.line("returned", append(e.Pairs(), labs.Pair{Key: "destination", Value: r.dest.Name()})...)
	}
	if err != nil {
		return err
	}
	if err := reach(gate.BeforeConfirm); err != nil {
		return err
	}
	pairs := append(e.Pairs(), labs.Pair{Key: "destination", Value: r.dest.Name()})
	pairs = append(pairs, words(receipt.Fields)...)
	r.log.line(r.driver.SentWord(), append(pairs, number("durationMs", receipt.Took.Milliseconds()))...)
	return reach(gate.AfterConfirm)
}
