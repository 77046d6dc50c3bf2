package designs

import "context"

// TransactionalDedupe is the reference: marker and business row commit
// together, the acknowledgement comes last. A crash before the commit leaves
// nothing, a crash after it leaves both, so every redelivery is either done
// whole or skipped.
type TransactionalDedupe struct{ sequential }

// Handle claims and writes in one transaction, then acknowledges.
func (TransactionalDedupe) Handle(ctx context.Context, w *Work) error {
	if err := w.claimAndInsert(ctx); err != nil {
		return err
	}
	return w.Ack(ctx)
}
