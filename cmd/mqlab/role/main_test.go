package role

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envPart makes the test binary be a process that the tests watch from
// outside.
const envPart = "MQLAB_ROLE_TEST_PART"

func TestMain(m *testing.M) {
	parts := map[string]func(context.Context, []string) int{
		partConsumer: playConsumer, partDier: dieInTransaction, partClaimer: claimOnce,
	}
	part := os.Getenv(envPart)
	if part == "" {
		goleak.VerifyTestMain(m)
		return
	}
	play, ok := parts[part]
	if !ok {
		fmt.Fprintf(os.Stderr, "no part is called %q\n", part)
		os.Exit(64)
	}
	os.Exit(play(context.Background(), os.Args[1:]))
}
