package assert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mqlab/labs"
)

// measure is one way to compute a value from a run.
type measure struct {
	name  string
	want  shape    // what it finds
	takes []string // the keys it takes beside want and why
	needs []string // those of them that must be there
	find  func(*judge, Assertion) (found, error)
}

// found is a value with the lines that it comes from.
type found struct {
	value any
	lines []labs.LogLine
}

// measures is the table of all measures: one row each.
func measures() []measure {
	in := []string{"in"}
	return []measure{
		{"exit", anExit, nil, nil, exitCode},
		{"count", aCount, []string{"in", "from"}, in, count},
		{"distinct", aCount, []string{"in", "where", "per", "from"}, in, distinct},
		{"repeats", aCount, []string{"in", "from"}, in, repeats},
		{"last", aWord, []string{"in", "where", "from"}, in, last},
		{"first", aWord, []string{"in", "where", "from"}, in, first},
		{"sequence", aList, []string{"in", "where", "from"}, in, sequence},
		{"state", aFigure, []string{"at", "of"}, []string{"at"}, state},
		{"rows", aCount, in, in, rows},
		{"duration", aNumber, nil, nil, duration},
		{"account", aBalance, nil, nil, accounted},
	}
}

func measureNames() []string {
	var names []string
	for _, m := range measures() {
		names = append(names, m.name)
	}
	return names
}

// unknown is why a value cannot be told: the assertion is inconclusive.
type unknown string

func (u unknown) Error() string { return string(u) }

func unknownf(format string, a ...any) error { return unknown(fmt.Sprintf(format, a...)) }

func exitCode(j *judge, a Assertion) (found, error) {
	if j.run.Record == nil {
		return found{}, unknownf("exit codes are not recorded: there is no %s", labs.RecordFile)
	}
	s, ok := j.record(a.Exit)
	if !ok || s.Exit == nil {
		return found{}, unknownf("%s has no exit code: it never started or is still running", a.Exit)
	}
	return found{value: int64(*s.Exit)}, nil
}

func count(j *judge, a Assertion) (found, error) {
	lines, err := j.lines(a.In, a.Count, a.From)
	return found{int64(len(lines)), lines}, err
}

func rows(j *judge, a Assertion) (found, error) {
	where := Pairs{"status": "row"}
	maps.Copy(where, a.Rows)
	lines, err := j.lines(a.In, where, "")
	return found{int64(len(lines)), lines}, err
}

// distinct counts the values of a key; with `per` it counts them for each value
// of that key and takes the largest count, so that 1 means "always the same".
func distinct(j *judge, a Assertion) (found, error) {
	lines, err := j.keyed(a.In, a.Where, a.From, a.Distinct)
	if err != nil {
		return found{}, err
	}
	groups := map[string]map[string]bool{"": {}}
	for _, l := range lines {
		group := ""
		if a.Per != "" {
			if group = l.Get(a.Per); group == "" {
				continue
			}
		}
		if groups[group] == nil {
			groups[group] = map[string]bool{}
		}
		groups[group][l.Get(a.Distinct)] = true
	}
	most := 0
	for _, values := range groups {
		most = max(most, len(values))
	}
	if a.Per != "" && most == 0 {
		return found{}, unknownf("no line has both %s and %s", a.Distinct, a.Per)
	}
	return found{int64(most), lines}, nil
}

// repeats counts the received lines beyond the first of each message. Where
// nothing was received nothing can repeat, so that proves nothing.
func repeats(j *judge, a Assertion) (found, error) {
	lines, err := j.keyed(a.In, Pairs{"status": "received"}, a.From, a.Repeats)
	if err != nil {
		return found{}, err
	}
	if len(lines) == 0 {
		return found{}, unknownf("nothing was received in %s", strings.Join(a.In, ", "))
	}
	seen := map[string]bool{}
	var again []labs.LogLine
	for _, l := range inTime(lines) {
		if seen[l.Get(a.Repeats)] {
			again = append(again, l.LogLine)
		}
		seen[l.Get(a.Repeats)] = true
	}
	return found{int64(len(again)), again}, nil
}

func last(j *judge, a Assertion) (found, error) { return end(j, a, a.Last, true) }

func first(j *judge, a Assertion) (found, error) { return end(j, a, a.First, false) }

func end(j *judge, a Assertion, key string, atEnd bool) (found, error) {
	lines, err := j.keyed(a.In, a.Where, a.From, key)
	if err != nil {
		return found{}, err
	}
	if len(lines) == 0 {
		return found{}, unknownf("no line of %s has %s", strings.Join(a.In, ", "), describePairs(a.Where, key))
	}
	l := lines[0]
	if atEnd {
		l = lines[len(lines)-1]
	}
	return found{l.Get(key), []labs.LogLine{l}}, nil
}

func sequence(j *judge, a Assertion) (found, error) {
	lines, err := j.keyed(a.In, a.Where, a.From, a.Sequence)
	values := []string{}
	for _, l := range lines {
		values = append(values, l.Get(a.Sequence))
	}
	return found{values, lines}, err
}

func state(j *judge, a Assertion) (found, error) {
	if j.run.Record == nil {
		return found{}, unknownf("the broker's state is not recorded: there is no %s", labs.RecordFile)
	}
	of := a.Of
	if of == "" {
		of = j.scenario.Destination.Name()
	}
	s, ok := j.state(*a.At, of)
	switch {
	case !ok:
		return found{}, unknownf("the broker's state was never recorded %s", a.At)
	case s.Err != "" || s.State == nil:
		return found{}, unknownf("the broker did not tell its state %s: %s", a.At, s.Err)
	}
	figure, ok := s.State.Figures[a.State]
	switch {
	case !ok:
		return found{}, unknownf("the broker's state %s has no %s", a.At, a.State)
	case figure == nil:
		return found{value: "none"}, nil
	}
	return found{value: *figure}, nil
}

// state finds what was recorded: the last answer at the end, the first one
// anywhere else.
func (j *judge) state(at At, of string) (labs.StateRecord, bool) {
	var hit labs.StateRecord
	ok := false
	for _, s := range j.run.Record.States {
		if at.Step == "" && s.At == labs.AtEnd && (of == "" || s.Of == "" || s.Of == of) {
			hit, ok = s, true
		}
		if at.Step != "" && !ok && at.matches(s, j.e) && (of == "" || s.Of == "" || s.Of == of) {
			hit, ok = s, true
		}
	}
	return hit, ok
}

func (at At) matches(s labs.StateRecord, e *Expected) bool {
	if s.Step != at.Step {
		return false
	}
	if at.Checkpoint == "" {
		return s.At == labs.AtInspect
	}
	return s.At == labs.AtCheckpoint && s.Checkpoint == at.Checkpoint && (at.Message == "" || s.Key == e.key(at.Message))
}

// String is such as `at the end` or `when consumer-run1 stood at before-ack`.
func (at At) String() string {
	switch {
	case at.Step == "":
		return "at the end"
	case at.Checkpoint == "":
		return "at " + at.Step
	case at.Message == "":
		return fmt.Sprintf("when %s stood at %s", at.Step, at.Checkpoint)
	}
	return fmt.Sprintf("when %s stood at %s with %s", at.Step, at.Checkpoint, at.Message)
}

// duration is the whole milliseconds from one line to another.
func duration(j *judge, a Assertion) (found, error) {
	from, err := j.moment(a.Duration.From, nil)
	if err != nil {
		return found{}, err
	}
	to, err := j.moment(a.Duration.To, &from.LogLine)
	if err != nil {
		return found{}, err
	}
	return found{to.time.Sub(from.time).Milliseconds(), []labs.LogLine{from.LogLine, to.LogLine}}, nil
}

// moment finds the first line that m names, behind after when both are of one
// step.
func (j *judge) moment(m Moment, after *labs.LogLine) (timed, error) {
	where := Pairs{"status": m.Status}
	if m.Message != "" {
		where["aggregateId"] = j.e.key(m.Message)
	}
	lines, err := j.lines([]string{m.Step}, where, "")
	if err != nil {
		return timed{}, err
	}
	for _, l := range lines {
		if after != nil && after.Step == l.Step && l.Number <= after.Number {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, l.Get("timestamp"))
		if err != nil {
			return timed{}, unknownf("%s:%d has no timestamp that can be read", l.File, l.Number)
		}
		return timed{l, t}, nil
	}
	return timed{}, unknownf("there is no line %s", m)
}

// String is such as `status=received aggregateId=order-1001 of consumer-run1`.
func (m Moment) String() string {
	s := "status=" + m.Status
	if m.Message != "" {
		s += " about " + m.Message
	}
	return s + " of " + m.Step
}

func (a Assertion) describeLines() string {
	var s string
	switch a.Measure {
	case "count":
		s = "lines with " + describePairs(a.Count, "")
	case "rows":
		s = "rows with " + describePairs(a.Rows, "")
	case "repeats":
		s = "received lines that repeat a " + a.Repeats
	default:
		key := a.Distinct + a.Last + a.First + a.Sequence
		s = fmt.Sprintf("%s of %s", a.Measure, key)
		if a.Per != "" {
			s += " per " + a.Per
		}
		if len(a.Where) > 0 {
			s += " where " + describePairs(a.Where, "")
		}
	}
	s += " in " + strings.Join(a.In, ", ")
	if a.From != "" {
		s += ", sent by " + a.From
	}
	return s
}

func describePairs(p Pairs, key string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, k+"="+show(p[k]))
	}
	if key != "" {
		parts = append(parts, key)
	}
	return strings.Join(parts, " ")
}
