package labs

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"mqlab/gate"
)

// canStart reports whether a step's time has come.
func (x *execution) canStart(ctx context.Context, s *stepRun) bool {
	switch {
	case s.After != nil:
		if !x.holds(ctx, s.After) {
			return false
		}
	case s.index > 0:
		before := x.steps[s.index-1]
		if !before.ended && (!before.Background || !before.started) {
			return false
		}
	}
	if s.Inspects() && !s.WhileRunning && len(x.running()) > 0 {
		return false // the consumers end first: see drainable
	}
	return !x.needsQuiet(s) || x.quiet(ctx)
}

// needsQuiet reports whether a step must not begin while the broker still
// counts a consumer that is gone: a second consumer that subscribed too early
// would get the messages in another order.
func (x *execution) needsQuiet(s *stepRun) bool {
	if s.RoleName() != RoleConsumer && s.Inspect == "" || len(x.running()) > 0 {
		return false
	}
	for _, o := range x.steps {
		if o.RoleName() == RoleConsumer && o.ended {
			return true
		}
	}
	return false
}

func (x *execution) quiet(ctx context.Context) bool {
	st, err := x.latest(ctx)
	return err == nil && st.Idle
}

// running lists the consumers that run, the last started first.
func (x *execution) running() []*stepRun {
	var rs []*stepRun
	for _, s := range x.steps {
		if s.RoleName() == RoleConsumer && s.started && !s.ended {
			rs = append([]*stepRun{s}, rs...)
		}
	}
	return rs
}

// start runs a step: a process, or a look at the broker.
func (x *execution) start(ctx context.Context, s *stepRun) {
	s.started = true
	x.state, x.first = nil, time.Time{} // what was read before it started says nothing about it
	s.rec.Started = time.Now().UTC()
	x.ev.note(Moment{Kind: "start", Step: s.Name})
	x.progress(Progress{Lab: x.lab.ID, Step: s.Name})
	if s.Inspect != "" {
		st, err := x.ask(ctx)
		x.ev.state(StateRecord{At: AtInspect, Step: s.Name, Of: x.dest.Name()}, st, err)
		x.stepEnded(ctx, s, exit{})
		return
	}
	if s.Timeout > 0 {
		s.deadline = time.Now().Add(s.Timeout.Std())
	}
	if s.Broker != "" {
		x.act(ctx, s)
		return
	}
	s.guest = &gate.Guest{Step: s.Name, Stop: x.sc.Stops(s.Step), Gone: func() {},
		Came: func(a gate.Arrival) { x.events.post(func() { x.arrived(ctx, s, a) }) }}
	argv := x.argv(x.lab, s.Step, x.id, x.stores())
	s.rec.Command = argv
	env := append(append([]string{}, x.Env...), x.door.Expect(s.guest)...)
	env = append(env, EnvBroker+"="+x.Control.Origin().Address.Secret())
	argv = append(argv[:len(argv):len(argv)], "--digest", x.lab.Digest())
	c, err := startChild(x.ev.dir, s.Name, argv, env,
		func(l LogLine) { x.events.post(func() { x.logged(ctx, s, l) }) },
		func(e exit) { x.events.post(func() { x.stepEnded(ctx, s, e) }) })
	if err != nil {
		x.failed = err
		s.ended = true
		x.door.Forget(s.guest)
		x.end(syscall.SIGKILL)
		return
	}
	s.child = c
	s.rec.PID = c.cmd.Process.Pid
}

func (x *execution) progress(p Progress) {
	if x.Progress != nil {
		x.Progress(p)
	}
}

// stepEnded is the end of a process whose output was read to the end.
func (x *execution) stepEnded(ctx context.Context, s *stepRun, e exit) {
	s.ended = true
	s.rec.Ended = time.Now().UTC()
	s.rec.Exit, s.rec.Signal = &e.code, e.signal
	x.ev.note(Moment{Kind: "exit", Step: s.Name, Exit: &e.code})
	x.state, x.first = nil, time.Time{}
	if s.guest != nil {
		x.door.Forget(s.guest)
	}
	if e.cut {
		x.ev.spoil("%s ended, but another process kept its output open", s.Name)
	}
	if e.failed != nil {
		x.failed = e.failed
		x.end(syscall.SIGKILL)
	}
	if e.code == ExitConnectionLost && !x.ending && !x.down {
		x.checkBroker(ctx)
	}
	x.missedCut(ctx, s)
	if e.code == ExitUsage {
		x.ev.spoil("%s did not take its command line: see %s", s.Name, s.Name+errSuffix)
		x.end(syscall.SIGKILL)
	}
	x.progress(Progress{Lab: x.lab.ID, Step: s.Name, Ends: true, Exit: e.code, Took: s.rec.Ended.Sub(s.rec.Started)})
}

// logged takes a line of a step's output.
func (x *execution) logged(ctx context.Context, s *stepRun, l LogLine) {
	x.ev.line(l)
	if !l.Own() {
		return
	}
	if n := len(s.log); n > 0 && s.log[n-1].Get("status") == "done" {
		x.ev.spoil("%s:%d: a line after status=done", l.File, l.Number)
	}
	s.log = append(s.log, l)
	if l.Get("status") == "cut" {
		x.wasCut(ctx, s)
	}
	if l.Get("status") == "received" {
		x.first = time.Time{} // something still moves
	}
	if l.Prefix != "replay-gate" || l.Get("status") != "waiting" {
		return
	}
	s.tokens[l.Get("token")] = true
	early := s.early
	s.early = nil
	for _, a := range early {
		x.arrived(ctx, s, a)
	}
}

// arrived takes an arrival. It counts when the line that announces it was read,
// so that the log up to there is known.
func (x *execution) arrived(ctx context.Context, s *stepRun, a gate.Arrival) {
	if !s.tokens[Token(s.Name, s.rec.PID, a)] {
		s.early = append(s.early, a)
		return
	}
	x.ev.note(Moment{Kind: "arrival", Step: s.Name, N: a.N, Checkpoint: string(a.Checkpoint), Message: a.Message, Key: a.Key})
	if !x.ending {
		st, err := x.ask(ctx)
		x.ev.state(StateRecord{At: AtCheckpoint, Step: s.Name, Checkpoint: string(a.Checkpoint), Message: a.Message, Key: a.Key, Of: x.dest.Name()}, st, err)
	}
	at := &standing{Arrival: a}
	s.standing = append(s.standing, at)
	for _, f := range s.faults {
		if seen, here := s.seen(f.Fault, a); here {
			f.rec.Seen++
			if f.Matches(seen) {
				at.faults = append(at.faults, f)
			}
		}
	}
}

// seen counts the arrivals of this process that a fault is about, and reports
// whether the latest is one of them.
func (s *stepRun) seen(f Fault, a gate.Arrival) (n int, here bool) {
	cp, err := gate.ParseCheckpoint(f.At)
	if err != nil || a.Checkpoint != cp || f.Message != "" && !s.about(f.Message, a.Key) {
		return 0, false
	}
	for _, o := range s.standing {
		if o.Checkpoint == cp && (f.Message == "" || s.about(f.Message, o.Key)) {
			n++
		}
	}
	return n, true
}

// about reports whether a business key is that of a fixture.
func (s *stepRun) about(fixture, key string) bool { return s.keys[fixture] == key }

func (x *execution) describe(s *stepRun, a *standing) string {
	return fmt.Sprintf("%s at %s with %s", s.Name, a.Checkpoint, a.Key)
}
