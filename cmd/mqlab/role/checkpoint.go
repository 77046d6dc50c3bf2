package role

import (
	"context"
	"errors"
	"os"

	"mqlab/gate"
	"mqlab/labs"
)

// errInjected is what a handler returns where the scenario makes it fail.
var errInjected = errors.New("injected failure")

// reach is a checkpoint: the role logs that it waits, tells the runner, and
// stands still until the decision comes. crash writes the last line of a role
// that is halted here.
func (r *role) reach(ctx context.Context, cp gate.Checkpoint, message, key string, crash func()) error {
	if !r.gate.Stops(cp) {
		return nil
	}
	a := r.gate.Next(cp, message, key)
	token := labs.Token(r.step.Name, os.Getpid(), a)
	r.log.gate("waiting", string(cp), message, token)
	decision, err := r.gate.Wait(ctx, a)
	if err != nil {
		return err
	}
	r.log.gate("released", string(cp), message, token)
	switch decision {
	case gate.Halt:
		crash()
		r.o.Exit(ExitHalt) // no defer runs, no connection is closed
	case gate.Fail:
		return errInjected
	}
	return nil
}
