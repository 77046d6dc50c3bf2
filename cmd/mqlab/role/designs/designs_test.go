package designs

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mqlab/gate"
	"mqlab/labs"
)

// Every design of the table can be made, and no other.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, name := range labs.DesignNames() {
		if d, err := New(name); err != nil || d == nil {
			t.Errorf("New(%s) = %v, %v", name, d, err)
		}
	}
	if d, err := New("hope"); err == nil {
		t.Errorf("New(hope) = %v", d)
	}
}

// memory is a store that keeps everything at once and fails on demand.
type memory struct {
	fail    error
	markers []string
	rows    []string
}

func (m *memory) InTx(_ context.Context, f func(Tx) error) error {
	markers, rows := slices.Clone(m.markers), slices.Clone(m.rows)
	err := f(m)
	if err == nil {
		err = m.fail
	}
	if err != nil {
		m.markers, m.rows = markers, rows
	}
	return err
}

func (m *memory) Claimed(_ context.Context, key string) (bool, error) {
	return slices.Contains(m.markers, key), nil
}

func (m *memory) Claim(_ context.Context, key string) error {
	if slices.Contains(m.markers, key) {
		return ErrDuplicate
	}
	m.markers = append(m.markers, key)
	return nil
}

func (m *memory) Insert(_ context.Context, o labs.Order, _ string) error {
	m.rows = append(m.rows, o.ID)
	return nil
}

func (m *memory) Pay(context.Context, labs.Order, string) (int64, error) { return 1, nil }

// A commit that fails is never logged as committed, and only the designs that
// acknowledge first have acknowledged by then.
func TestCommitThatFails(t *testing.T) {
	t.Parallel()
	for _, name := range labs.DesignNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			full := errors.New("disk full")
			acked, logged := false, []string(nil)
			w := &Work{Key: "k", MessageID: "k", Order: labs.Order{ID: "o"}, Store: &memory{fail: full},
				Reach:   func(context.Context, gate.Checkpoint) error { return nil },
				Confirm: func(context.Context) error { acked = true; return nil },
				Log:     func(status string, _ ...labs.Pair) { logged = append(logged, status) }}
			err = errors.Join(d.Handle(t.Context(), w), d.Drain(t.Context()))
			if !errors.Is(err, full) {
				t.Errorf("Handle: %v, want the store's error", err)
			}
			if len(logged) != 0 {
				t.Errorf("logged %q", logged)
			}
			if first := name == "ack-first" || name == "async-pool"; acked != first {
				t.Errorf("acknowledged: %v", acked)
			}
			if err := d.Drain(t.Context()); err != nil {
				t.Errorf("a second Drain tells the error again: %v", err)
			}
		})
	}
}
