package labs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqlab/brokers"
)

// patience bounds what must happen soon; a scene that needs it has failed.
const patience = 30 * time.Second

// head is the beginning of a decoy scenario; the steps follow.
const head = `summary: a scene
destination: {queue: orders}
messages: [order-1001, order-1002, order-1003]
steps:
`

// scene is one run with decoy roles.
type scene struct {
	steps   string // the scenario's steps, as YAML list items
	acts    map[string][]string
	left    int // what the broker owes at the beginning
	timeout time.Duration
	hook    func(st *stage, n int, s *brokers.State) error
	program string // instead of the test binary
}

// stage is where a scene plays, and what it left.
type stage struct {
	world  string
	broker *fakeBroker
	runner *Runner
	lab    *Lab
	cancel context.CancelFunc

	ev  *Evidence
	err error
}

// set builds the stage without playing.
func (sc scene) set(t *testing.T) *stage {
	t.Helper()
	st := &stage{world: t.TempDir()}
	st.broker = newFakeBroker(st.world)
	if sc.hook != nil {
		st.broker.hook = func(n int, s *brokers.State) error { return sc.hook(st, n, s) }
	}
	st.lab = labOf(t, head+sc.steps)
	if err := st.lab.Check(st.broker); err != nil {
		t.Fatalf("the scene's scenario: %v", err)
	}
	(&actor{world: st.world}).tell("left", sc.left)
	b, err := json.Marshal(script{World: st.world, Acts: sc.acts})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(st.world, "script.json")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	st.runner = &Runner{Driver: st.broker, Control: st.broker, Program: []string{os.Args[0]}, Args: []string{"--script", path},
		Env: append(os.Environ(), envPart+"="+partRole, "GORACE=atexit_sleep_ms=0"), Root: t.TempDir(), State: t.TempDir(), Timeout: sc.timeout,
		Version: "test", Client: "none"}
	if sc.program != "" {
		st.runner.Program = []string{sc.program}
	}
	if st.runner.Timeout == 0 {
		st.runner.Timeout = patience
	}
	return st
}

// play runs the scene to its end.
func (sc scene) play(t *testing.T) *stage {
	t.Helper()
	st := sc.set(t)
	st.play(t)
	return st
}

func (st *stage) play(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	st.cancel = cancel
	defer cancel()
	st.ev, st.err = st.runner.Run(ctx, st.lab)
	if st.ev == nil {
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			st.dump(t)
		}
	})
}

// dump shows what happened, for a scene that went wrong.
func (st *stage) dump(t *testing.T) {
	for _, m := range st.ev.replay.Moments {
		if m.Kind != "state" {
			t.Logf("%3d %-8s %-14s %s%s %s %s", m.Seq, m.Kind, m.Step, m.Content, m.Checkpoint, m.Do, m.Err)
		}
	}
	for _, f := range glob(st.ev.dir, "*"+errSuffix) {
		if b, _ := os.ReadFile(f); len(b) > 0 {
			t.Logf("%s:\n%s", filepath.Base(f), b[:min(len(b), 300)])
		}
	}
}

func glob(dir, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		panic(err) // a constant
	}
	return files
}

