package assert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mqlab/labs"
)

// judge is one run seen through one expected file.
type judge struct {
	run      *labs.Run
	e        *Expected
	scenario *labs.Scenario
	keyOf    map[string]string // messageId to business key, from lines that have both

	// The account, or why it cannot be drawn.
	balance Balance
	book    []Entry
	looked  []labs.StepLog // the inspect-db logs that it counts
	closed  error
}

func newJudge(run *labs.Run, e *Expected) *judge {
	j := &judge{run: run, e: e, scenario: e.scenario, keyOf: map[string]string{}}
	for l := range j.all() {
		if id, key := l.Get("messageId"), l.Get("aggregateId"); id != "" && key != "" {
			j.keyOf[id] = key
		}
	}
	return j
}

// all yields every well-formed line of ours, step by step.
func (j *judge) all() func(yield func(labs.LogLine) bool) {
	return func(yield func(labs.LogLine) bool) {
		for _, s := range j.run.Steps {
			for _, l := range s.Lines {
				if l.Own() && !yield(l) {
					return
				}
			}
		}
	}
}

// record is how a step went.
func (j *judge) record(step string) (labs.StepRecord, bool) {
	for _, s := range j.run.Record.Steps {
		if s.Name == step {
			return s, true
		}
	}
	return labs.StepRecord{}, false
}

// lines are those of the steps that have every pair, in the order of in. A step
// that wrote nothing is no proof that it did nothing.
func (j *judge) lines(in []string, where Pairs, from string) ([]labs.LogLine, error) {
	sent, err := j.sent(from)
	if err != nil {
		return nil, err
	}
	var out []labs.LogLine
	for _, name := range in {
		log, ok := j.run.Step(name)
		if !ok || !log.Wrote() {
			return nil, unknownf("%s wrote no structured line", name)
		}
		for _, l := range log.Lines {
			if l.Own() && l.Has(where) && (sent == nil || sent[l.Get("messageId")]) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// keyed are the lines that also have the key.
func (j *judge) keyed(in []string, where Pairs, from, key string) ([]labs.LogLine, error) {
	lines, err := j.lines(in, where, from)
	return slices.DeleteFunc(lines, func(l labs.LogLine) bool { return l.Get(key) == "" }), err
}

// sent are the ids that a step got confirmed; nil when no step is given.
func (j *judge) sent(from string) (map[string]bool, error) {
	if from == "" {
		return nil, nil
	}
	log, _ := j.run.Step(from)
	ids := map[string]bool{}
	for _, l := range log.Lines {
		if id := l.Get("messageId"); id != "" && confirms(l) {
			ids[id] = true
		}
	}
	if len(ids) == 0 {
		return nil, unknownf("%s got no message confirmed", from)
	}
	return ids, nil
}

// confirms reports whether the line says that the broker has a message.
func confirms(l labs.LogLine) bool {
	return l.Own() && (l.Get("status") == "confirmed" || l.Get("status") == "produced")
}

// timed is a line with its time.
type timed struct {
	labs.LogLine
	time time.Time
}

// inTime sorts lines by their timestamps. One without a readable timestamp
// stays behind the line before it.
func inTime(lines []labs.LogLine) []timed {
	var out []timed
	var before time.Time
	for _, l := range lines {
		if t, err := time.Parse(time.RFC3339Nano, l.Get("timestamp")); err == nil {
			before = t
		}
		out = append(out, timed{l, before})
	}
	slices.SortStableFunc(out, func(a, b timed) int { return a.time.Compare(b.time) })
	return out
}

// Evidence is a line that a result rests on.
type Evidence struct {
	File  string `json:"file"` // relative to the run folder
	Line  int    `json:"line"`
	Time  string `json:"time,omitempty"` // UTC, HH:MM:SS.mmm
	Step  string `json:"step"`
	Brief string `json:"brief,omitempty"` // the status and what belongs to it
	Text  string `json:"text"`
}

// String is `file:line  HH:MM:SS.mmm  step  status ...`.
func (v Evidence) String() string {
	parts := []string{fmt.Sprintf("%s:%d", v.File, v.Line), v.Time, v.Step, v.Brief}
	if v.Brief == "" {
		parts[3] = v.Text
	}
	return printable(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "  "), '?')
}

func newEvidence(l timed) Evidence {
	v := Evidence{File: l.File, Line: l.Number, Step: l.Step, Brief: brief(l.Line), Text: l.Text}
	if !l.time.IsZero() {
		v.Time = l.time.UTC().Format("15:04:05.000")
	}
	return v
}

// brief is what a reader of a timeline wants to know of a line.
func brief(l labs.Line) string {
	short := labs.Line{Prefix: "-"}
	for _, key := range []string{"aggregateId", "checkpoint", "attempt", "redelivered", "affected", "table", "state",
		"business_rows", "processed_rows", "errorType", "error"} {
		if v := l.Get(key); v != "" {
			short.Pairs = append(short.Pairs, labs.Pair{Key: key, Value: v})
		}
	}
	return strings.TrimSpace(show(l.Get("status")) + strings.TrimPrefix(short.String(), "[-]"))
}

func evidenceOf(lines []labs.LogLine) []Evidence {
	var out []Evidence
	for _, l := range inTime(lines) {
		out = append(out, newEvidence(l))
	}
	return out
}

// timeline is every line about a business key, over all steps, in time order.
func (j *judge) timeline(key string) []Evidence {
	var lines []labs.LogLine
	for l := range j.all() {
		if j.about(l) == key {
			lines = append(lines, l)
		}
	}
	return evidenceOf(lines)
}

// about is the business key of a line; gate lines have the message's id alone.
func (j *judge) about(l labs.LogLine) string {
	if key := l.Get("aggregateId"); key != "" {
		return key
	}
	id := l.Get("messageId")
	if key, ok := j.keyOf[id]; ok {
		return key
	}
	return id // of a marker whose key is the business key
}

// guilty is the business key that made a number wrong, where one can be told:
// among too many lines the only key, or the only one that stands there twice,
// among too few the only produced key that is missing; else whom the account
// names.
func (j *judge) guilty(a Assertion, f found) string {
	if a.Measure == "exit" || a.Measure == "state" || a.Measure == "duration" {
		return ""
	}
	n, isNumber := number(f.value)
	few := isNumber && a.Want.below(n)
	if a.Measure == "count" || a.Measure == "rows" {
		if key := j.odd(f.lines, few); key != "" {
			return key
		}
	}
	b := j.balance
	order := slices.Concat(b.Doubled, b.Phantom, b.Lost)
	if few || a.Measure == "account" {
		order = slices.Concat(b.Lost, b.Doubled, b.Phantom)
	}
	if len(order) == 0 {
		return ""
	}
	return order[0]
}

// below reports whether a number is too small rather than too large.
func (w Want) below(n int64) bool {
	wanted, ok := number(w.Value)
	return w.Min != nil && n < *w.Min || ok && !w.Not && n < wanted
}

func (j *judge) odd(lines []labs.LogLine, few bool) string {
	times := map[string]int{}
	if few {
		for _, e := range j.book {
			if e.Produced {
				times[e.Key] = 0
			}
		}
	}
	for _, l := range lines {
		if key := j.about(l); key != "" {
			times[key]++
		}
	}
	var odd []string
	for _, key := range slices.Sorted(maps.Keys(times)) {
		if few && times[key] == 0 || !few && times[key] > 1 {
			odd = append(odd, key)
		}
	}
	switch {
	case len(odd) == 1:
		return odd[0]
	case !few && len(times) == 1:
		return slices.Collect(maps.Keys(times))[0]
	}
	return ""
}
