package labs

import (
	"context"
	"time"
)

// drainable lists the consumers that may end as soon as the destination is
// drained: the one in the foreground; before an inspecting step and at the end
// of the scenario all of them, the last started first. It is empty while
// something can still publish.
func (x *execution) drainable() []*stepRun {
	if len(x.finish) > 0 {
		return nil
	}
	running := x.running()
	var ends []*stepRun
	for _, s := range running {
		if !s.Background && s.Until == nil && !s.told {
			ends = []*stepRun{s}
		}
	}
	if ends == nil && (x.inspectionWaits() || x.nothingElse()) {
		ends = running
	}
	if x.canPublish(running) {
		return nil
	}
	return ends
}

// inspectionWaits reports whether an inspecting step waits for the consumers
// alone.
func (x *execution) inspectionWaits() bool {
	for _, s := range x.steps {
		if s.started || !s.Inspects() || s.WhileRunning || s.index == 0 {
			continue
		}
		before := x.steps[s.index-1]
		if s.After == nil && (before.ended || before.Background && before.started) {
			return true
		}
		if s.After != nil && s.After.Broker == "" && x.holds(context.Background(), s.After) {
			return true
		}
	}
	return false
}

// nothingElse reports whether every step was started and only consumers run.
func (x *execution) nothingElse() bool {
	for _, s := range x.steps {
		if !s.started || !s.ended && s.RoleName() != RoleConsumer {
			return false
		}
	}
	return true
}

// canPublish reports whether a producer runs, or could start while one of the
// consumers runs. One that starts only after them does not count.
func (x *execution) canPublish(running []*stepRun) bool {
	for _, p := range x.steps {
		if p.RoleName() != RoleProducer || p.ended {
			continue
		}
		if p.started {
			return true
		}
		for _, c := range running {
			if !x.sc.startsAfterEnd(p.index, c.index) {
				return true
			}
		}
	}
	return false
}

// drain asks the broker and, when two readings agree that nothing is left,
// queues the consumers for their end.
func (x *execution) drain(ctx context.Context) {
	ends := x.drainable()
	st, err := x.latest(ctx)
	switch {
	case err != nil || st.Left != 0:
		x.first = time.Time{}
	case x.first.IsZero():
		x.first = x.state.Time
	case x.state.Time.Sub(x.first) >= settle:
		x.first = time.Time{}
		x.drained = true
		x.finish = ends
		x.finishing()
	}
}

// finishing tells the next consumer in line to finish; each ends before the
// next one is told. It reports whether one was told.
func (x *execution) finishing() bool {
	for len(x.finish) > 0 && x.finish[0].ended {
		x.finish = x.finish[1:]
	}
	return len(x.finish) > 0 && !x.finish[0].told && x.tell(x.finish[0])
}

// tell asks a consumer to finish, once, and reports whether the gate took it. A
// process that has not come to the gate yet is asked again at the next tick:
// on a destination that is empty from the beginning its end can be due before
// it has said hello.
func (x *execution) tell(s *stepRun) bool {
	if !s.told && s.guest.Finish() == nil {
		s.told = true
		x.ev.note(Moment{Kind: "finish", Step: s.Name})
	}
	return s.told
}
