package assert

import (
	"path/filepath"
	"strings"
	"testing"

	"mqlab/labs"
)

// verdicts of one assertion over a recorded run.
type verdict struct {
	run, text string
	want      Outcome
	value     string // as a report shows it; for an inconclusive one a part of the reason
}

func TestMeasures(t *testing.T) {
	const both = "in: [consumer-run1, consumer-run2]"
	all := map[string][]verdict{
		"exit": {
			{"consumer-crash", "{exit: consumer-run1, want: 137}", Held, "137"},
			{"consumer-crash", "{exit: consumer-run1, want: 0}", Violated, "137"},
			{"consumer-crash", "{exit: consumer-run1, want: {not: 0}}", Held, "137"},
			{"article", "{exit: consumer-run1, want: 137}", Inconclusive, "exit codes are not recorded"},
		},
		"count": {
			{"consumer-crash", "{count: {status: received}, " + both + ", want: 4}", Held, "4"},
			{"consumer-crash", "{count: {status: received, redelivered: true}, " + both + ", want: 1}", Held, "1"},
			{"consumer-crash", "{count: {status: received, attempt: 1}, " + both + ", want: {min: 4, max: 4}}", Held, "4"},
			{"consumer-crash", "{count: {status: received}, " + both + ", want: {max: 3}}", Violated, "4"},
			{"consumer-crash", "{count: {status: received}, from: producer, in: [consumer-run2], want: 3}", Held, "3"},
			{"article", "{count: {status: prepared}, in: [setup], want: 0}", Inconclusive, "setup wrote no structured line"},
			{"consumer-crash", "{count: {status: failed}, in: [consumer-run1], want: 0}", Held, "0"},
		},
		"distinct": {
			{"consumer-crash", "{distinct: messageId, where: {status: received}, " + both + ", want: 3}", Held, "3"},
			{"consumer-crash", "{distinct: messageId, where: {status: duplicate_skipped}, " + both + ", want: 0}", Violated, "1"},
			{"consumer-crash", "{distinct: redelivered, per: aggregateId, where: {status: received}, " + both + ", want: 2}", Held, "2"},
			{"consumer-crash", "{distinct: consumer, per: aggregateId, where: {status: received}, " + both + ", want: 1}", Held, "1"},
			{"consumer-crash", "{distinct: consumer, per: table, in: [inspect-db], want: {max: 1}}", Inconclusive, "no line has both consumer and table"},
			{"article", "{distinct: messageId, in: [setup], want: 0}", Inconclusive, "setup wrote no structured line"},
		},
		"repeats": {
			{"consumer-crash", "{repeats: messageId, " + both + ", want: 1}", Held, "1"},
			{"consumer-crash", "{repeats: messageId, in: [consumer-run2], want: 0}", Held, "0"},
			{"consumer-crash", "{repeats: messageId, " + both + ", want: 0}", Violated, "1"},
			{"ack-first", "{repeats: messageId, " + both + ", want: 0}", Held, "0"},
			{"consumer-crash", "{repeats: messageId, in: [producer], want: 0}", Inconclusive, "nothing was received in producer"},
		},
		"last": {
			{"consumer-crash", "{last: business_rows, in: [inspect-db], want: 3}", Held, "3"},
			{"consumer-crash", "{last: aggregateId, where: {status: received}, " + both + ", want: order-1003}", Held, "order-1003"},
			{"consumer-crash", "{last: received, in: [consumer-run2], want: {min: 4}}", Violated, "3"},
			{"consumer-crash", "{last: redelivered, in: [consumer-run2], want: false}", Held, "false"},
			{"consumer-crash", "{last: errorType, in: [consumer-run2], want: {not: X}}", Inconclusive, "no line of consumer-run2 has errorType"},
			{"consumer-crash", "{last: consumer, in: [consumer-run2], want: {min: 1}}", Violated, "consumer-1"},
		},
		"first": {
			{"consumer-crash", "{first: aggregateId, where: {redelivered: true}, in: [consumer-run2], want: order-1001}", Held, "order-1001"},
			{"ack-first", "{first: aggregateId, where: {redelivered: true}, in: [consumer-run2], want: order-1001}", Violated, "order-1002"},
			{"consumer-crash", "{first: aggregateId, where: {redelivered: true}, in: [consumer-run1], want: order-1001}", Inconclusive, "redelivered=true aggregateId"},
		},
		"sequence": {
			{"consumer-crash", "{sequence: aggregateId, where: {status: received}, in: [consumer-run2], want: [order-1001, order-1002, order-1003]}", Held, "order-1001,order-1002,order-1003"},
			{"consumer-crash", "{sequence: attempt, where: {status: received}, in: [consumer-run2], want: [1, 2, 3]}", Violated, "1,1,1"},
			{"consumer-crash", "{sequence: attempt, where: {status: received}, in: [consumer-run2], want: {not: [1, 2, 3]}}", Held, "1,1,1"},
			{"consumer-crash", "{sequence: errorType, in: [consumer-run2], want: []}", Held, "(none)"},
			{"article", "{sequence: attempt, in: [setup], want: []}", Inconclusive, "setup wrote no structured line"},
		},
		"state": {
			{"consumer-crash", "{state: depth, at: end, want: 0}", Held, "0"},
			{"consumer-crash", "{state: depth, of: orders.crash, at: end, want: 1}", Violated, "0"},
			{"consumer-crash", "{state: ready, at: {step: consumer-run1, checkpoint: before-ack, message: order-1001}, want: 2}", Held, "2"},
			{"consumer-crash", "{state: unacknowledged, at: {step: consumer-run1, checkpoint: before-offset-commit}, want: {max: 0}}", Violated, "1"},
			{"consumer-crash", "{state: ready, at: {step: consumer-run1, checkpoint: before-ack, message: order-1002}, want: 2}", Inconclusive, "never recorded when consumer-run1 stood at before-ack with order-1002"},
			{"consumer-crash", "{state: ready, at: {step: consumer-run2, checkpoint: after-delivery}, want: 2}", Inconclusive, "never recorded"},
			{"article", "{state: depth, at: end, want: 0}", Inconclusive, "not recorded: there is no run.json"},
		},
		"rows": {
			{"consumer-crash", "{rows: {table: orders, aggregateId: order-1001}, in: [inspect-db], want: 1}", Held, "1"},
			{"consumer-crash", "{rows: {table: orders, amountCents: 19900, state: PAID}, in: [inspect-db], want: 1}", Held, "1"},
			{"no-dedupe", "{rows: {table: orders, aggregateId: order-1001}, in: [inspect-db], want: 1}", Violated, "2"},
		},
		"duration": {
			{"consumer-crash", "{duration: {from: {step: consumer-run1, status: crash_injected}, to: {step: consumer-run2, status: received, message: order-1001}}, want: {min: 1, max: 1000}}", Held, "3"},
			{"consumer-crash", "{duration: {from: {step: consumer-run2, status: received}, to: {step: consumer-run2, status: received}}, want: 0}", Violated, "18"},
			{"consumer-crash", "{duration: {from: {step: consumer-run1, status: received}, to: {step: consumer-run1, status: received}}, want: 0}", Inconclusive, "there is no line status=received of consumer-run1"},
			{"article", "{duration: {from: {step: setup, status: prepared}, to: {step: consumer-run1, status: received}}, want: 0}", Inconclusive, "setup wrote no structured line"},
		},
		"account": {
			{"consumer-crash", "{account: keys, want: even}", Held, "even"},
			{"no-dedupe", "{account: keys, want: {doubled: [order-1001]}}", Held, "doubled order-1001"},
			{"no-dedupe", "{account: keys, want: even}", Violated, "doubled order-1001"},
			{"ack-first", "{account: keys, want: {lost: [order-1001]}}", Held, "lost order-1001"},
			{"ack-first", "{account: keys, want: {lost: [order-1002]}}", Violated, "lost order-1001"},
			{"consumer-crash", "{account: keys, want: {lost: [order-1001]}}", Violated, "even"},
			{"article-with-record", "{account: keys, want: even}", Inconclusive, "inspect-db listed no rows"},
		},
	}
	for name, cases := range all {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				check(t, loadRun(t, filepath.Join("testdata", c.run)), c)
			}
		})
	}
	for _, name := range measureNames() {
		if len(all[name]) == 0 {
			t.Errorf("no test measures %s", name)
		}
	}
}

