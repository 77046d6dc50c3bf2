package labs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mqlab/brokers"
)

// remembered writes the record of a run, as another mqlab would have.
func (st *stage) remembered(t *testing.T, rec leftover) string {
	t.Helper()
	b, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(st.runner.State, "runs", rec.Run+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweep(t *testing.T) {
	t.Parallel()
	self := brokers.ProcessStart(os.Getpid())
	if self == "" {
		t.Fatal("a living process has no start time")
	}
	const here = "amqp://guest@127.0.0.1:5672"
	queue := brokers.Destination{Queue: "orders"}
	tests := map[string]struct {
		rec   leftover
		swept bool
	}{
		"a process that is gone":   {leftover{Run: "gone", PID: 1 << 30, Start: "1", Product: "rabbitmq", Address: here, Destination: queue}, true},
		"a pid that was reused":    {leftover{Run: "reused", PID: os.Getpid(), Start: self + "1", Product: "rabbitmq", Address: here, Destination: queue}, true},
		"a run that goes on":       {leftover{Run: "living", PID: os.Getpid(), Start: self, Product: "rabbitmq", Address: here, Destination: queue}, false},
		"another broker's":         {leftover{Run: "elsewhere", PID: 1 << 30, Start: "1", Product: "rabbitmq", Address: "amqp://guest@example.org:5672", Destination: queue}, false},
		"another product's":        {leftover{Run: "other", PID: 1 << 30, Start: "1", Product: "kafka", Address: here, Destination: queue}, false},
		"a start that nobody knew": {leftover{Run: "unknown", PID: 1 << 30, Start: "", Product: "rabbitmq", Address: here, Destination: queue}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := scene{steps: "  - {name: producer}\n"}.set(t)
			path := st.remembered(t, tt.rec)
			n, err := st.runner.Sweep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []string(nil)
			if tt.swept {
				want = []string{"orders-mqlab-" + tt.rec.Run}
			}
			if n != len(want) || !equal(st.broker.removed, want) {
				t.Errorf("swept %d, removed %q; want %q", n, st.broker.removed, want)
			}
			if exists(path) == tt.swept {
				t.Errorf("the record is still there: %v", !tt.swept)
			}
		})
	}
}

// Two runs that begin at once may sweep the same record.
func TestSweepTwiceAtOnce(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: producer}\n"}.set(t)
	path := st.remembered(t, leftover{Run: "gone", PID: 1 << 30, Start: "1", Product: "rabbitmq", Address: "amqp://guest@127.0.0.1:5672", Destination: brokers.Destination{Queue: "orders"}})
	st.broker.onRemove = func(brokers.Destination) error { return os.Remove(path) } // the other one was faster
	if _, err := st.runner.Sweep(t.Context()); err != nil {
		t.Errorf("Sweep: %v", err)
	}
}

func TestSweepKeepsWhatItCouldNotRemove(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: producer}\n"}.set(t)
	path := st.remembered(t, leftover{Run: "gone", PID: 1 << 30, Start: "1", Product: "rabbitmq", Address: "amqp://guest@127.0.0.1:5672", Destination: brokers.Destination{Queue: "orders"}})
	no := errors.New("access refused")
	st.broker.onRemove = func(brokers.Destination) error { return no }
	if n, err := st.runner.Sweep(t.Context()); n != 0 || !errors.Is(err, no) {
		t.Errorf("Sweep = %d, %v; want the broker's refusal", n, err)
	}
	if !exists(path) {
		t.Error("the record is gone, so the next run cannot try again")
	}
}

// A run on a broker that outlives it is remembered while it goes on, without
// the password, and forgotten at its end.
func TestRunIsRememberedWhileItGoesOn(t *testing.T) {
	t.Parallel()
	var seen []byte
	st := scene{steps: "  - {name: producer}\n", hook: func(st *stage, _ int, _ *brokers.State) error {
		for _, f := range glob(st.runner.State, "runs/*.json") {
			seen, _ = os.ReadFile(f) // an empty one fails below
			if n, err := st.runner.Sweep(t.Context()); n != 0 || err != nil {
				t.Errorf("Sweep = %d, %v; it takes a living run for a killed one", n, err)
			}
		}
		return nil
	}}.set(t)
	st.broker.origin.Adopted = true
	st.play(t)
	st.clean(t)
	var rec leftover
	if err := json.Unmarshal(seen, &rec); err != nil || rec.Run != st.ev.Record.Run || rec.PID != os.Getpid() || rec.Destination.Queue != "orders" {
		t.Errorf("the record is %q (%v)", seen, err)
	}
	if rec.Address != "amqp://guest@127.0.0.1:5672" {
		t.Errorf("the address is %q, want it without the password", rec.Address)
	}
	if left := glob(st.runner.State, "runs/*"); len(left) != 0 {
		t.Errorf("still remembered: %q", left)
	}
	if want := []string{"orders-mqlab-" + rec.Run}; !equal(st.broker.removed, want) {
		t.Errorf("removed %q, want %q", st.broker.removed, want)
	}
}

func TestRunThatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	st := scene{steps: "  - {name: producer}\n"}.set(t)
	st.broker.origin.Adopted = true
	st.runner.State = filepath.Join(st.world, "script.json") // a file, not a folder
	st.play(t)
	if st.err == nil {
		t.Fatal("a run that nobody could clean up after was started")
	}
	if left := glob(st.runner.Root, "rabbitmq/decoy/*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}
