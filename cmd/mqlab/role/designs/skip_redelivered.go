package designs

import "context"

// SkipRedelivered takes the broker's mark for proof that the work was done. A
// crash before the commit loses the message: its second delivery is marked,
// though the first did nothing.
type SkipRedelivered struct{ sequential }

// Handle skips what is marked, else writes, then acknowledges.
func (SkipRedelivered) Handle(ctx context.Context, w *Work) error {
	if w.Redelivered {
		w.Log("redelivered_skipped")
		return w.Ack(ctx)
	}
	if err := w.insert(ctx); err != nil {
		return err
	}
	return w.Ack(ctx)
}