// The lines of `from` are those about messages that the broker has.
func TestFrom(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	rewrite(t, dir, "producer.out.txt", without("order-1003"))
	const text = "{count: {status: received}, in: [consumer-run2], from: producer, want: 2}"
	check(t, loadRun(t, dir), verdict{dir, text, Held, "2"})
	rewrite(t, dir, "producer.out.txt", without("status=confirmed"))
	check(t, loadRun(t, dir), verdict{dir, text, Inconclusive, "producer got no message confirmed"})
}

// Of several answers the first at a checkpoint counts and the last at the end,
// each about the destination that was asked for.
func TestSeveralStates(t *testing.T) {
	dir := copyRun(t, "consumer-crash")
	edit(t, dir, func(r *labs.Record) {
		for _, s := range r.States {
			again, other, state := s, s, *s.State
			n := int64(77)
			state.Figures = map[string]*int64{"depth": &n}
			again.State, other.State, other.Of = &state, &state, "orders.other"
			if s.At == labs.AtEnd {
				r.States = append(r.States, other)
			} else {
				r.States = append(r.States, again)
			}
		}
	})
	run := loadRun(t, dir)
	check(t, run, verdict{dir, "{state: depth, at: {step: consumer-run1, checkpoint: before-ack}, want: 3}", Held, "3"})
	check(t, run, verdict{dir, "{state: depth, at: end, want: 0}", Held, "0"})
}

