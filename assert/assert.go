// Package assert reads expected files and judges runs against them.
//
// A judgement has three outcomes. A value that is not the wanted one violates
// its assertion; a value that nobody can vouch for (the fault never struck, the
// step never wrote, the broker did not answer) is inconclusive, whatever it is.
// Nothing here touches a broker: a run folder can be judged again at any time,
// also one that another program wrote.
package assert

import (
	"fmt"

	"mqlab/labs"
)

// Expected is an expected file: what a lab must show, in the file's order.
type Expected struct {
	File       labs.File
	Assertions []Assertion

	scenario *labs.Scenario
	keys     map[string]string // fixture name to business key
}

// Assertion is one named claim. Exactly one of the measures from Exit to
// Account is set; which of the other keys a measure takes is said by its row in
// the table of measures.
type Assertion struct {
	Name    string `json:"-"`
	Measure string `json:"-"` // the key of the measure: exit, count, ...

	Exit     string `json:"exit,omitempty" jsonschema:"the exit code of this step"`
	Count    Pairs  `json:"count,omitempty" jsonschema:"how many lines have all these pairs"`
	Distinct string `json:"distinct,omitempty" jsonschema:"how many different values this key has"`
	Repeats  string `json:"repeats,omitempty" jsonschema:"how many received lines have a messageId that an earlier received line had"`
	Last     string `json:"last,omitempty" jsonschema:"the key's value in the last line that has it"`
	First    string `json:"first,omitempty" jsonschema:"the key's value in the first line that has it"`
	Sequence string `json:"sequence,omitempty" jsonschema:"the key's values in the order of the lines"`
	State    string `json:"state,omitempty" jsonschema:"one of the broker's own numbers"`
	Rows     Pairs  `json:"rows,omitempty" jsonschema:"how many rows that inspect-db read have all these columns"`
	Duration *Span  `json:"duration,omitempty" jsonschema:"milliseconds between two lines"`
	Account  string `json:"account,omitempty" jsonschema:"keys: what became of every business key that was produced"`

	In    []string `json:"in,omitempty" jsonschema:"the steps whose lines are looked at, in this order"`
	Where Pairs    `json:"where,omitempty" jsonschema:"only lines that have all these pairs"`
	Per   string   `json:"per,omitempty" jsonschema:"count the different values for each value of this key, and take the largest count"`
	From  string   `json:"from,omitempty" jsonschema:"only lines about messages that this step got confirmed"`
	At    *At      `json:"at,omitempty" jsonschema:"when the broker was asked: end, or a step's checkpoint, or a step with inspect: broker"`
	Of    string   `json:"of,omitempty" jsonschema:"the destination's plain name"`
	Want  Want     `json:"want" jsonschema:"a value, a list, {min, max} or {not: value}"`
	Why   string   `json:"why,omitempty" jsonschema:"the promise behind the claim, shown when it is broken"`
}

// Pairs are keys of log lines with the text of their values.
type Pairs map[string]string

// At says when the broker was asked for its state. An empty Step is the end.
type At struct {
	Step       string `json:"step" jsonschema:"the step"`
	Checkpoint string `json:"checkpoint,omitempty" jsonschema:"where the step stood; the first time, if it stood there several times"`
	Message    string `json:"message,omitempty" jsonschema:"a fixture's name"`
}

// Span is the time between two lines: the first line that is From, and the
// first line that is To, after it when both are of one step.
type Span struct {
	From Moment `json:"from" jsonschema:"the line at which the time begins"`
	To   Moment `json:"to" jsonschema:"the line at which it ends"`
}

// Moment names a line.
type Moment struct {
	Step    string `json:"step" jsonschema:"the step that wrote it"`
	Status  string `json:"status" jsonschema:"its status word"`
	Message string `json:"message,omitempty" jsonschema:"a fixture's name"`
}

// Read decodes an expected file strictly. sc is the scenario of the same lab;
// figures are the numbers that its broker's state can hold. The error joins
// every mistake as a *labs.FileError.
//
// A fixture's business key is known for mqlab's own fixtures; for any other one
// it is taken to be the fixture's name. ReadLab knows better.
func Read(f labs.File, sc *labs.Scenario, figures []string) (*Expected, error) {
	return read(f, sc, figures, builtinKeys(sc))
}

// ReadLab decodes a lab's expected file, as Read does, and takes the business
// keys from the fixtures that the lab was loaded with.
func ReadLab(l *labs.Lab, figures []string) (*Expected, error) {
	keys := map[string]string{}
	for name, f := range l.Fixtures {
		keys[name] = f.Envelope.AggregateID
	}
	return read(l.Expected, &l.Scenario, figures, keys)
}

func read(f labs.File, sc *labs.Scenario, figures []string, keys map[string]string) (*Expected, error) {
	root, err := parse(f)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: f, lines: splitLines(f), sc: sc, figures: figures, keys: keys}
	list := d.assertions(root)
	if len(d.errs) > 0 {
		return nil, d.mistakes()
	}
	return &Expected{File: f, Assertions: list, scenario: sc, keys: keys}, nil
}

// builtinKeys reads the business keys of mqlab's own fixtures that the scenario
// names.
func builtinKeys(sc *labs.Scenario) map[string]string {
	keys := map[string]string{}
	for _, name := range messages(sc) {
		keys[name] = name
		if body, err := readBuiltin(name); err == nil {
			if e, err := labs.ReadEnvelope(body); err == nil {
				keys[name] = e.AggregateID
			}
		}
	}
	return keys
}

// key is the business key of a fixture.
func (e *Expected) key(fixture string) string {
	if k, ok := e.keys[fixture]; ok {
		return k
	}
	return fixture
}

// describe says what an assertion measures, for a reader of a failure.
func (a Assertion) describe() string {
	switch a.Measure {
	case "exit":
		return "exit code of " + a.Exit
	case "state":
		return fmt.Sprintf("%s %s", a.State, a.At)
	case "duration":
		return fmt.Sprintf("milliseconds from %s to %s", a.Duration.From, a.Duration.To)
	case "account":
		return "account of the produced keys"
	}
	return a.describeLines()
}
