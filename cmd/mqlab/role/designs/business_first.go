package designs

import (
	"context"

	"mqlab/gate"
)

// BusinessFirst looks for the marker, commits the business row, and writes the
// marker afterwards. A crash between the two writes a second row: the
// redelivery finds no marker.
type BusinessFirst struct{ sequential }

// Handle writes in one transaction, claims in a second, then acknowledges.
func (BusinessFirst) Handle(ctx context.Context, w *Work) error {
	claimed, err := w.Store.Claimed(ctx, w.Key)
	if err != nil {
		return err
	}
	if claimed {
		w.Log("duplicate_skipped")
		return w.Ack(ctx)
	}
	if err := w.insert(ctx); err != nil {
		return err
	}
	if err := w.Store.InTx(ctx, func(tx Tx) error { return tx.Claim(ctx, w.Key) }); err != nil {
		return err
	}
	if err := w.Reach(ctx, gate.AfterClaim); err != nil {
		return err
	}
	return w.Ack(ctx)
}
