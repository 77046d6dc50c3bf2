package labs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
)

// execution is one run while it goes on. Everything in it belongs to the
// goroutine of run; the children and the gate speak to it through events.
type execution struct {
	*Runner
	lab       *Lab
	sc        *Scenario
	id        string
	dest      brokers.Destination
	ev        *Evidence
	door      *gate.Server
	inspector brokers.Inspector
	events    *events

	steps    []*stepRun
	finish   []*stepRun    // consumers to be told to finish, one after the other
	drained  bool          // the destination was drained at least once
	first    time.Time     // the first of the two readings that must agree
	state    *StateRecord  // the latest answer of this round of polling
	limit    time.Duration // of the whole run
	deadline time.Time
	ticking  bool  // the tick is armed
	down     bool  // the scenario has ended the broker
	ending   bool  // the children are being ended early
	failed   error // why there is nothing to judge

	copyFaults func() // puts the faults into the record
}

// stepRun is one step of the plan.
type stepRun struct {
	Step
	index    int
	rec      *StepRecord
	child    *child
	guest    *gate.Guest
	started  bool
	ended    bool
	deadline time.Time
	told     bool // finish was sent; of a cut: the client was asked
	faults   []*faultRun
	keys     map[string]string // business keys by fixture
	log      []LogLine         // our own lines
	tokens   map[string]bool   // waiting lines that were read
	early    []gate.Arrival    // arrivals whose line was not read yet
	standing []*standing       // arrivals in the runner's order, decided ones too
}

// standing is one arrival at the gate.
type standing struct {
	gate.Arrival
	faults  []*faultRun // what strikes here, in order
	next    int         // the fault that is being dealt with
	begun   bool        // its stop or signal was sent
	fail    bool        // the decision will be fail
	late    bool        // it was held or frozen
	decided bool
}

// faultRun is a declared fault and what became of it.
type faultRun struct {
	Fault
	rec *FaultRecord
}

// plan lays out steps and faults before anything starts.
func (x *execution) plan() {
	x.ev.Record.Steps = make([]StepRecord, len(x.sc.Steps))
	var faults []*faultRun
	keys := map[string]string{}
	for name, f := range x.lab.Fixtures {
		keys[name] = f.Envelope.AggregateID
	}
	for i, s := range x.sc.Steps {
		rec := &x.ev.Record.Steps[i]
		rec.Name, rec.Role = s.Name, s.RoleName()
		switch rec.Role {
		case RoleConsumer:
			rec.Store = x.sc.ConsumerOf(s).Store
		case RoleInspectDB:
			rec.Store = x.sc.StoreOf(s)
		}
		st := &stepRun{Step: s, index: i, rec: rec, keys: keys, tokens: map[string]bool{}}
		for _, f := range s.Faults() {
			fr := &faultRun{Fault: f, rec: &FaultRecord{Step: s.Name, Kind: f.Kind, How: f.How, At: f.At, Message: f.Message, Arrival: f.Arrival, Wanted: max(1, f.Times)}}
			st.faults = append(st.faults, fr)
			faults = append(faults, fr)
			if f.Kind == KindHalt && f.How != HowTerm {
				rec.Planned = gate.ExitHalt
			}
		}
		x.steps = append(x.steps, st)
	}
	// The records are copied when the run is over: see run.
	x.copyFaults = func() {
		for _, f := range faults {
			x.ev.Record.Faults = append(x.ev.Record.Faults, *f.rec)
		}
	}
}

// run is the loop: start what can start, decide what can be decided, then wait
// for the next thing to happen.
func (x *execution) run(ctx context.Context) {
	x.limit = cmp.Or(x.Timeout, x.sc.Timeout.Std(), DefaultTimeout)
	x.deadline = time.Now().Add(x.limit)
	tick := time.NewTimer(0)
	x.ticking = true
	defer tick.Stop()
	died, cancelled := x.Control.Died(), ctx.Done()
	for !x.settled() {
		if !x.ending {
			x.advance(ctx, tick)
		}
		if x.settled() {
			break
		}
		select {
		case <-x.events.ready:
			x.events.next()()
		case <-tick.C:
			x.ticking, x.state = false, nil
		case <-died:
			died = nil
			x.ev.spoil("the broker died in mid-run%s", lastWords(x.Control.Log()))
			x.end(syscall.SIGKILL)
		case <-cancelled:
			cancelled = nil
			x.ev.Record.Interrupted = true
			x.ev.spoil("interrupted")
			x.end(syscall.SIGKILL)
		case <-time.After(time.Until(x.nextDeadline())):
			x.expire()
		}
	}
	x.copyFaults()
	if !x.ending {
		s, err := x.ask(ctx)
		x.ev.state(StateRecord{At: AtEnd, Of: x.dest.Name()}, s, err)
		if errors.Is(err, brokers.ErrConnectionLost) {
			x.checkBroker(ctx)
		}
	}
}

// checkBroker looks whether the broker is still there after a connection was
// lost. If it is gone, what the roles did since then proves nothing; the news
// that its process has ended may come later than they do.
func (x *execution) checkBroker(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	if _, err := x.Driver.Probe(bounded, x.Control.Origin().Address); err != nil && ctx.Err() == nil {
		x.ev.spoil("the broker went away in mid-run: %v%s", err, lastWords(x.Control.Log()))
		x.end(syscall.SIGKILL)
	}
}

