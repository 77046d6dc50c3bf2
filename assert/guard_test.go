package assert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqlab/labs"
)

// spoiling is one way in which a run that would pass proves nothing.
type spoiling struct {
	name   string
	change func(t *testing.T, dir string)
	reason string // a part of the first reason
	all    bool   // every assertion is inconclusive, not only some
}

func record(change func(*labs.Record)) func(*testing.T, string) {
	return func(t *testing.T, dir string) { edit(t, dir, change) }
}

func file(name string, change func(string) string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { rewrite(t, dir, name, change) }
}

func spoilings() []spoiling {
	add := func(text string) func(string) string { return func(s string) string { return s + text + "\n" } }
	return []spoiling{
		{"spoiled", record(func(r *labs.Record) { r.Spoiled = []string{"the broker died"} }), "the broker died", true},
		{"interrupted", record(func(r *labs.Record) { r.Interrupted = true }), "the run was interrupted", true},
		{"not complete", record(func(r *labs.Record) { r.Complete = false }), "the run was never completed", true},
		{"fault not struck", record(func(r *labs.Record) { r.Faults[0].Struck, r.Faults[0].Seen = 0, 2 }),
			"the halt of consumer-run1 at before-ack for order-1001 did not strike: 0 of 1, 2 matching arrivals were seen", true},
		{"fault not recorded", record(func(r *labs.Record) { r.Faults = nil }), "the halt of consumer-run1 at before-ack for order-1001 is not in the record", true},
		{"another fault recorded", record(func(r *labs.Record) { r.Faults[0].Message = "order-1002" }),
			"the halt of consumer-run1 at before-ack for order-1001 is not in the record", true},
		{"step still running", record(func(r *labs.Record) { step(r, "consumer-run2").Exit = nil }), "consumer-run2 was still running", true},
		{"step never started", record(func(r *labs.Record) {
			*step(r, "consumer-run2") = labs.StepRecord{Name: "consumer-run2", Role: "consumer"}
		}),
			"consumer-run2 was never started", true},
		{"step not in the record", record(func(r *labs.Record) { r.Steps = r.Steps[:4] }), "inspect-db was never started", true},
		{"unplanned end", record(func(r *labs.Record) { *step(r, "producer").Exit = 76 }), "producer ended with exit 76, planned was 0", true},
		{"broken line", file("consumer-run2.out.txt", add("[consumer] timestamp=2026 status")), "consumer-run2.out.txt:20 cannot be read: column 27", true},
		{"unknown word", file("consumer-run2.out.txt", add("[consumer] status=recieved")), `consumer-run2.out.txt:20 has a status word that nobody knows: "recieved"`, true},
		{"no word", file("consumer-run2.out.txt", add("[consumer] attempt=1")), `has a status word that nobody knows: ""`, true},
		{"unknown key", file("consumer-run2.out.txt", add("[consumer] colour=red status=done")), `has a key that nobody knows: "colour"`, true},
		{"doubled key", file("consumer-run2.out.txt", add("[consumer] attempt=1 attempt=2 status=done")), `has the key "attempt" twice`, true},
		{"state not recorded", record(func(r *labs.Record) { r.States = r.States[:1] }), "the broker's state was never recorded at the end", false},
		{"missing queue", record(func(r *labs.Record) { r.States[1].State, r.States[1].Err = nil, "no such destination: orders.crash" }),
			"the broker did not tell its state at the end: no such destination: orders.crash", false},
		{"figure missing", record(func(r *labs.Record) { delete(r.States[1].State.Figures, "depth") }), "the broker's state at the end has no depth", false},
		{"log missing", func(t *testing.T, dir string) { remove(t, dir, "consumer-run1.out.txt") }, "consumer-run1 ran, but its log is missing", true},
		{"log empty", file("consumer-run1.out.txt", func(string) string { return "" }), "the halt of consumer-run1 struck, but its log does not end with crash_injected: it was cut", true},
		{"log foreign", file("consumer-run1.out.txt", func(string) string { return "hello\n" }), "the halt of consumer-run1 struck, but its log does not end with crash_injected: it was cut", true},
		{"no snapshot", file("inspect-db.out.txt", without("snapshot")), "inspect-db ended with exit 0, but its log does not end with snapshot: it was cut", true},
		{"inspect-db missing", func(t *testing.T, dir string) { remove(t, dir, "inspect-db.out.txt") }, "inspect-db ran, but its log is missing", true},
		{"row line cut", file("inspect-db.out.txt", without("amountCents=8950")), "inspect-db counts 3 rows of finished work and lists 2", false},
	}
}

// Each guard is what stands between a run that proves nothing and a PASS: the
// same run without the spoiling passes.
func TestGuards(t *testing.T) {
	run := loadRun(t, "testdata/consumer-crash")
	if got := Judge(run, expectedOf(t, run)).Outcome(); got != Held {
		t.Fatalf("the run is %s before it is spoiled", got)
	}
	for _, s := range spoilings() {
		t.Run(s.name, func(t *testing.T) {
			dir := copyRun(t, "consumer-crash")
			s.change(t, dir)
			run := loadRun(t, dir)
			r := Judge(run, expectedOf(t, run))
			if r.Outcome() != Inconclusive {
				t.Errorf("the run is %s", r.Outcome())
			}
			text := textOf(t, r)
			if !strings.Contains(text, "RESULT: inconclusive: ") || !strings.Contains(text, s.reason) {
				t.Errorf("want %q in\n%s", s.reason, text)
			}
			for _, res := range r.Results {
				if s.all && res.Outcome != Inconclusive || res.Outcome == Violated {
					t.Errorf("%s is %s", res.Name, res.Outcome)
				}
			}
		})
	}
}

// A wrong value in a run that proves nothing is told, not judged.
func TestViolatedInSpoiledRun(t *testing.T) {
	dir := copyRun(t, "no-dedupe")
	edit(t, dir, func(r *labs.Record) { r.Faults[0].Struck = 0 })
	run := loadRun(t, dir)
	text := textOf(t, Judge(run, expectedOf(t, run)))
	if want := "INCONCLUSIVE business_rows: the halt of consumer-run1 at before-ack for order-1001 did not strike: 0 of 1, 1 matching arrivals were seen (4)\n"; !strings.Contains(text, want) {
		t.Errorf("want %q in\n%s", want, text)
	}
	if strings.Contains(text, "FAIL") || strings.Contains(text, "PASS") {
		t.Errorf("something was concluded:\n%s", text)
	}
}

// An exit that an assertion names is judged by it and spoils nothing else.
func TestExitThatIsAsked(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	edit(t, dir, func(r *labs.Record) { *step(r, "consumer-run2").Exit = 1 })
	rewrite(t, dir, "consumer-run2.err.txt", func(string) string { return "open the store: disk full\n" })
	run := loadRun(t, dir)
	r := Judge(run, expectedOf(t, run))
	want := "FAIL consumer-run2.exitCode: expected=0 actual=1\n  measured: exit code of consumer-run2\n  last words:\n" +
		"    consumer-run2.err.txt:1  consumer-run2  open the store: disk full\nRESULT: 1 assertion(s) FAILED\n"
	if got := textOf(t, r); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s", got)
	}
	if r.Outcome() != Violated || len(r.Spoiled) > 0 || r.Results[8].Outcome != Violated || r.Results[0].Outcome != Held {
		t.Errorf("%s", textOf(t, r))
	}
}