// labOf is a lab with the scenario's text, read as a user's own.
func labOf(t *testing.T, text string) *Lab {
	t.Helper()
	l, err := loadText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func loadText(t *testing.T, text string) (*Lab, error) {
	t.Helper()
	c := catalogueOf(t, map[string]string{"labs/rabbitmq/decoy.yaml": text, "expected/rabbitmq/decoy.yaml": "x: {exit: consumer, want: 0}\n"})
	return c.Load("rabbitmq/decoy")
}

// catalogueOf is a user's own folder with these files.
func catalogueOf(t *testing.T, files map[string]string) *Catalogue {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewCatalogue(os.DirFS("../expected")).In(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// order lists the moments that match, as "kind step what".
func (st *stage) order(kinds ...string) []string {
	var out []string
	for _, m := range st.ev.replay.Moments {
		for _, k := range kinds {
			what := ""
			switch m.Kind {
			case "line":
				l, _, _ := ParseLine(m.Content)
				what = l.Get("status")
			case "exit":
				what = fmt.Sprint(*m.Exit)
			default:
				what = strings.TrimSpace(m.Checkpoint + " " + m.Do)
			}
			if m.Kind == k {
				out = append(out, strings.TrimSpace(m.Kind+" "+m.Step+" "+what))
			}
		}
	}
	return out
}

// at is the number of the first moment with that description, 0 when there is none.
func (st *stage) at(what string) int {
	kind, _, _ := strings.Cut(what, " ")
	for _, m := range st.ev.replay.Moments {
		one := &stage{ev: &Evidence{replay: Replay{Moments: []Moment{m}}}}
		if got := one.order(kind); len(got) > 0 && got[0] == what {
			return m.Seq
		}
	}
	return 0
}

// before demands that the moments stand in this order.
func (st *stage) before(t *testing.T, whats ...string) {
	t.Helper()
	last := 0
	for _, w := range whats {
		n := st.at(w)
		if n == 0 {
			t.Fatalf("no moment %q in %q", w, st.order("start", "arrival", "decision", "signal", "finish", "exit"))
		}
		if n <= last {
			t.Errorf("%q is moment %d, it must come after %d: order wanted %q", w, n, last, whats)
		}
		last = n
	}
}

func (st *stage) exit(t *testing.T, step string, want int) {
	t.Helper()
	for _, s := range st.ev.Record.Steps {
		if s.Name == step {
			switch {
			case s.Exit == nil:
				t.Errorf("%s has no exit, want %d", step, want)
			case *s.Exit != want:
				t.Errorf("%s ended with %d (%s), want %d", step, *s.Exit, s.Signal, want)
			}
			return
		}
	}
	t.Errorf("no step %s in the record", step)
}

// clean demands a run that nothing spoiled.
func (st *stage) clean(t *testing.T) {
	t.Helper()
	if st.err != nil {
		t.Fatalf("Run: %v", st.err)
	}
	if len(st.ev.Record.Spoiled) > 0 || !st.ev.Record.Complete {
		t.Errorf("spoiled %q, complete %v; want neither", st.ev.Record.Spoiled, st.ev.Record.Complete)
	}
}

// spoiled demands a run without a verdict, for that reason.
func (st *stage) spoiled(t *testing.T, parts ...string) {
	t.Helper()
	if st.err != nil {
		t.Fatalf("Run: %v", st.err)
	}
	all := strings.Join(st.ev.Record.Spoiled, "\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("spoiled %q, want %q in it", st.ev.Record.Spoiled, p)
		}
	}
}

// fault is the n-th declared fault.
func (st *stage) fault(t *testing.T, n, struck, seen int) {
	t.Helper()
	if len(st.ev.Record.Faults) <= n {
		t.Fatalf("%d faults in the record, want one more than %d", len(st.ev.Record.Faults), n)
	}
	if f := st.ev.Record.Faults[n]; f.Struck != struck || f.Seen != seen {
		t.Errorf("%s of %s at %s: struck %d, seen %d; want %d, %d", f.Kind, f.Step, f.At, f.Struck, f.Seen, struck, seen)
	}
}

// gone demands that a process that a role named is no more.
func (st *stage) gone(t *testing.T, name string) {
	t.Helper()
	pid := told(st.world, "pid-"+name)
	if pid == 0 {
		t.Fatalf("%s never said its pid", name)
	}
	for end := time.Now().Add(patience); brokers.ProcessStart(pid) != ""; {
		if time.Now().After(end) {
			t.Fatalf("%s (pid %d) outlives the run: %v", name, pid, errors.Join(syscall.Kill(pid, syscall.SIGKILL)))
		}
		time.Sleep(time.Millisecond)
	}
}
