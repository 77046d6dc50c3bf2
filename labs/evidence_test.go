package labs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorded is a whole run with a crash in it.
func recorded(t *testing.T) *stage {
	st := scene{steps: twoRuns("halt: {at: before-ack, message: order-1001}") + "  - {name: inspect-broker, inspect: broker}\n", left: 3,
		acts: map[string][]string{
			"producer":      {"log confirmed order-1001", "log done"},
			"consumer-run1": append([]string{"write a foreign line"}, handles("order-1001")...),
			"consumer-run2": append(handles("order-1001"), "left 0", "finish")}}.play(t)
	st.clean(t)
	return st
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	st := recorded(t)
	if !strings.HasSuffix(st.ev.Dir(), partial) {
		t.Errorf("before Seal the folder is %s, want it partial", st.ev.Dir())
	}
	run := st.load(t)
	name := filepath.Base(run.Dir)
	if !regexp.MustCompile(`^\d{8}T\d{6}Z-[a-z0-9]{10}$`).MatchString(name) {
		t.Errorf("the folder is called %s", name)
	}
	if to, err := os.Readlink(filepath.Join(filepath.Dir(run.Dir), "latest")); err != nil || to != name {
		t.Errorf("latest points to %q (%v), want %s", to, err, name)
	}
	var files []string
	for _, f := range glob(run.Dir, "*") {
		files = append(files, filepath.Base(f))
	}
	want := []string{"consumer-run1.err.txt", "consumer-run1.out.txt", "consumer-run2.err.txt", "consumer-run2.out.txt",
		"producer.err.txt", "producer.out.txt", "replay.json", "run.json"}
	if !equal(files, want) {
		t.Errorf("the folder holds %q, want %q", files, want)
	}
	if hidden := glob(run.Dir, ".*"); len(hidden) != 0 {
		t.Errorf("left behind: %q", hidden)
	}
	var steps []string
	for _, s := range run.Steps {
		steps = append(steps, s.Name)
	}
	if !equal(steps, []string{"producer", "consumer-run1", "consumer-run2"}) {
		t.Errorf("the logs are in the order %q", steps)
	}
	r := run.Record
	if !r.Complete || r.Product != "rabbitmq" || r.Lab != "decoy" || r.Scenario.Text != st.lab.File.Text || r.Expected.Text != st.lab.Expected.Text {
		t.Errorf("the record is %+v", r)
	}
	for _, s := range r.Steps {
		if s.Exit == nil || s.Started.IsZero() || s.Ended.Before(s.Started) || s.PID == 0 && s.Role != "" {
			t.Errorf("step %+v", s)
		}
	}
	if !slices.ContainsFunc(r.States, func(s StateRecord) bool { return s.At == AtEnd && s.State != nil && s.State.Left == 0 }) {
		t.Errorf("no state at the end: %+v", r.States)
	}
}

// Every line of the logs stands in replay.json, in each step's own order, with
// the sum of its text.
func TestReplayHoldsEveryLine(t *testing.T) {
	t.Parallel()
	run := recorded(t).load(t)
	b, err := os.ReadFile(filepath.Join(run.Dir, ReplayFile))
	if err != nil {
		t.Fatal(err)
	}
	var replay Replay
	if err := json.Unmarshal(b, &replay); err != nil {
		t.Fatal(err)
	}
	lines := map[string][]Moment{}
	for i, m := range replay.Moments {
		if m.Seq != i+1 {
			t.Fatalf("moment %d has the number %d", i+1, m.Seq)
		}
		if m.Kind == "line" {
			lines[m.File] = append(lines[m.File], m)
		}
	}
	for _, s := range run.Steps {
		if len(lines[s.File]) != len(s.Lines) {
			t.Errorf("%s has %d lines, replay.json %d", s.File, len(s.Lines), len(lines[s.File]))
			continue
		}
		for i, l := range s.Lines {
			sum := sha256.Sum256([]byte(l.Text))
			if m := lines[s.File][i]; m.Line != i+1 || m.SHA256 != hex.EncodeToString(sum[:]) || m.Content != l.Text {
				t.Errorf("%s:%d is %q, in replay.json %+v", s.File, i+1, l.Text, m)
			}
		}
	}
}

func TestPartialRunIsRefused(t *testing.T) {
	t.Parallel()
	st := recorded(t)
	if _, err := LoadRun(st.ev.Dir(), false); !errors.Is(err, ErrPartial) {
		t.Errorf("LoadRun: %v, want ErrPartial", err)
	}
	if r, err := LoadRun(st.ev.Dir(), true); err != nil || len(r.Steps) != 3 {
		t.Errorf("LoadRun of a partial folder, asked for: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "renamed")
	if err := os.CopyFS(copied, os.DirFS(st.ev.Dir())); err != nil {
		t.Fatal(err)
	}
	r := st.ev.Record
	r.Complete = false
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, RecordFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadRun(copied, false); !errors.Is(err, ErrPartial) {
		t.Errorf("LoadRun of a renamed partial folder: %v, want ErrPartial", err)
	}
}

// Runs of one lab at the same time have a folder each, and latest is never
// missing.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	first := recorded(t)
	first.load(t)
	latest := filepath.Join(filepath.Dir(first.ev.Dir()), "latest")
	stop, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				watched <- nil
				return
			default:
			}
			if _, err := os.Stat(latest); err != nil {
				watched <- err
				return
			}
		}
	}()
	var wg sync.WaitGroup
	dirs, errs := make([]string, 4), make([]error, 4)
	for i := range dirs {
		wg.Go(func() {
			e, err := newEvidence(first.runner.Root, first.lab, "abcdefghi"+string(rune('a'+i)), first.ev.Record.Started)
			if err != nil {
				errs[i] = err
				return
			}
			e.Record.Complete = true
			errs[i] = errors.Join(e.write(), e.Seal())
			dirs[i] = e.Dir()
		})
	}
	wg.Wait()
	close(stop)
	if err := errors.Join(append(errs, <-watched)...); err != nil {
		t.Error(err)
	}
	slices.Sort(dirs)
	if len(slices.Compact(dirs)) != 4 {
		t.Errorf("four runs share the folders %q", dirs)
	}
	if left := glob(filepath.Dir(latest), "latest-*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestLoadRunErrors(t *testing.T) {
	t.Parallel()
	const good = "[consumer] product=rabbitmq lab=basic status=done\n"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"an empty folder":       {map[string]string{}, "neither run.json nor a *.out.txt"},
		"no lab in the lines":   {map[string]string{"a.out.txt": "hello\n"}, "nobody knows which lab"},
		"two labs":              {map[string]string{"a.out.txt": good + "[consumer] product=kafka lab=basic status=done\n"}, "a.out.txt:2 speaks of kafka/basic"},
		"a record that is torn": {map[string]string{"run.json": `{"schema":`}, "run.json: unexpected end"},
		"another schema":        {map[string]string{"run.json": `{"schema":99,"complete":true}`}, "schema 99, this mqlab reads 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for f, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := LoadRun(dir, false); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("LoadRun: %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := LoadRun(filepath.Join(t.TempDir(), "missing"), false); err == nil {
		t.Error("a folder that is not there was read")
	}
}
