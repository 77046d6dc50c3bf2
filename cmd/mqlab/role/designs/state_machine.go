package designs

import (
	"context"
	"strconv"

	"mqlab/gate"
	"mqlab/labs"
)

// StateMachine changes a row only from the state that the message expects:
// UPDATE ... SET status='PAID' WHERE status='WAIT_PAY'. A second try changes
// nothing, so no marker is needed.
type StateMachine struct{ sequential }

// Handle pays in one transaction, then acknowledges.
func (StateMachine) Handle(ctx context.Context, w *Work) error {
	var affected int64
	err := w.Store.InTx(ctx, func(tx Tx) (err error) {
		if affected, err = tx.Pay(ctx, w.Order, w.MessageID); err != nil {
			return err
		}
		return w.Reach(ctx, gate.BeforeCommit)
	})
	if err != nil {
		return err
	}
	status := "business_committed"
	if affected == 0 {
		status = "duplicate_skipped"
	}
	w.Log(status, labs.Pair{Key: "affected", Value: strconv.FormatInt(affected, 10)})
	if err := w.Reach(ctx, gate.AfterCommit); err != nil {
		return err
	}
	return w.Ack(ctx)
}
