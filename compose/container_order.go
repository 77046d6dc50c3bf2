package compose

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// engineCall bounds one order to the engine, in the worst case on a machine
// that is busy with something else.
const engineCall = 60 * time.Second

// order gives the engine one order, bounded. One that has left an order without
// an answer is not waited for as long again: there may be many left to give.
func (e *engine) order(ctx context.Context, give func(context.Context) error) error {
	bound := engineCall
	if e.stuck.Load() {
		bound = engineNamed
	}
	call, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := give(call)
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		e.stuck.Store(true)
		return fmt.Errorf("the container engine at %s has not answered for %v: %w", e.cli.DaemonHost(), bound, call.Err())
	}
	return err
}

// spaceHelp is what helps where the engine's disk is full.
const spaceHelp = " (docker system df shows what takes the engine's space)"

// full reports whether an error is that of an engine without space. It comes as
// text from wherever in the engine it was.
func full(err error) bool { return strings.Contains(err.Error(), "no space left on device") }
