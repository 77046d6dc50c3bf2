// Package designs holds the consumer designs, one file each: the order in
// which a consumer claims a message, writes its business row and acknowledges.
// Each comment says what the design promises and where it breaks. The wrong
// ones exist to be caught.
package designs

import (
	"context"
	"errors"
	"fmt"

	"mqlab/gate"
	"mqlab/labs"
)

// ErrDuplicate says that a marker with the same key was there before.
var ErrDuplicate = errors.New("the key was claimed before")

// Design handles deliveries one after the other.
type Design interface {
	// Handle does a delivery's work and acknowledges it. An error means that
	// the work was not done, or that the acknowledgement failed.
	Handle(ctx context.Context, w *Work) error
	// Drain waits until nothing that was handed over is still under way.
	Drain(ctx context.Context) error
}

// Work is one delivery as a design sees it.
type Work struct {
	Key         string // what the dedupe marker is about
	MessageID   string
	Order       labs.Order
	Redelivered bool // the broker's mark
	Store       Store

	// Reach is a checkpoint: it may never return (halt), return late (hold) or
	// return an error (fail).
	Reach func(context.Context, gate.Checkpoint) error
	// Confirm sends the acknowledgement and returns when the broker has it.
	Confirm func(context.Context) error
	// Log writes a line about this delivery.
	Log func(status string, pairs ...labs.Pair)
}

// Store is the business database.
type Store interface {
	// InTx runs f in one transaction that is durable when InTx returns nil.
	InTx(ctx context.Context, f func(Tx) error) error
	// Claimed reports whether a marker is there.
	Claimed(ctx context.Context, key string) (bool, error)
}

// Tx is a transaction of the business database.
type Tx interface {
	// Claim writes a dedupe marker; one that is there already is ErrDuplicate.
	Claim(ctx context.Context, key string) error
	// Insert writes a business row; nothing but the design prevents a second one.
	Insert(ctx context.Context, o labs.Order, messageID string) error
	// Pay moves an order from WAIT_PAY to PAID and says how many rows changed.
	Pay(ctx context.Context, o labs.Order, messageID string) (affected int64, err error)
}

// New returns a design by its name. It fails for a name that is not in
// labs.Designs.
func New(name string) (Design, error) {
	switch name {
	case "transactional-dedupe":
		return TransactionalDedupe{}, nil
	case "no-dedupe":
		return NoDedupe{}, nil
	case "ack-first":
		return AckFirst{}, nil
	case "split-transaction":
		return SplitTransaction{}, nil
	case "business-first":
		return BusinessFirst{}, nil
	case "memory-dedupe":
		return NewMemoryDedupe(), nil
	case "skip-redelivered":
		return SkipRedelivered{}, nil
	case "state-machine":
		return StateMachine{}, nil
	case "async-pool":
		return NewAsyncPool(), nil
	}
	return nil, fmt.Errorf("no design is named %q", name)
}

// Ack is the acknowledgement between its two checkpoints.
func (w *Work) Ack(ctx context.Context) error {
	if err := w.Reach(ctx, gate.BeforeAck); err != nil {
		return err
	}
	if err := w.Confirm(ctx); err != nil {
		return err
	}
	return w.Reach(ctx, gate.AfterAck)
}

// insert writes the business row in a transaction of its own.
func (w *Work) insert(ctx context.Context) error {
	err := w.Store.InTx(ctx, func(tx Tx) error {
		if err := tx.Insert(ctx, w.Order, w.MessageID); err != nil {
			return err
		}
		return w.Reach(ctx, gate.BeforeCommit)
	})
	if err != nil {
		return err
	}
	w.Log("business_committed")
	return w.Reach(ctx, gate.AfterCommit)
}

// claimAndInsert writes marker and business row in one transaction; a marker
// that was there before is a duplicate, and nothing more is done.
func (w *Work) claimAndInsert(ctx context.Context) error {
	err := w.Store.InTx(ctx, func(tx Tx) error {
		if err := tx.Claim(ctx, w.Key); err != nil {
			return err
		}
		if err := w.Reach(ctx, gate.AfterClaim); err != nil {
			return err
		}
		if err := tx.Insert(ctx, w.Order, w.MessageID); err != nil {
			return err
		}
		return w.Reach(ctx, gate.BeforeCommit)
	})
	switch {
	case errors.Is(err, ErrDuplicate):
		w.Log("duplicate_skipped")
		return nil
	case err != nil:
		return err
	}
	w.Log("business_committed")
	return w.Reach(ctx, gate.AfterCommit)
}

// sequential is the Drain of every design that does its work in Handle.
type sequential struct{}

// Drain returns at once: nothing is handed over.
func (sequential) Drain(context.Context) error { return nil }
