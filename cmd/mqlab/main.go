// Command mqlab crashes message consumers at exactly the chosen point, on real
// brokers, and judges what was left behind.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"mqlab/cmd/mqlab/role"
)

func main() {
	os.Exit(Main(os.Args[1:]))
}

// Main runs one command and returns its exit code.
func Main(args []string) int {
	if len(args) > 0 && args[0] == "role" {
		// A role has its own signals and its own exit codes.
		code, err := roleMain(context.Background(), args[1:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "mqlab role: %v\n", err)
			return role.ExitUsage
		}
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A reader that is gone must not kill a run in the middle: the write fails
	// instead. Caught, not ignored, since children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// The first Ctrl-C ends the run in order, a second one ends mqlab.
	context.AfterFunc(ctx, stop)
	a := newApp(os.Stdout, os.Stderr)
	cmd := a.root()
	cmd.SetArgs(args)
	return a.exitCode(cmd.ExecuteContext(ctx))
}
