package assert

import (
	"slices"
	"strings"
	"testing"

	"mqlab/labs"
)

// unreceived drops a key's received lines, as if no consumer ever took it.
func unreceived(t testing.TB, dir, key string) {
	t.Helper()
	for _, name := range []string{"consumer-run1.out.txt", "consumer-run2.out.txt"} {
		rewrite(t, dir, name, func(s string) string {
			return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool {
				return strings.Contains(l, "aggregateId="+key+" ") && strings.HasSuffix(l, "status=received")
			}), "\n")
		})
	}
}

// A log that was deleted, emptied or cut never turns a FAIL into a PASS, and
// the run that violates is violated before.
func TestCutLogs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		reason string // empty: nothing is spoiled
	}{
		"setup deleted":      {func(t *testing.T, dir string) { remove(t, dir, "setup.out.txt") }, "setup ran, but its log is missing"},
		"setup silent":       {file("setup.out.txt", func(string) string { return "" }), ""},
		"producer deleted":   {func(t *testing.T, dir string) { remove(t, dir, "producer.out.txt") }, "producer ran, but its log is missing"},
		"producer emptied":   {file("producer.out.txt", func(string) string { return "" }), "producer ended with exit 0, but its log does not end with done: it was cut"},
		"consumer cut":       {file("consumer-run2.out.txt", without("status=done")), "consumer-run2 ended with exit 0, but its log does not end with done: it was cut"},
		"consumer emptied":   {file("consumer-run2.out.txt", func(string) string { return "" }), "consumer-run2 ended with exit 0, but its log does not end with done: it was cut"},
		"crashed cut":        {file("consumer-run1.out.txt", without("crash_injected")), "the halt of consumer-run1 struck, but its log does not end with crash_injected: it was cut"},
		"inspect-db cut":     {file("inspect-db.out.txt", without("snapshot")), "inspect-db ended with exit 0, but its log does not end with snapshot: it was cut"},
		"inspect-db emptied": {file("inspect-db.out.txt", func(string) string { return "" }), "inspect-db ended with exit 0, but its log does not end with snapshot: it was cut"},
		"killed and emptied": {func(t *testing.T, dir string) {
			edit(t, dir, func(r *labs.Record) { r.Faults[0].How = labs.HowKill })
			rewrite(t, dir, "consumer-run1.out.txt", func(string) string { return "" })
		}, "the halt of consumer-run1 struck, but its log has no structured line: it was cut"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyRun(t, "no-dedupe")
			c.change(t, dir)
			run := loadRun(t, dir)
			r := Judge(run, expectedOf(t, run))
			want := Violated
			if c.reason != "" {
				want = Inconclusive
			}
			if r.Outcome() != want || reasons(r) != c.reason {
				t.Errorf("%s", textOf(t, r))
			}
		})
	}
}

// Lines that the runner never saw come first of all reasons.
func TestAltered(t *testing.T) {
	run := loadRun(t, copyRun(t, "consumer-crash"))
	run.Record.Spoiled = []string{"the broker died"}
	run.Altered = []string{"producer.out.txt:2 was changed after the run", "setup.out.txt lacks lines that the runner saw"}
	r := Judge(run, expectedOf(t, run))
	want := append(slices.Clone(run.Altered), "the broker died")
	if !slices.Equal(r.Spoiled, want) || r.Outcome() != Inconclusive {
		t.Errorf("%s", textOf(t, r))
	}
}

// Of a Go dump only its first line is told, after what stood before it.
func TestLastWordsOfDump(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	edit(t, dir, func(r *labs.Record) { *step(r, "producer").Exit = 2 })
	rewrite(t, dir, "producer.err.txt", func(string) string {
		return "dial the broker\nno answer yet\nSIGQUIT: quit\nPC=0x47a3e1 m=0 sigcode=0\n\ngoroutine 1 [select]:\nmain.main()\n\n" +
			strings.Repeat("rax    0xca\n", 9) + "gs     0x0\n"
	})
	run := loadRun(t, dir)
	var got []string
	for _, v := range Judge(run, expectedOf(t, run)).Results[0].Evidence {
		got = append(got, v.String())
	}
	want := []string{"producer.err.txt:1  producer  dial the broker", "producer.err.txt:2  producer  no answer yet", "producer.err.txt:3  producer  SIGQUIT: quit"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
