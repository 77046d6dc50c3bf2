package labs

import (
	"context"
	"syscall"

	"mqlab/gate"
)

// decideAll answers every arrival that can be answered now and reports whether
// there was any.
func (x *execution) decideAll(ctx context.Context) bool {
	any := false
	for _, s := range x.steps {
		for _, a := range s.standing {
			if !a.decided && !s.ended && x.decide(ctx, s, a) {
				any = true
			}
		}
	}
	return any
}

// decide deals with the faults of one arrival, one after the other, and then
// lets it go. It reports whether the arrival was answered.
func (x *execution) decide(ctx context.Context, s *stepRun, a *standing) bool {
	for a.next < len(a.faults) {
		f := a.faults[a.next]
		if !x.strike(ctx, s, a, f) {
			return false
		}
		a.next++
		a.begun = false
		if a.decided {
			return true
		}
	}
	// A step that was let go late finds the destination drained: it must not
	// take what is left in its buffers.
	if a.late && x.drained && s.RoleName() == RoleConsumer {
		x.tell(s)
	}
	do := gate.Pass
	if a.fail {
		do = gate.Fail
	}
	x.answer(s, a, do)
	return true
}

func (x *execution) answer(s *stepRun, a *standing, do gate.Decision) {
	a.decided = true
	x.ev.note(Moment{Kind: "decision", Step: s.Name, N: a.N, Checkpoint: string(a.Checkpoint), Message: a.Message, Key: a.Key, Do: string(do)})
	if err := s.guest.Decide(a.N, do); err != nil && !x.ending {
		x.ev.note(Moment{Kind: "decision", Step: s.Name, N: a.N, Err: err.Error()}) // its exit says the rest
	}
}

// strike lets a fault strike and reports whether it is over.
func (x *execution) strike(ctx context.Context, s *stepRun, a *standing, f *faultRun) bool {
	switch f.Kind {
	case KindHold:
		if !a.begun {
			a.begun, a.late = true, true
			f.rec.Struck++
		}
		return f.Until != nil && x.holds(ctx, f.Until)
	case KindFreeze:
		return x.freeze(ctx, s, a, f)
	case KindFail:
		f.rec.Struck++
		a.fail = true
		return true
	}
	return x.halt(ctx, s, a, f)
}

// freeze stops the whole process, its heartbeats too, until the condition
// holds.
func (x *execution) freeze(ctx context.Context, s *stepRun, a *standing, f *faultRun) bool {
	if !a.begun {
		x.ev.note(Moment{Kind: "signal", Step: s.Name, Do: syscall.SIGSTOP.String()})
		if err := s.child.stop(ctx); err != nil {
			x.ev.spoil("freeze %s: %v", x.describe(s, a), err)
			x.signal(s, syscall.SIGCONT) // the stop may still come into effect
			return true
		}
		a.begun, a.late = true, true
		f.rec.Struck++
	}
	if !x.holds(ctx, f.Until) {
		return false
	}
	x.ev.note(Moment{Kind: "signal", Step: s.Name, Do: syscall.SIGCONT.String()})
	if err := s.child.thaw(ctx); err != nil {
		x.ev.spoil("thaw %s: %v", x.describe(s, a), err)
	}
	return true
}

// halt ends the process here, when its condition holds.
func (x *execution) halt(ctx context.Context, s *stepRun, a *standing, f *faultRun) bool {
	if f.Until != nil && !x.holds(ctx, f.Until) {
		return false
	}
	switch f.How {
	case HowExit:
		f.rec.Struck++
		x.answer(s, a, gate.Halt)
		return true
	case HowKill:
		f.rec.Struck++
		x.signal(s, syscall.SIGKILL)
		a.decided = true // never answered
		return true
	}
	if !a.begun {
		a.begun = true
		x.signal(s, syscall.SIGTERM)
	}
	if !s.hasLogged("stopping") {
		return false
	}
	f.rec.Struck++
	if f.How == HowTermKill {
		x.signal(s, syscall.SIGKILL)
		a.decided = true
	}
	return true
}

func (s *stepRun) hasLogged(status string) bool {
	for _, l := range s.log {
		if l.Get("status") == status {
			return true
		}
	}
	return false
}
