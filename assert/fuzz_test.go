package assert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqlab/labs"
)

// An expected file never ends the program: it is refused with a place, or it is
// accepted, and then any run can be judged by it.
func FuzzRead(f *testing.F) {
	for _, c := range refusals() {
		f.Add(c.text)
	}
	for _, text := range acceptable(f) {
		f.Add(text)
	}
	sc := crashScenario(f)
	run := loadRun(f, "testdata/consumer-crash")
	foreign := loadRun(f, "testdata/article")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Read(labs.File{Path: "x.yaml", Text: text}, sc, figures())
		if err != nil {
			var at *labs.FileError
			if !errors.As(err, &at) {
				t.Fatalf("%v is no FileError", err)
			}
			return
		}
		if len(e.Assertions) == 0 {
			t.Fatal("a file without an assertion was accepted")
		}
		for _, r := range []*Report{Judge(run, e), Judge(foreign, e)} {
			sound(t, r, len(e.Assertions))
		}
	})
}

// Whatever a consumer's log holds, judging it never ends the program, and the
// report keeps its form.
func FuzzJudge(f *testing.F) {
	for _, name := range []string{"article", "consumer-crash", "no-dedupe", "ack-first"} {
		for _, step := range []string{"consumer-run1", "consumer-run2", "inspect-db"} {
			b, err := os.ReadFile(filepath.Join("testdata", name, step+".out.txt"))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, step)
		}
	}
	f.Add([]byte("[inspect] timestamp=x aggregateId=\"a\\nb\" table=orders state=PAID status=row\n[inspect] business_rows=99999999999999999999 status=snapshot\n"), "inspect-db")
	run := loadRun(f, "testdata/consumer-crash")
	e := expectedOf(f, run)
	all := claims(f, run)
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		spoiled := *run
		spoiled.Steps = nil
		for _, s := range run.Steps {
			if s.Name == name {
				s = logOf(name, string(b))
			}
			spoiled.Steps = append(spoiled.Steps, s)
		}
		sound(t, Judge(&spoiled, e), len(e.Assertions))
		sound(t, Judge(&spoiled, all), len(all.Assertions))
		spoiled.Record = nil
		sound(t, Judge(&spoiled, all), len(all.Assertions))
	})
}

// claims are assertions of every measure over one run.
func claims(t testing.TB, run *labs.Run) *Expected {
	t.Helper()
	return claim(t, run, `
exit: {exit: consumer-run1, want: 137}
count: {count: {status: received}, in: [consumer-run1, consumer-run2], from: producer, want: 4}
distinct: {distinct: consumer, per: aggregateId, in: [consumer-run1, consumer-run2], want: 1}
repeats: {repeats: messageId, in: [consumer-run1, consumer-run2], want: 1}
last: {last: business_rows, in: [inspect-db], want: {min: 3}}
first: {first: aggregateId, in: [consumer-run2], want: order-1001}
sequence: {sequence: attempt, in: [consumer-run2], want: [1, 1, 1]}
state: {state: depth, at: end, want: 0}
rows: {rows: {table: orders}, in: [inspect-db], want: 3}
duration: {duration: {from: {step: consumer-run1, status: received}, to: {step: consumer-run2, status: received}}, want: {max: 1000}}
account: {account: keys, want: even}
`)
}

func logOf(step, text string) labs.StepLog {
	log := labs.StepLog{Name: step, File: step + ".out.txt"}
	for i, l := range strings.Split(text, "\n") {
		log.Lines = append(log.Lines, labs.ReadLine(step, log.File, i+1, l))
	}
	return log
}

// sound checks what holds for every report.
func sound(t *testing.T, r *Report, asked int) {
	t.Helper()
	if len(r.Results) < asked || len(r.Results) > asked+1 {
		t.Fatalf("%d results for %d assertions", len(r.Results), asked)
	}
	text := textOf(t, r)
	if printable(strings.ReplaceAll(text, "\n", ""), '?') != strings.ReplaceAll(text, "\n", "") {
		t.Fatalf("the report has control characters: %q", text)
	}
	heads := 0
	for _, l := range strings.Split(text, "\n") {
		if l != "" && !strings.HasPrefix(l, " ") {
			heads++
		}
	}
	if heads != len(r.Results)+1 {
		t.Fatalf("%d results, %d lines at the margin:\n%s", len(r.Results), heads, text)
	}
	for _, res := range r.Results {
		if len(r.Spoiled) > 0 && res.Outcome != Inconclusive {
			t.Fatalf("%s is %s in a run that proves nothing", res.Name, res.Outcome)
		}
		if res.Outcome == Inconclusive && res.Reason == "" {
			t.Fatalf("%s is inconclusive for no reason", res.Name)
		}
		if res.Outcome == Held && res.Value == nil {
			t.Fatalf("%s holds without a value", res.Name)
		}
	}
	if _, err := r.JSON(); err != nil {
		t.Fatal(err)
	}
}

// The same invariants over the recorded runs, and every measure over each.
func TestSound(t *testing.T) {
	for _, name := range []string{"article", "article-with-record", "consumer-crash", "no-dedupe", "ack-first"} {
		run := loadRun(t, filepath.Join("testdata", name))
		all := claims(t, run)
		sound(t, Judge(run, all), len(all.Assertions))
	}
}

// BenchmarkJudge is `mqlab assert` without the program around it: a saved run
// from disk to text.
func BenchmarkJudge(b *testing.B) {
	e := expectedOf(b, loadRun(b, "testdata/consumer-crash"))
	for b.Loop() {
		textOf(b, Judge(loadRun(b, "testdata/consumer-crash"), e))
	}
}

// BenchmarkRead is one expected file.
func BenchmarkRead(b *testing.B) {
	l := loadLab(b, "rabbitmq/consumer-crash")
	for b.Loop() {
		if _, err := ReadLab(l, figures()); err != nil {
			b.Fatal(err)
		}
	}
}