func lastWords(log []byte) string {
	if s := brokers.LastWords(log); s != "" {
		return "; its last lines: " + s
	}
	return ""
}

// settled reports whether there is nothing more to wait for.
func (x *execution) settled() bool {
	for _, s := range x.steps {
		if s.started && !s.ended || !s.started && !x.ending {
			return false
		}
	}
	return true
}

// advance does everything that can be done now, and arms the tick if the next
// thing can only be seen by asking the broker.
func (x *execution) advance(ctx context.Context, tick *time.Timer) {
	for again := true; again && !x.ending; {
		again = x.decideAll(ctx)
		for _, s := range x.steps {
			if !s.started && !x.ending && x.canStart(ctx, s) {
				x.start(ctx, s)
				again = true
			}
		}
		if x.finishing() {
			again = true
		}
	}
	for _, s := range x.cutting() {
		x.cut(s)
	}
	if !x.ending && x.drainable() != nil {
		x.drain(ctx)
	} else {
		x.first = time.Time{} // two readings agree only about the same consumers
	}
	if !x.ticking && x.polls() { // an armed tick stays: lines must not put it off for ever
		x.ticking = true
		tick.Reset(pollEvery)
	}
}

// ask asks the broker, bounded.
func (x *execution) ask(ctx context.Context) (brokers.State, error) {
	if x.down {
		return brokers.State{}, errDown
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	return x.inspector.State(ctx, x.dest)
}

// latest is the broker's answer of this round of polling.
func (x *execution) latest(ctx context.Context) (brokers.State, error) {
	if x.state == nil {
		asked := time.Now()
		s, err := x.ask(ctx)
		x.state = &StateRecord{Time: asked, State: &s}
		if err != nil {
			x.state = &StateRecord{Time: asked, Err: err.Error()}
		}
		if errors.Is(err, brokers.ErrConnectionLost) && !x.ending {
			x.checkBroker(ctx)
			if !x.ending {
				x.ev.spoil("the runner's own connection to the broker was lost: %v", err)
				x.end(syscall.SIGKILL)
			}
		}
	}
	if x.state.State == nil {
		return brokers.State{}, fmt.Errorf("%s", x.state.Err)
	}
	return *x.state.State, nil
}

// nextDeadline is when the first of the bounds is reached.
func (x *execution) nextDeadline() time.Time {
	d := x.deadline
	for _, s := range x.steps {
		if s.started && !s.ended && !s.deadline.IsZero() && s.deadline.Before(d) {
			d = s.deadline
		}
	}
	return d
}

// expire ends a run that waits for something that does not come.
func (x *execution) expire() {
	if x.ending { // SIGQUIT was not enough
		x.signalAll(syscall.SIGKILL)
		x.deadline = time.Now().Add(time.Hour) // a killed process ends
		return
	}
	for _, s := range x.steps {
		if s.started && !s.ended && !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
			x.ev.spoil("%s timed out after %s: %s", s.Name, s.Timeout.Std(), x.waitingFor())
		}
	}
	if !time.Now().Before(x.deadline) {
		x.ev.spoil("timed out after %s: %s", x.limit, x.waitingFor())
	}
	x.end(syscall.SIGQUIT)
	x.deadline = time.Now().Add(lastChance)
	for _, s := range x.steps {
		s.deadline = time.Time{}
	}
}

// waitingFor says where the steps stand.
func (x *execution) waitingFor() string {
	var parts []string
	for _, s := range x.steps {
		switch {
		case !s.started:
			parts = append(parts, s.Name+" was never started")
		case s.ended:
		case s.undecided() != nil:
			parts = append(parts, fmt.Sprintf("%s stands at %s with %s", s.Name, s.undecided().Checkpoint, s.undecided().Key))
		case s.told:
			parts = append(parts, s.Name+" was told to finish and goes on")
		default:
			parts = append(parts, s.Name+" runs")
		}
	}
	if x.state != nil && x.state.State != nil && x.state.State.Left > 0 {
		parts = append(parts, fmt.Sprintf("%s still holds %d", x.dest.Name(), x.state.State.Left))
	}
	if x.state != nil && x.state.Err != "" {
		parts = append(parts, "the broker did not say its numbers: "+x.state.Err)
	}
	return strings.Join(parts, ", ")
}

func (s *stepRun) undecided() *standing {
	for _, a := range s.standing {
		if !a.decided {
			return a
		}
	}
	return nil
}

// end stops every child early; a stopped one is thawed, or it could not end.
func (x *execution) end(sig syscall.Signal) {
	x.ending = true
	x.signalAll(sig)
}

func (x *execution) signalAll(sig syscall.Signal) {
	for _, s := range x.steps {
		if s.started && !s.ended && s.child != nil {
			x.signal(s, sig)
			x.signal(s, syscall.SIGCONT)
		}
	}
}

func (x *execution) signal(s *stepRun, sig syscall.Signal) {
	x.ev.note(Moment{Kind: "signal", Step: s.Name, Do: sig.String()})
	if err := s.child.signal(sig); err != nil {
		x.ev.spoil("%v", err)
	}
}
