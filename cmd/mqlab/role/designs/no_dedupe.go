package designs

import "context"

// NoDedupe writes and acknowledges, and trusts that a message comes once. A
// crash between the two writes a second row.
type NoDedupe struct{ sequential }

// Handle writes, then acknowledges.
func (NoDedupe) Handle(ctx context.Context, w *Work) error {
	if err := w.insert(ctx); err != nil {
		return err
	}
	return w.Ack(ctx)
}
