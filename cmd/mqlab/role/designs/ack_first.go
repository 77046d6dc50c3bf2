package designs

import "context"

// AckFirst acknowledges before it works, so that nothing can come twice. A
// crash between the two loses the message: the broker has no copy any more.
type AckFirst struct{ sequential }

// Handle acknowledges, then claims and writes in one transaction.
func (AckFirst) Handle(ctx context.Context, w *Work) error {
	if err := w.Ack(ctx); err != nil {
		return err
	}
	return w.claimAndInsert(ctx)
}
