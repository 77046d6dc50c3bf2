package role

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mqlab/cmd/mqlab/role/designs"
	"mqlab/labs"
)

// busyTimeout is how long a transaction waits for another process's, in ms.
const busyTimeout = 5000

// The states of an order.
const (
	waitPay = "WAIT_PAY"
	paid    = "PAID"
)

// schema has no uniqueness in the business table: what prevents a second row
// must be the design.
const schema = `
CREATE TABLE IF NOT EXISTS processed_messages (
	message_id TEXT PRIMARY KEY, processed_at TEXT NOT NULL, lab TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
	order_id TEXT NOT NULL, customer_id TEXT NOT NULL, amount_cents INTEGER NOT NULL, currency TEXT NOT NULL,
	message_id TEXT NOT NULL, created_at TEXT NOT NULL, status TEXT NOT NULL);`

// Store is the SQLite file that the consumers of a scenario share.
type Store struct {
	db  *sql.DB
	lab string
}

// OpenStore opens or makes the file. WAL lets inspect-db read while consumers
// write; synchronous=FULL makes a commit durable before the ack that follows
// it; immediate transactions wait for a lock at their beginning, where waiting
// helps.
func OpenStore(ctx context.Context, path, lab string) (*Store, error) {
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", fmt.Sprintf("busy_timeout(%d)", busyTimeout)}, "_txlock": {"immediate"}}
	// A path with % or ? would end the file name in a URI.
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	db, err := sql.Open("sqlite", "file:"+name+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store %s: %w", path, err), db.Close())
	}
	return &Store{db: db, lab: lab}, nil
}

// prepare makes the tables. The change to WAL needs the file for itself and is
// refused at once, without the busy timeout, when two processes make the same
// store (https://sqlite.org/wal.html, section 10): it is tried again as long.
func prepare(ctx context.Context, db *sql.DB) error {
	for end := time.Now().Add(busyTimeout * time.Millisecond); ; {
		_, err := db.ExecContext(ctx, schema)
		var e *sqlite.Error
		if err == nil || !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}

// Close ends the connection.
func (s *Store) Close() error { return s.db.Close() }

// InTx runs f in one transaction.
func (s *Store) InTx(ctx context.Context, f func(designs.Tx) error) error {
	t, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx{t, s.lab}); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Claimed reports whether a marker is there.
func (s *Store) Claimed(ctx context.Context, key string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM processed_messages WHERE message_id = ?`, key).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for the marker %s: %w", key, err)
	}
	return n > 0, nil
}

// Seed writes an order that waits for its payment, once.
func (s *Store) Seed(ctx context.Context, o labs.Order) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO orders SELECT ?, ?, ?, ?, '', ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM orders WHERE order_id = ?)`,
		o.ID, o.CustomerID, o.Cents, o.Currency, now(), waitPay, o.ID)
	if err != nil {
		return fmt.Errorf("seed order %s: %w", o.ID, err)
	}
	return nil
}

// Row is a business row.
type Row struct {
	Order     labs.Order
	MessageID string
	Status    string
}

// Rows reads every business row in the order of writing.
func (s *Store) Rows(ctx context.Context) ([]Row, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT order_id, customer_id, amount_cents, currency, message_id, status FROM orders ORDER BY rowid`)
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below says what went wrong
	var all []Row
	for rows.Next() {
		var r Row
		if err := rows.Scan(&r.Order.ID, &r.Order.CustomerID, &r.Order.Cents, &r.Order.Currency, &r.MessageID, &r.Status); err != nil {
			return nil, fmt.Errorf("read the orders: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// Markers reads every dedupe marker in the order of writing.
func (s *Store) Markers(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT message_id FROM processed_messages ORDER BY rowid`)
	if err != nil {
		return nil, fmt.Errorf("read the markers: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below says what went wrong
	var all []string
	for rows.Next() {
		var k string
		if err := rows.Scan(&k); err != nil {
			return nil, fmt.Errorf("read the markers: %w", err)
		}
		all = append(all, k)
	}
	return all, rows.Err()
}

// Checkpoint folds the write-ahead log into the file, so that the file alone is
// the evidence. While a consumer has the store open the log may stay beside it,
// in the run folder too.
func (s *Store) Checkpoint(ctx context.Context) error {
	var busy, pages, moved int // https://sqlite.org/pragma.html#pragma_wal_checkpoint
	if err := s.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
		return fmt.Errorf("checkpoint the store: %w", err)
	}
	return nil
}

type tx struct {
	t   *sql.Tx
	lab string
}

// Claim writes a marker.
func (x tx) Claim(ctx context.Context, key string) error {
	_, err := x.t.ExecContext(ctx, `INSERT INTO processed_messages VALUES (?, ?, ?)`, key, now(), x.lab)
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
		return fmt.Errorf("claim %s: %w", key, designs.ErrDuplicate)
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", key, err)
	}
	return nil
}

// Insert writes a business row.
func (x tx) Insert(ctx context.Context, o labs.Order, messageID string) error {
	_, err := x.t.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)`,
		o.ID, o.CustomerID, o.Cents, o.Currency, messageID, now(), paid)
	if err != nil {
		return fmt.Errorf("insert order %s: %w", o.ID, err)
	}
	return nil
}

// Pay changes an order that waits for its payment.
func (x tx) Pay(ctx context.Context, o labs.Order, messageID string) (int64, error) {
	r, err := x.t.ExecContext(ctx, `UPDATE orders SET status = ?, message_id = ? WHERE order_id = ? AND status = ?`, paid, messageID, o.ID, waitPay)
	if err != nil {
		return 0, fmt.Errorf("pay order %s: %w", o.ID, err)
	}
	return r.RowsAffected()
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }
