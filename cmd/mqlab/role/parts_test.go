package role

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"mqlab/brokers"
	"mqlab/cmd/mqlab/role/designs"
	"mqlab/labs"
)

// The parts that the test binary can play.
const (
	partConsumer = "consumer"
	partDier     = "dier"
	partClaimer  = "claimer"
)

// playConsumer is a real consumer process on a broker in memory: arguments are
// the user's folder, the store's folder and the fixture.
func playConsumer(ctx context.Context, args []string) int {
	c, err := labs.NewCatalogue(os.DirFS(args[0])).In(args[0])
	if err != nil {
		return fail(err)
	}
	lab, err := c.Load("rabbitmq/consumer-crash")
	if err != nil {
		return fail(err)
	}
	at, err := brokers.ParseAddress("amqp://127.0.0.1:5672")
	if err != nil {
		return fail(err)
	}
	f := lab.Fixtures[args[2]]
	b := &fakeBroker{queue: []handed{{m: brokers.Message{ID: f.Envelope.MessageID, Key: f.Envelope.AggregateID, Body: f.Body}}}}
	return Run(ctx, Options{Role: labs.RoleConsumer, Lab: lab.ID, Store: args[1], Address: at, Catalogue: c,
		Registry: brokers.NewRegistry(b), Out: os.Stdout, Err: os.Stderr, Exit: os.Exit})
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return ExitFailed
}

// dieInTransaction ends the process between a write and its commit.
func dieInTransaction(ctx context.Context, args []string) int {
	s, err := OpenStore(ctx, args[0], "die")
	if err != nil {
		return fail(err)
	}
	err = s.InTx(ctx, func(tx designs.Tx) error {
		if err := errors.Join(tx.Claim(ctx, "k"), tx.Insert(ctx, labs.Order{ID: "o", CustomerID: "c", Currency: "CNY"}, "k")); err != nil {
			return err
		}
		os.Exit(ExitHalt)
		return nil
	})
	return fail(err)
}

// claimOnce opens the store and claims a key; it ends with 0 when it won and
// with 10 when another process had it before.
func claimOnce(ctx context.Context, args []string) int {
	s, err := OpenStore(ctx, args[0], "race")
	if err != nil {
		return fail(err)
	}
	defer s.Close() //nolint:errcheck // the exit code says what counts
	err = s.InTx(ctx, func(tx designs.Tx) error { return tx.Claim(ctx, "k") })
	switch {
	case errors.Is(err, designs.ErrDuplicate):
		return 10
	case err != nil:
		return fail(err)
	}
	return 0
}

// command is the test binary in one of its parts.
func command(t *testing.T, part string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), envPart+"="+part, "GORACE=atexit_sleep_ms=0", "GOCOVERDIR="+t.TempDir())
	return c
}
