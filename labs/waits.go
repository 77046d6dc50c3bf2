package labs

import (
	"slices"
	"strconv"

	"mqlab/gate"
)

func (c *checker) condition(at string, w *Condition) {
	kinds := 0
	for _, set := range []bool{w.Checkpoint != "", w.Status != "", w.Exit != "", w.Broker != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		c.fail(at, "a condition has exactly one of checkpoint, status, exit and broker")
	}
	if w.Broker != "" {
		c.oneOf(at+".broker", "figure of "+c.driver.Name(), w.Broker, c.driver.Figures())
		if w.Is == nil || len(w.Step) > 0 || w.Message != "" || w.Count != 0 {
			c.fail(at, "a condition about the broker has `broker` and `is`, and no step, message or count")
		}
		return
	}
	if w.Is != nil {
		c.fail(at+".is", "`is` goes with `broker`")
	}
	if len(w.Step) == 0 {
		c.fail(at, "a condition names a step")
	}
	for _, name := range w.Step {
		j := c.sc.index(name)
		if j < 0 {
			c.oneOf(at+".step", "step", name, c.stepNames())
			continue
		}
		if w.Checkpoint != "" {
			c.checkpoint(at+".checkpoint", w.Checkpoint, c.sc.Steps[j])
		}
	}
	c.oneOf(at+".status", "status word", w.Status, WordNames())
	c.message(at+".message", w.Message)
	if _, err := strconv.Atoi(w.Exit); w.Exit != "" && w.Exit != "any" && err != nil {
		c.fail(at+".exit", "exit is a code or any, not %q", w.Exit)
	}
	if w.Exit != "" && (w.Message != "" || w.Count != 0) {
		c.fail(at, "an exit has no message and no count")
	}
	if w.Count < 0 {
		c.fail(at+".count", "count is at least 1")
	}
}

// canHappen refuses a condition about something that can only come after the
// waiting step has ended.
func (c *checker) canHappen(at string, i int, s Step, f Fault) {
	for _, name := range f.Until.Step {
		j := c.sc.index(name)
		if j < 0 {
			continue
		}
		if j == i && f.Until.Checkpoint == f.At && f.Until.Count < 2 && (f.Until.Message == "" || f.Until.Message == f.Message) {
			c.fail(at, "the step stands there already, so this waits for nothing")
		}
		if j == i && (f.Until.Exit != "" || f.Until.Status == "done") {
			c.fail(at, "the step waits for its own end")
		}
		if j != i && c.sc.startsAfterEnd(j, i) {
			c.fail(at, "%q starts only after %q has ended, so this can never hold", name, s.Name)
		}
		if o := c.sc.Steps[j]; o.Inspects() && !o.WhileRunning && s.RoleName() == RoleConsumer {
			c.fail(at, "%q looks only when no consumer runs, so this can never hold", name)
		}
		ends := f.Until.Exit != "" || f.Until.Status == "done"
		if f.Kind == KindHold && j != i && ends && c.sc.Steps[j].RoleName() == RoleConsumer {
			c.fail(at, "a hold cannot wait for the end of %q: the held delivery keeps the destination undrained, so it never ends", name)
		}
	}
}

// endless refuses holds and freezes that nothing ends, and those that would
// stop another process inside SQLite, which has one writer.
func (c *checker) endless(at string, i int, s Step, f Fault, cp gate.Checkpoint) {
	if f.Until == nil && (f.Kind == KindFreeze || s.Halt == nil) {
		c.fail(at, "a %s without `until` can never end: the delivery in hand keeps the destination undrained", f.Kind)
	}
	d := Designs()[c.sc.ConsumerOf(s).Design]
	if s.RoleName() != RoleConsumer || !slices.Contains(d.InTx, cp) {
		return
	}
	for j, o := range c.sc.Steps {
		if j == i || o.RoleName() != RoleConsumer || c.sc.ConsumerOf(o).Store != c.sc.ConsumerOf(s).Store {
			continue
		}
		if !c.sc.startsAfterEnd(j, i) && !c.sc.startsAfterEnd(i, j) {
			c.fail(at+".at", "%s is inside the transaction, and %q can write to the same store at that time: it would wait for the lock", cp, o.Name)
		}
	}
}

// startsAfterEnd reports whether step j cannot start before step i has ended.
func (sc *Scenario) startsAfterEnd(j, i int) bool { return sc.follows(j, i, 0) }

func (sc *Scenario) follows(j, i, depth int) bool {
	if depth > maxSteps || j < 0 || i < 0 || j == i {
		return false
	}
	s := sc.Steps[j]
	if s.After != nil {
		for _, name := range s.After.Step {
			k := sc.index(name)
			if k == i && (s.After.Exit != "" || s.After.Status == "done") || sc.follows(k, i, depth+1) {
				return true
			}
		}
		return false
	}
	if j == 0 {
		return false
	}
	if j-1 == i {
		return !sc.Steps[i].Background
	}
	return sc.follows(j-1, i, depth+1)
}