// A step that failed shows its last words.
func TestLastWords(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	edit(t, dir, func(r *labs.Record) {
		*step(r, "producer").Exit = 137
		step(r, "producer").Signal = "killed"
		r.Interrupted = true
	})
	rewrite(t, dir, "producer.err.txt", func(string) string { return strings.Repeat("noise\n", 9) + "\x1b[31mno route\tto broker\n" })
	run := loadRun(t, dir)
	golden(t, "testdata/reports/last-words.txt", textOf(t, Judge(run, expectedOf(t, run))))
}

// An account is not judged, or not to the end, where nobody can vouch for it.
func TestAccountGuards(t *testing.T) {
	lost := "{account: keys, want: {lost: [order-1001]}}"
	for name, c := range map[string]struct {
		run    string
		change func(t *testing.T, dir string)
		text   string
		want   Outcome
		says   string
	}{
		"still queued": {"ack-first", func(t *testing.T, dir string) {
			unreceived(t, dir, "order-1001")
			record(func(r *labs.Record) { r.States[1].State.Left = 1 })(t, dir)
		}, "{account: keys, want: even}", Held, "even"},
		"received, and something left": {"ack-first", record(func(r *labs.Record) { r.States[1].State.Left = 5 }), lost, Inconclusive,
			"order-1001 was received and has no row, and the broker still holds 5 messages: it cannot be told whether it is lost or comes again"},
		"unreceived, nothing left": {"ack-first", func(t *testing.T, dir string) { unreceived(t, dir, "order-1001") }, lost, Held, "lost order-1001"},
		"end unknown":              {"ack-first", record(func(r *labs.Record) { r.States = r.States[:1] }), lost, Inconclusive, "nobody knows whether it is still queued"},
		"no answer": {"ack-first", record(func(r *labs.Record) { r.States[1].State, r.States[1].Err = nil, "timeout" }), lost, Inconclusive,
			"the broker did not tell its state at the end: timeout"},
		"read too early": {"ack-first", record(func(r *labs.Record) {
			step(r, "consumer-run2").Ended = step(r, "inspect-db").Started.Add(time.Millisecond)
		}), lost, Inconclusive, "inspect-db read the store before consumer-run2 had ended"},
		"nothing confirmed": {"ack-first", file("producer.out.txt", without("status=confirmed")), lost, Inconclusive, "no step got a message confirmed"},
		"no snapshot":       {"ack-first", file("inspect-db.out.txt", without("snapshot")), lost, Inconclusive, "inspect-db ended with exit 0, but its log does not end with snapshot: it was cut"},
		"store never read": {"ack-first", record(func(r *labs.Record) {
			r.Scenario.Text = strings.Replace(r.Scenario.Text, "{name: consumer-run2, role: consumer}",
				"{name: consumer-run2, role: consumer, consumer: {store: other}}", 1)
		}), lost, Inconclusive, "no inspect-db step has read the store of consumer-run2"},
		"all lost": {"ack-first", file("inspect-db.out.txt", func(s string) string {
			return strings.ReplaceAll(without("table=")(s), "business_rows=2", "business_rows=0")
		}), "{account: keys, want: {lost: [order-1003, order-1002, order-1001]}}", Held, "lost order-1001,order-1002,order-1003"},
		"not paid": {"consumer-crash", file("inspect-db.out.txt", func(s string) string {
			s = strings.Replace(s, "state=PAID", "state=WAIT_PAY", 1)
			return strings.ReplaceAll(s, "business_rows=3", "business_rows=2")
		}), lost, Held, "lost order-1001"},
		"phantom": {"consumer-crash", file("inspect-db.out.txt", func(s string) string { return strings.Replace(s, "aggregateId=order-1003", "aggregateId=order-77", 1) }),
			"{account: keys, want: {lost: [order-1003], phantom: [order-77]}}", Held, "lost order-1003; phantom order-77"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyRun(t, c.run)
			c.change(t, dir)
			check(t, loadRun(t, dir), verdict{name, c.text, c.want, c.says})
		})
	}
}

