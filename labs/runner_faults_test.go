package labs

import (
	"testing"

	"mqlab/brokers"
)

// twoRuns is the shape of most crash labs: the fault strikes in the first run.
func twoRuns(fault string) string {
	return "  - {name: producer}\n  - {name: consumer-run1, role: consumer, " + fault + "}\n  - {name: consumer-run2, role: consumer}\n"
}

// handles are the acts of a consumer that takes one delivery.
func handles(fixture string, more ...string) []string {
	return append([]string{"log received " + fixture, "reach after-delivery " + fixture, "log business_committed " + fixture, "reach before-ack " + fixture}, more...)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	second := []string{"left 0", "log received order-1001", "finish"}
	tests := map[string]struct {
		scene
		want func(*testing.T, *stage)
	}{
		"halt exit": {
			scene{steps: twoRuns("halt: {at: before-ack, message: order-1002}"), left: 3, acts: map[string][]string{
				"consumer-run1": append(handles("order-1001"), handles("order-1002", "log received order-1003", "exit 9")...),
				"consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer-run1", 137)
				st.exit(t, "consumer-run2", 0)
				st.fault(t, 0, 1, 1)
				st.before(t, "line consumer-run1 waiting", "arrival consumer-run1 before-ack", "decision consumer-run1 before-ack halt",
					"line consumer-run1 crash_injected", "exit consumer-run1 137", "start consumer-run2", "finish consumer-run2", "exit consumer-run2 0")
			}},
		"halt kill is never answered": {
			scene{steps: twoRuns("halt: {at: before-ack, message: order-1001, how: kill}"), left: 3, acts: map[string][]string{
				"consumer-run1": handles("order-1001", "log done", "exit 9"), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer-run1", 137)
				st.fault(t, 0, 1, 1)
				st.before(t, "arrival consumer-run1 before-ack", "signal consumer-run1 killed", "exit consumer-run1 137")
				if n := st.at("decision consumer-run1 before-ack pass") + st.at("decision consumer-run1 before-ack halt"); n != 0 {
					t.Errorf("moment %d answers a role that is killed", n)
				}
				if s := st.ev.Record.Steps[1]; s.Signal != "killed" || s.Planned != 137 {
					t.Errorf("signal %q, planned %d; want killed, 137", s.Signal, s.Planned)
				}
			}},
		"halt term goes on": {
			scene{steps: twoRuns("halt: {at: before-ack, message: order-1001, how: term}"), left: 3, acts: map[string][]string{
				"consumer-run1": append([]string{"trap"}, handles("order-1001", "log done")...), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer-run1", 0)
				st.fault(t, 0, 1, 1)
				st.before(t, "arrival consumer-run1 before-ack", "signal consumer-run1 terminated", "line consumer-run1 stopping",
					"decision consumer-run1 before-ack pass", "line consumer-run1 done", "exit consumer-run1 0")
				if p := st.ev.Record.Steps[1].Planned; p != 0 {
					t.Errorf("planned exit %d, want 0", p)
				}
			}},
		"halt term-kill does not": {
			scene{steps: twoRuns("halt: {at: before-ack, message: order-1001, how: term-kill}"), left: 3, acts: map[string][]string{
				"consumer-run1": append([]string{"trap"}, handles("order-1001", "log done")...), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer-run1", 137)
				st.fault(t, 0, 1, 1)
				st.before(t, "signal consumer-run1 terminated", "line consumer-run1 stopping", "signal consumer-run1 killed", "exit consumer-run1 137")
				if st.at("line consumer-run1 done") != 0 {
					t.Error("the role went on")
				}
			}},
		"halt waits for its condition, the hold of another arrival stays": {
			scene{steps: twoRuns("hold: {at: before-commit, message: order-1001}, consumer: {design: async-pool}, " +
				"halt: {at: after-ack, message: order-1001, when: {step: consumer-run1, checkpoint: before-commit, message: order-1001}}"),
				left: 3, acts: map[string][]string{
					"consumer-run1": {"log received order-1001", "reach before-ack order-1001", "meanwhile reach after-ack order-1001", "reach before-commit order-1001", "join"},
					"consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer-run1", 137)
				st.fault(t, 0, 1, 1)
				st.fault(t, 1, 1, 1)
				st.before(t, "arrival consumer-run1 before-commit", "decision consumer-run1 after-ack halt", "exit consumer-run1 137")
				if st.at("decision consumer-run1 before-commit pass") != 0 {
					t.Error("the held worker was let go")
				}
			}},
		"fail strikes so many times": {
			scene{steps: "  - {name: producer}\n  - {name: consumer, fail: {at: after-delivery, message: order-1001, times: 2}}\n", left: 3, acts: map[string][]string{
				"consumer": {"reach after-delivery order-1001", "reach after-delivery order-1002", "reach after-delivery order-1001", "reach after-delivery order-1001", "left 0", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.fault(t, 0, 2, 3)
				want := []string{"decision consumer after-delivery fail", "decision consumer after-delivery pass", "decision consumer after-delivery fail", "decision consumer after-delivery pass"}
				if got := st.order("decision"); !equal(got, want) {
					t.Errorf("decisions %q, want %q", got, want)
				}
				if f := st.ev.Record.Faults[0]; f.Wanted != 2 {
					t.Errorf("wanted %d, want 2", f.Wanted)
				}
			}},
		"an arrival that never comes": {
			scene{steps: twoRuns("halt: {at: before-ack, arrival: 9}"), left: 3, acts: map[string][]string{
				"consumer-run1": append(handles("order-1001"), handles("order-1002", "left 0", "finish")...), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t) // whether a fault struck is for the judge to say
				st.fault(t, 0, 0, 2)
				st.exit(t, "consumer-run1", 0)
			}},
		"the second arrival of one message": {
			scene{steps: twoRuns("halt: {at: before-ack, message: order-1002, arrival: 2}"), left: 3, acts: map[string][]string{
				"consumer-run1": append(handles("order-1002"), append(handles("order-1001"), handles("order-1002")...)...), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.fault(t, 0, 1, 2)
				st.exit(t, "consumer-run1", 137)
			}},
		"before-offset-commit is before-ack": {
			scene{steps: twoRuns("halt: {at: before-offset-commit}"), left: 3, acts: map[string][]string{"consumer-run1": handles("order-1001"), "consumer-run2": second}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.fault(t, 0, 1, 1)
				st.exit(t, "consumer-run1", 137)
			}},
		"several arrivals of one process wait at once": {
			scene{steps: "  - {name: producer, background: true}\n  - {name: consumer, hold: {at: before-ack, message: order-1001, until: {step: producer, exit: 0}}}\n",
				left: 3, acts: map[string][]string{
					"producer": {"await passed"},
					"consumer": {"meanwhile reach before-ack order-1001", "reach before-ack order-1002", "reach before-ack order-1003", "tell passed", "join", "left 0", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.fault(t, 0, 1, 1)
				decided := map[string]int{}
				for _, m := range st.ev.replay.Moments {
					if m.Kind == "decision" {
						decided[m.Key] = m.Seq
					}
				}
				if one := decided["order-1001"]; one < decided["order-1002"] || one < decided["order-1003"] || one < st.at("exit producer 0") {
					t.Errorf("the held arrival was decided at %d: %v", one, decided)
				}
			}},
		"a condition about the broker": {
			scene{steps: "  - {name: producer}\n  - {name: consumer, hold: {at: before-ack, until: {broker: depth, is: 7}}}\n",
				left: 3, acts: map[string][]string{"consumer": {"reach before-ack order-1001", "left 0", "finish"}},
				hook: func(_ *stage, n int, s *brokers.State) error {
					if n >= 4 && s.Left == 3 {
						*s.Figures["depth"] = 7
					}
					return nil
				}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.fault(t, 0, 1, 1)
				if n := len(st.broker.asked); n < 6 {
					t.Errorf("the broker was asked %d times, the condition came true at the fourth", n)
				}
			}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want(t, tt.play(t))
		})
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
