package labs

import (
	"context"
	"errors"

	"mqlab/brokers"
)

// act does what a step says to the broker or to one client's connections. It
// goes on beside the loop, because a start takes seconds; its end is an event.
func (x *execution) act(ctx context.Context, s *stepRun) {
	x.ev.note(Moment{Kind: "act", Step: s.Name, Do: s.Broker})
	if s.Broker == Cut {
		if client := x.steps[x.sc.index(s.Client)]; !client.started || client.ended {
			x.ev.spoil("%s: %s has no connections to cut: it does not run", s.Name, s.Client)
			x.stepEnded(ctx, s, exit{code: 1})
			return
		}
		x.cut(s)
		return // it ends with the client's line: see wasCut
	}
	a := brokers.Act(s.Broker)
	if a == brokers.Kill || a == brokers.Stop || a == brokers.Restart || a == brokers.Disconnect {
		x.down = true
	}
	bounded, cancel := context.WithDeadline(ctx, x.nextDeadline())
	go func() { // ends with the act, which its context bounds
		defer cancel()
		err := x.Control.Act(bounded, a)
		x.events.post(func() { x.acted(ctx, s, a, err) })
	}()
}

// cut asks the client, again at the next tick if it has not come to the gate
// yet.
func (x *execution) cut(s *stepRun) {
	client := x.steps[x.sc.index(s.Client)]
	s.told = !s.ended && client.guest != nil && client.guest.Cut() == nil
}

// cutting lists the steps whose client has not come to the gate yet.
func (x *execution) cutting() []*stepRun {
	var waiting []*stepRun
	for _, s := range x.steps {
		if s.Broker == Cut && s.started && !s.ended && !s.told {
			waiting = append(waiting, s)
		}
	}
	return waiting
}

// acted is the end of an act. After a start the broker is a new one, and after a
// connect a new way leads to it: the runner's own connection is made again.
func (x *execution) acted(ctx context.Context, s *stepRun, a brokers.Act, err error) {
	e := exit{}
	if err != nil {
		e.code = 1
		if !x.ending {
			x.ev.spoil("%s: %v", s.Name, err)
		}
	}
	if err == nil && (a == brokers.Start || a == brokers.Restart || a == brokers.Connect) {
		x.down = false
		if err := x.reopen(ctx); err != nil && !x.ending {
			x.ev.spoil("%s: ask the broker for its numbers: %v", s.Name, err)
			e.code = 1
		}
	}
	x.stepEnded(ctx, s, e)
}

// reopen replaces the inspector.
func (x *execution) reopen(ctx context.Context) error {
	fresh, err := x.Driver.OpenInspector(ctx, x.Control.Origin().Address)
	if err != nil {
		return err
	}
	x.inspector.Close() //nolint:errcheck // its broker is gone
	x.inspector = fresh
	return nil
}

// errDown is the answer of a broker that the scenario has ended.
var errDown = errors.New("the broker is down")

// wasCut ends the step that asked for it.
func (x *execution) wasCut(ctx context.Context, client *stepRun) {
	for _, s := range x.steps {
		if s.Broker == Cut && s.Client == client.Name && s.started && !s.ended {
			x.stepEnded(ctx, s, exit{})
			return
		}
	}
}

// missedCut notices that a client ended before it was cut.
func (x *execution) missedCut(ctx context.Context, client *stepRun) {
	for _, s := range x.steps {
		if s.Broker == Cut && s.Client == client.Name && s.started && !s.ended {
			x.ev.spoil("%s: %s ended before its connections were cut", s.Name, s.Client)
			x.stepEnded(ctx, s, exit{code: 1})
		}
	}
}