// With two keys without a row and one message left, nobody knows which is lost.
func TestAccountUndecided(t *testing.T) {
	dir := copyRun(t, "ack-first")
	rewrite(t, dir, "inspect-db.out.txt", func(s string) string {
		return strings.ReplaceAll(without("order-1002")(s), "business_rows=2", "business_rows=1")
	})
	edit(t, dir, func(r *labs.Record) { r.States[1].State.Left = 1 })
	unreceived(t, dir, "order-1001")
	unreceived(t, dir, "order-1002")
	run := loadRun(t, dir)
	r := Judge(run, claim(t, run, "received: {count: {status: received}, in: [consumer-run2], want: 1}"))
	want := "PASS received: 1\n" +
		"INCONCLUSIVE account: 2 keys have no row and the broker still holds 1 messages: it cannot be told which are lost\n" +
		"RESULT: inconclusive: 2 keys have no row and the broker still holds 1 messages: it cannot be told which are lost\n"
	if got := textOf(t, r); got != want {
		t.Errorf("got\n%s", got)
	}
}

// The account that nobody asked for is silent where it cannot be judged.
func TestAccountUnasked(t *testing.T) {
	dir := copyRun(t, "ack-first")
	edit(t, dir, func(r *labs.Record) { step(r, "inspect-db").Started = step(r, "consumer-run1").Started })
	run := loadRun(t, dir)
	r := Judge(run, claim(t, run, "received: {count: {status: received}, in: [consumer-run1], want: 1}"))
	if got, want := textOf(t, r), "PASS received: 1\nRESULT: all assertions passed\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// A folder of another program: what its lines show is judged, unknown words and
// other people's lines are passed over, broken lines of ours are not.
func TestForeignFolder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   Outcome
		says   string
	}{
		"unknown word": {file("consumer-run2.out.txt", func(s string) string { return s + "[consumer] colour=red status=txn_check\n[sidecar] x\n" }), Held, ""},
		"noise":        {file("consumer-run2.out.txt", func(s string) string { return "\x00\xff\xfe[consumer\x00\n" + s + "\r\n\x1b[2J\n" }), Held, ""},
		"crlf":         {file("consumer-run2.out.txt", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), Held, ""},
		"long line":    {file("consumer-run2.out.txt", func(s string) string { return strings.Repeat("x", 10<<20) + "\n" + s }), Held, ""},
		"long own line": {file("consumer-run2.out.txt", func(s string) string {
			return "[consumer] status=received messageId=" + strings.Repeat("x", 10<<20) + "\n" + s
		}), Inconclusive, "consumer-run2.out.txt:1 is too long to be read: 10485797 bytes"},
		"broken line":   {file("consumer-run2.out.txt", func(s string) string { return s + "[consumer] oops\n" }), Inconclusive, "cannot be read"},
		"no crash line": {file("consumer-run1.out.txt", without("crash_injected")), Inconclusive, "nothing shows that the halt of consumer-run1 at before-ack for order-1001 struck"},
		"crash of another message": {file("consumer-run1.out.txt", func(s string) string {
			i := strings.LastIndex(s, "[consumer]")
			return s[:i] + strings.ReplaceAll(s[i:], "order-1001", "order-1002")
		}), Inconclusive, "nothing shows that the halt"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyRun(t, "article")
			c.change(t, dir)
			run := loadRun(t, dir)
			r := Judge(run, claim(t, run, "receivedTotal: {count: {status: received}, in: [consumer-run1, consumer-run2], want: 4}"))
			if r.Outcome() != c.want || !strings.Contains(reasons(r), c.says) {
				t.Errorf("%s", textOf(t, r))
			}
		})
	}
}

