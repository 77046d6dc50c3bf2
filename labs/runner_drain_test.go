package labs

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mqlab/brokers"
)

func TestDraining(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scene
		want func(*testing.T, *stage)
	}{
		"the last consumer in the foreground ends when nothing is left": {
			scene{steps: "  - {name: producer}\n  - {name: consumer}\n  - {name: inspect-db}\n", left: 1,
				acts: map[string][]string{"consumer": {"reach before-ack order-1001", "left 0", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.before(t, "exit producer 0", "decision consumer before-ack pass", "finish consumer", "line consumer done", "exit consumer 0", "start inspect-db")
			}},
		"background consumers finish in reverse order of start, before the inspection": {
			scene{steps: "  - {name: consumer-a, role: consumer, background: true}\n  - {name: consumer-b, role: consumer, background: true}\n" +
				"  - {name: consumer-c, role: consumer, background: true}\n  - {name: inspect-db}\n  - {name: inspect-broker, inspect: broker}\n",
				acts: map[string][]string{"consumer-a": {"finish"}, "consumer-b": {"finish"}, "consumer-c": {"finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.before(t, "start consumer-a", "start consumer-b", "start consumer-c", "finish consumer-c", "exit consumer-c 0",
					"finish consumer-b", "exit consumer-b 0", "finish consumer-a", "exit consumer-a 0", "start inspect-db", "exit inspect-db 0", "start inspect-broker")
				i := slices.IndexFunc(st.ev.Record.States, func(s StateRecord) bool { return s.At == AtInspect && s.Step == "inspect-broker" && s.State != nil })
				if i < 0 {
					t.Errorf("no state of the inspection in %+v", st.ev.Record.States)
				}
			}},
		"an inspection while they run does not wait": {
			scene{steps: "  - {name: consumer, background: true}\n  - {name: inspect-now, role: inspect-db, while-running: true, after: {step: consumer, checkpoint: before-ack}}\n",
				left: 1, acts: map[string][]string{"consumer": {"reach before-ack order-1001", "await looked", "left 0", "finish"}, "inspect-now": {"tell looked"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.before(t, "start consumer", "exit inspect-now 0", "finish consumer", "exit consumer 0")
			}},
		"a producer still to come keeps it undrained": {
			scene{steps: "  - {name: consumer, background: true}\n  - {name: producer, after: {step: consumer, checkpoint: after-delivery}}\n",
				acts: map[string][]string{"consumer": {"reach after-delivery order-1001", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.before(t, "arrival consumer after-delivery", "start producer", "exit producer 0", "finish consumer")
			}},
		"a producer that starts only after them does not": {
			scene{steps: "  - {name: consumer}\n  - {name: producer}\n  - {name: consumer-late, role: consumer}\n",
				acts: map[string][]string{"consumer": {"finish"}, "consumer-late": {"finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.before(t, "finish consumer", "exit consumer 0", "start producer", "start consumer-late", "finish consumer-late")
			}},
		"until.received ends by itself": {
			scene{steps: "  - {name: consumer, until: {received: 2}}\n  - {name: inspect-broker, inspect: broker}\n",
				left: 5, acts: map[string][]string{"consumer": {"reach before-ack order-1001", "reach before-ack order-1002", "log done"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				if st.at("finish consumer") != 0 {
					t.Error("it was told to finish")
				}
				if c := st.ev.Record.Steps[0].Command; !slices.Contains(c, "--received") || c[slices.Index(c, "--received")+1] != "2" {
					t.Errorf("command line %q has no --received 2", c)
				}
				if s := st.ev.Record.States; len(s) == 0 || *s[len(s)-1].State.Figures["depth"] != 5 {
					t.Error("the broker's last state is not in the record")
				}
			}},
		"a consumer that prints without end is drained all the same": {
			scene{steps: "  - {name: consumer}\n", acts: map[string][]string{"consumer": {"chatter", "finish"}}},
			func(t *testing.T, st *stage) { st.clean(t) }},
		"the next consumer waits until the broker has forgotten the last one": {
			scene{steps: "  - {name: consumer-run1, role: consumer, halt: {at: before-ack}}\n  - {name: consumer-run2, role: consumer}\n",
				left: 1, acts: map[string][]string{"consumer-run1": {"reach before-ack order-1001"}, "consumer-run2": {"left 0", "finish"}},
				hook: func(st *stage, n int, s *brokers.State) error {
					s.Idle = s.Left == 0 || n > 4
					return nil
				}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				asked := 0
				for _, m := range st.broker.asked {
					if m.Before(st.ev.Record.Steps[1].Started) {
						asked++
					}
				}
				if asked < 5 {
					t.Errorf("the broker was asked %d times before the second consumer started, it was quiet at the fifth", asked)
				}
			}},
		"a broker that does not answer is not a drained one": {
			scene{steps: "  - {name: consumer}\n", acts: map[string][]string{"consumer": {"finish"}},
				hook: func(_ *stage, n int, _ *brokers.State) error {
					if n < 6 {
						return errors.New("the management API is busy")
					}
					return nil
				}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				if n := len(st.broker.asked); n < 7 {
					t.Errorf("asked %d times, the first good answer is the sixth and two have to agree", n)
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

// Two readings at least 50 ms apart must agree before a consumer is told to
// end, and a reading of an earlier consumer's time does not count.
func TestDrainedTwice(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: consumer-run1, role: consumer}\n  - {name: consumer-run2, role: consumer}\n",
		acts: map[string][]string{
			"consumer-run1": {"await asked", "exit 3"},
			"consumer-run2": {"finish"}},
		hook: func(st *stage, n int, _ *brokers.State) error {
			if n == 1 { // the first reading of run1; it ends before the second
				(&actor{world: st.world}).tell("asked", 1)
				for end := time.Now().Add(patience); brokers.ProcessStart(told(st.world, "pid-consumer-run1")) != "" && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(settle) // so that the first reading is old enough for a wrong agreement
			}
			return nil
		}}.play(t)
	st.exit(t, "consumer-run1", 3)
	st.exit(t, "consumer-run2", 0)
	var readings []time.Time
	for _, at := range st.broker.asked {
		if at.After(st.ev.Record.Steps[1].Started) {
			readings = append(readings, at)
		}
	}
	told := time.Unix(0, int64(told(st.world, "finished-consumer-run2")))
	n := 0
	for n < len(readings) && readings[n].Before(told) {
		n++
	}
	if n < 2 || readings[n-1].Sub(readings[0]) < settle {
		t.Errorf("told to finish after %d readings (%v), want two of its own at least %v apart", n, readings, settle)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: consumer-a, role: consumer, background: true, freeze: {at: after-delivery, until: {step: consumer-b, exit: any}}}\n" +
		"  - {name: consumer-b, role: consumer, after: {step: consumer-a, checkpoint: after-delivery}}\n",
		left: 1, acts: map[string][]string{
			"consumer-a": {"reach after-delivery order-1001", "finish"},
			"consumer-b": {"log received order-1001", "left 0", "finish"}},
		hook: func(st *stage, _ int, s *brokers.State) error {
			// While the second one works, the first must stand still.
			if pid := told(st.world, "pid-consumer-b"); pid != 0 && s.Left == 0 && brokers.ProcessStart(pid) != "" {
				stopped, err := brokers.ProcessStopped(told(st.world, "pid-consumer-a"))
				if err != nil || !stopped {
					return errors.New("consumer-a is not stopped")
				}
			}
			return nil
		}}.play(t)
	st.clean(t)
	st.fault(t, 0, 1, 1)
	// Let go after the destination was drained: it must end, not take more.
	st.before(t, "arrival consumer-a after-delivery", "signal consumer-a stopped (signal)", "start consumer-b", "finish consumer-b", "exit consumer-b 0",
		"signal consumer-a continued", "finish consumer-a", "decision consumer-a after-delivery pass", "exit consumer-a 0")
}
