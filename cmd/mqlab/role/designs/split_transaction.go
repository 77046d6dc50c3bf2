package designs

import (
	"context"
	"errors"

	"mqlab/gate"
)

// SplitTransaction commits the marker alone, then the business row. A crash
// between the two loses the work: the redelivery finds the marker and skips
// what was never done.
type SplitTransaction struct{ sequential }

// Handle claims in one transaction, writes in a second, then acknowledges.
func (SplitTransaction) Handle(ctx context.Context, w *Work) error {
	err := w.Store.InTx(ctx, func(tx Tx) error { return tx.Claim(ctx, w.Key) })
	switch {
	case errors.Is(err, ErrDuplicate):
		w.Log("duplicate_skipped")
		return w.Ack(ctx)
	case err != nil:
		return err
	}
	if err := w.Reach(ctx, gate.AfterClaim); err != nil {
		return err
	}
	if err := w.insert(ctx); err != nil {
		return err
	}
	return w.Ack(ctx)
}