// A folder without a record that lists its rows has an account that nobody
// asked for: a second row is seen, a missing one cannot be told from a queued one.
func TestForeignAccount(t *testing.T) {
	for name, want := range map[string]string{
		"consumer-crash": "RESULT: all assertions passed\n",
		"no-dedupe":      "FAIL account: expected=even actual=doubled order-1001\n",
		"ack-first":      "INCONCLUSIVE account: order-1001 has no row, and nobody knows whether it is still queued: there is no run.json\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyRun(t, name)
			run := loadRun(t, dir)
			e := claim(t, run, "received: {count: {status: received}, in: [consumer-run1], want: 1}")
			remove(t, dir, labs.RecordFile)
			if got := textOf(t, Judge(loadRun(t, dir), e)); !strings.Contains(got, want) {
				t.Errorf("got\n%s", got)
			}
			// A consumer that wrote after the look: the rows say nothing.
			rewrite(t, dir, "consumer-run2.out.txt", func(s string) string { return s + "[consumer] timestamp=2027-01-01T00:00:00Z status=done\n" })
			if got, want := textOf(t, Judge(loadRun(t, dir), e)), "PASS received: 1\nRESULT: all assertions passed\n"; got != want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// Noise that any process may write does not change a verdict of our own runs.
func TestNoise(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	rewrite(t, dir, "consumer-run2.out.txt", func(s string) string { return "\x00\x01 panic: no\n" + s + strings.Repeat("\xff", 1000) })
	rewrite(t, dir, "broker.out.txt", func(string) string { return "[error] <0.1.0> oh\n" })
	run := loadRun(t, dir)
	if r := Judge(run, expectedOf(t, run)); r.Outcome() != Held {
		t.Errorf("%s", textOf(t, r))
	}
}

// A delivery that a consumer still takes after its done line is counted.
func TestLinesAfterDone(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	rewrite(t, dir, "consumer-run2.out.txt", func(s string) string { return s + strings.SplitN(s, "\n", 2)[0] + "\n" })
	run := loadRun(t, dir)
	r := Judge(run, expectedOf(t, run))
	if res := r.Results[2]; res.Outcome != Violated || show(res.Value) != "5" {
		t.Errorf("receivedTotal is %s with %v", res.Outcome, res.Value)
	}
}

// A folder that was never completed is refused, or judged as inconclusive.
func TestPartialFolder(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	partial := dir + ".partial"
	if err := os.Rename(dir, partial); err != nil {
		t.Fatal(err)
	}
	edit(t, partial, func(r *labs.Record) { r.Complete = false })
	if _, err := labs.LoadRun(partial, false); !errors.Is(err, labs.ErrPartial) {
		t.Errorf("got %v", err)
	}
	run := loadRun(t, partial)
	if r := Judge(run, expectedOf(t, run)); r.Outcome() != Inconclusive {
		t.Errorf("the run is %s", r.Outcome())
	}
}

// Only the listed outcomes make a run: nothing judged is not a pass.
func TestOutcome(t *testing.T) {
	for want, list := range map[Outcome][]Outcome{
		Violated:     {Held, Inconclusive, Violated, Skipped},
		Inconclusive: {Held, Inconclusive, Skipped},
		Held:         {Skipped, Held},
		Skipped:      {Skipped},
	} {
		r := &Report{}
		for _, o := range list {
			r.Results = append(r.Results, Result{Name: "x", Outcome: o, Reason: "because"})
		}
		if got := r.Outcome(); got != want {
			t.Errorf("%v is %s", list, got)
		}
	}
	if got := (&Report{}).Outcome(); got != Inconclusive {
		t.Errorf("nothing is %s", got)
	}
	r := &Report{Results: []Result{{Name: "x", Outcome: Skipped, Reason: "the broker lacks quorum"}}}
	if got := textOf(t, r); got != "SKIP x: the broker lacks quorum\nRESULT: skipped: the broker lacks quorum\n" {
		t.Errorf("got %q", got)
	}
}

func TestJSON(t *testing.T) {
	run := loadRun(t, "testdata/no-dedupe")
	b, err := Judge(run, expectedOf(t, run)).JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "reports", "no-dedupe.json"), string(b))
}