// The account that was asked for takes the place of the one that was not.
func TestAccountAskedFor(t *testing.T) {
	run := loadRun(t, "testdata/no-dedupe")
	got := textOf(t, Judge(run, claim(t, run, "account: {account: keys, want: {doubled: [order-1001]}}")))
	if want := "PASS account: doubled order-1001\nRESULT: all assertions passed\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// check judges one assertion and compares outcome, value and what the text says.
func check(t *testing.T, run *labs.Run, c verdict) {
	t.Helper()
	r := Judge(run, claim(t, run, "it: "+c.text))
	res := r.Results[0]
	if res.Outcome != c.want {
		t.Errorf("%s: %s is %s (%s), want %s", c.run, c.text, res.Outcome, res.Reason, c.want)
		return
	}
	got := show(res.Value)
	if c.want == Inconclusive {
		got = res.Reason
	}
	if c.want == Inconclusive && !strings.Contains(got, c.value) || c.want != Inconclusive && got != c.value {
		t.Errorf("%s: %s gives %q, want %q", c.run, c.text, got, c.value)
	}
	first, _, _ := strings.Cut(textOf(t, r), "\n")
	prefix := map[Outcome]string{Held: "PASS it: " + c.value, Violated: "FAIL it: expected=" + res.Want + " actual=" + c.value, Inconclusive: "INCONCLUSIVE it: "}[c.want]
	if !strings.HasPrefix(first, prefix) {
		t.Errorf("text %q, want %q", first, prefix)
	}
}

// What a report shows of a want.
func TestWantText(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for want, w := range map[string]Want{
		"3":                          {Value: int64(3)},
		"not 0":                      {Value: int64(0), Not: true},
		"1,2,3":                      {Value: []string{"1", "2", "3"}},
		"at least 2":                 {Min: n(2)},
		"at most 2":                  {Max: n(2)},
		"2..5":                       {Min: n(2), Max: n(5)},
		"even":                       {Value: Balance{}},
		"lost a; doubled b,c":        {Value: Balance{Lost: []string{"a"}, Doubled: []string{"b", "c"}}},
		`"a\nb"`:                     {Value: "a\nb"},
		"(none)":                     {Value: []string{}},
		"lost a; phantom order-9999": {Value: Balance{Lost: []string{"a"}, Phantom: []string{"order-9999"}}},
	} {
		if got := w.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A list is compared element by element: 1,2 is not [1, 2] joined.
func TestEqual(t *testing.T) {
	if (Want{Value: []string{"a,b"}}).Holds([]string{"a", "b"}) {
		t.Error("a,b is taken for [a, b]")
	}
	if (Want{Value: "3"}).Holds(int64(3)) {
		t.Error("a text is taken for a number")
	}
}
