package labs

import (
	"context"
	"strconv"
)

// holds reports whether a condition is true now.
func (x *execution) holds(ctx context.Context, c *Condition) bool {
	if c.Broker != "" {
		st, err := x.latest(ctx)
		if err != nil {
			return false
		}
		v := st.Figures[c.Broker]
		return v != nil && *v == *c.Is
	}
	for _, name := range c.Step {
		if !x.did(x.steps[x.sc.index(name)], c) {
			return false
		}
	}
	return true
}

// did reports whether a step has done what the condition says.
func (x *execution) did(s *stepRun, c *Condition) bool {
	if c.Exit != "" {
		return s.ended && s.rec.Exit != nil && (c.Exit == "any" || strconv.Itoa(*s.rec.Exit) == c.Exit)
	}
	n := 0
	for _, a := range s.standing {
		if c.Checkpoint == string(a.Checkpoint) && (c.Message == "" || s.about(c.Message, a.Key)) {
			n++
		}
	}
	for _, l := range s.log {
		if c.Status != "" && l.Get("status") == c.Status && (c.Message == "" || s.about(c.Message, l.Get("aggregateId"))) {
			n++
		}
	}
	return n >= max(1, c.Count)
}

// polls reports whether something that the run waits for can only be seen by
// asking the broker.
func (x *execution) polls() bool {
	if x.ending {
		return false
	}
	if len(x.cutting()) > 0 || x.drainable() != nil || len(x.finish) > 0 && !x.finish[0].told {
		return true
	}
	for _, s := range x.steps {
		if !s.started && (s.After != nil && s.After.Broker != "" || x.needsQuiet(s)) {
			return true
		}
		for _, a := range s.standing {
			if !a.decided && a.next < len(a.faults) && a.faults[a.next].Until != nil && a.faults[a.next].Until.Broker != "" {
				return true
			}
		}
	}
	return false
}
