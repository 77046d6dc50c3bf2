package role

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mqlab/labs"
)

// inspectDB writes what the consumers left behind: a line per row, then the
// counts. A store that no step has opened is an error, not an empty one.
func (r *role) inspectDB(ctx context.Context) (err error) {
	path := r.storePath(r.lab.Scenario.StoreOf(r.step))
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	s, err := OpenStore(ctx, path, r.lab.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, err := s.Rows(ctx)
	if err != nil {
		return err
	}
	markers, err := s.Markers(ctx)
	if err != nil {
		return err
	}
	done := int64(0)
	for _, row := range rows {
		if row.Status == paid {
			done++
		}
		r.log.line("row", labs.Pair{Key: "messageId", Value: row.MessageID}, labs.Pair{Key: "aggregateId", Value: row.Order.ID},
			labs.Pair{Key: "table", Value: "orders"}, labs.Pair{Key: "customerId", Value: row.Order.CustomerID},
			number("amountCents", row.Order.Cents), labs.Pair{Key: "currency", Value: row.Order.Currency}, labs.Pair{Key: "state", Value: row.Status})
	}
	for _, key := range markers {
		r.log.line("row", labs.Pair{Key: "messageId", Value: key}, labs.Pair{Key: "table", Value: "processed_messages"})
	}
	if err := s.Checkpoint(ctx); err != nil {
		return err
	}
	r.log.line("snapshot", number("business_rows", done), number("processed_rows", int64(len(markers))))
	return nil
}
