package labs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
)

func TestRolesThatMisbehave(t *testing.T) {
	t.Parallel()
	const one = "  - {name: producer}\n  - {name: consumer}\n"
	tests := map[string]struct {
		scene
		want func(*testing.T, *stage)
	}{
		"one that hangs is ended with its stack": {
			scene{steps: one, left: 2, timeout: 3 * time.Second, acts: map[string][]string{"consumer": {"log received order-1001", "hang"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "timed out after 3s: consumer runs, orders still holds 2")
				st.exit(t, "consumer", 2) // Go's own after SIGQUIT
				st.before(t, "signal consumer quit", "exit consumer 2")
				if b, err := os.ReadFile(filepath.Join(st.ev.Dir(), "consumer.err.txt")); err != nil || !bytes.Contains(b, []byte("goroutine ")) {
					t.Errorf("no stack in its error output: %q, %v", b, err)
				}
				if !st.ev.Record.Complete {
					t.Error("the record is not complete; it is evidence all the same")
				}
				st.gone(t, "consumer")
			}},
		"one that is deaf is killed": {
			scene{steps: one, left: 1, timeout: 2 * time.Second, acts: map[string][]string{"consumer": {"deaf", "hang"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "timed out after 2s")
				st.exit(t, "consumer", 137)
				st.before(t, "signal consumer quit", "signal consumer killed", "exit consumer 137")
				st.gone(t, "consumer")
			}},
		"one that hangs frozen is thawed to be ended": {
			scene{steps: "  - {name: producer}\n  - {name: consumer, freeze: {at: after-delivery, until: {broker: depth, is: 99}}}\n", left: 1, timeout: 3 * time.Second,
				acts: map[string][]string{"consumer": {"reach after-delivery order-1001", "finish"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "consumer stands at after-delivery with order-1001")
				st.exit(t, "consumer", 2)
				st.gone(t, "consumer")
			}},
		"a step's own bound is named": {
			scene{steps: "  - {name: producer, timeout: 1s}\n", acts: map[string][]string{"producer": {"hang"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "producer timed out after 1s: producer runs")
				if len(st.ev.Record.Spoiled) != 1 {
					t.Errorf("spoiled %q, want one reason", st.ev.Record.Spoiled)
				}
			}},
		"steps that never started are named": {
			scene{steps: "  - {name: producer, timeout: 1s}\n  - {name: consumer}\n", acts: map[string][]string{"producer": {"hang"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "consumer was never started")
				if s := st.ev.Record.Steps[1]; s.Exit != nil || !s.Started.IsZero() {
					t.Errorf("the step that never started has the record %+v", s)
				}
			}},
		"ten megabytes on one line": {
			scene{steps: one, acts: map[string][]string{"consumer": {"log received order-1001", "long 10485760", "log business_committed order-1001", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				run := st.load(t)
				lines := run.Steps[1].Lines
				if len(lines) != 4 || len(lines[1].Text) != 10<<20 || lines[1].Own() || lines[2].Get("status") != "business_committed" {
					t.Errorf("%d lines were read back", len(lines))
				}
				for _, m := range st.ev.replay.Moments {
					if len(m.Content) > maxLine {
						t.Errorf("a moment holds %d bytes", len(m.Content))
					}
				}
			}},
		"binary": {
			scene{steps: one, acts: map[string][]string{"consumer": {"binary", "log received order-1001", "finish"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				if run := st.load(t); run.Steps[1].Lines[len(run.Steps[1].Lines)-1].Get("status") != "done" {
					t.Error("the last line was lost")
				}
			}},
		"a line after done": {
			scene{steps: one, acts: map[string][]string{"consumer": {"finish", "log received order-1001"}}},
			func(t *testing.T, st *stage) { st.spoiled(t, "consumer.out.txt:2: a line after status=done") }},
		"a grandchild that keeps the output open": {
			scene{steps: one, acts: map[string][]string{"consumer": {"grandchild", "finish"}}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "consumer ended, but another process kept its output open")
				st.exit(t, "consumer", 0)
				st.gone(t, "grandchild")
			}},
		"one that ends before it has said hello": {
			scene{steps: one, left: 1, acts: map[string][]string{"consumer": {"stranger", "exit 3"}}},
			func(t *testing.T, st *stage) {
				st.clean(t) // its exit is for the judge
				st.exit(t, "consumer", 3)
			}},
		"one that ends by a signal": {
			scene{steps: one, left: 1, acts: map[string][]string{"consumer": {"raise 9"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer", 137)
				if s := st.ev.Record.Steps[1]; s.Signal != "killed" || s.Planned != 0 {
					t.Errorf("signal %q, planned %d; want killed, 0", s.Signal, s.Planned)
				}
			}},
		"one that ends by another signal": {
			scene{steps: one, left: 1, acts: map[string][]string{"consumer": {"raise 15"}}},
			func(t *testing.T, st *stage) { st.exit(t, "consumer", 143) }},
		"one that dies while it is held": {
			scene{steps: "  - {name: consumer, background: true, hold: {at: before-ack, until: {broker: depth, is: 99}}}\n" +
				"  - {name: inspect-now, role: inspect-db, while-running: true, after: {step: consumer, checkpoint: before-ack}}\n",
				left: 1,
				acts: map[string][]string{"consumer": {"meanwhile reach before-ack order-1001", "await seen", "exit 4"}, "inspect-now": {"tell seen"}}},
			func(t *testing.T, st *stage) {
				st.clean(t)
				st.exit(t, "consumer", 4)
				st.fault(t, 0, 1, 1)
			}},
		"the broker dies": {
			scene{steps: one, left: 1, acts: map[string][]string{"consumer": {"reach before-ack order-1001", "hang"}},
				hook: func(st *stage, n int, _ *brokers.State) error {
					if told(st.world, "pid-consumer") != 0 {
						st.broker.words = "beam.smp: out of memory\n"
						select {
						case <-st.broker.died:
						default:
							close(st.broker.died)
						}
					}
					return nil
				}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "the broker died in mid-run; its last lines: beam.smp: out of memory")
				st.exit(t, "consumer", 137)
				if !st.ev.Record.Complete || st.ev.Record.Interrupted {
					t.Error("the evidence of a dead broker is complete")
				}
				if len(st.broker.removed) != 0 {
					t.Errorf("removed %q from a dead broker", st.broker.removed)
				}
				st.gone(t, "consumer")
			}},
		"the user interrupts": {
			scene{steps: one, left: 1, acts: map[string][]string{"consumer": {"reach before-ack order-1001", "deaf", "hang"}},
				hook: func(st *stage, n int, _ *brokers.State) error {
					if told(st.world, "pid-consumer") != 0 {
						st.cancel()
					}
					return nil
				}},
			func(t *testing.T, st *stage) {
				st.spoiled(t, "interrupted")
				r := st.ev.Record
				if !r.Interrupted || r.Complete {
					t.Errorf("interrupted %v, complete %v; want true, false", r.Interrupted, r.Complete)
				}
				if err := st.ev.Seal(); err != nil || !strings.HasSuffix(st.ev.Dir(), partial) {
					t.Errorf("Seal: %v, folder %s; want it partial", err, st.ev.Dir())
				}
				if _, err := LoadRun(st.ev.Dir(), false); err == nil {
					t.Error("the judge reads an interrupted run")
				}
				if len(st.broker.removed) != 1 {
					t.Errorf("removed %q, want the run's one destination", st.broker.removed)
				}
				st.gone(t, "consumer")
			}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want(t, tt.play(t))
		})
	}
}

// load seals the run and reads it back.
func (st *stage) load(t *testing.T) *Run {
	t.Helper()
	if err := st.ev.Seal(); err != nil {
		t.Fatal(err)
	}
	run, err := LoadRun(st.ev.Dir(), false)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// What the evidence says about a step's command holds no secret, and the role
// is told enough to run.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: producer}\n"}.play(t)
	st.clean(t)
	c := st.ev.Record.Steps[0].Command
	want := []string{os.Args[0], "role", "producer", "--lab", "rabbitmq/decoy", "--step", "producer", "--run", st.ev.Record.Run, "--store"}
	if len(c) < len(want) || !equal(c[:len(want)], want) {
		t.Errorf("command line %q, want it to begin with %q", c, want)
	}
	for _, f := range glob(st.ev.Dir(), "*") {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("hush")) || bytes.Contains(b, []byte(gate.EnvKey)) {
			t.Errorf("%s holds a secret, or: %v", f, err)
		}
	}
}

// A role that cannot be started is the end of the run, whatever waits for it.
func TestProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"the next step": "  - {name: producer}\n  - {name: consumer}\n",
		"a condition":   "  - {name: producer}\n  - {name: consumer, after: {step: producer, exit: any}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := scene{steps: steps, program: filepath.Join(t.TempDir(), "no-such-mqlab")}.play(t)
			if st.err == nil || !strings.Contains(st.err.Error(), "start producer: ") {
				t.Errorf("Run: %v, want that producer could not be started", st.err)
			}
			if strings.Contains(st.err.Error(), "start consumer") {
				t.Errorf("Run: %v; the consumer was tried too", st.err)
			}
		})
	}
}
