package assert

import (
	"errors"

	"mqlab/labs"
)

// Outcome is what became of an assertion, or of a run.
type Outcome string

// The outcomes. Only Held says that a claim is true.
const (
	Held         Outcome = "held"
	Violated     Outcome = "violated"
	Inconclusive Outcome = "inconclusive"
	Skipped      Outcome = "skipped"
)

// Result is one assertion as it was judged.
type Result struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Value is an integer, a text, a list of texts or a Balance; nil when
	// nothing can be said.
	Value    any    `json:"value"`
	Want     string `json:"want,omitempty"`
	Measured string `json:"measured,omitempty"` // what the value is
	Reason   string `json:"reason,omitempty"`   // why it is inconclusive or skipped
	Why      string `json:"why,omitempty"`      // the promise behind a violated claim
	// Message is the business key that made the value wrong, where one can be
	// told, and Timeline all that happened to it.
	Message  string     `json:"message,omitempty"`
	Timeline []Evidence `json:"timeline,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"` // the lines counted, or a step's last words
}

// Report is a judged run.
type Report struct {
	Product string   `json:"product"`
	Lab     string   `json:"lab"`
	Run     string   `json:"run,omitempty"`
	Dir     string   `json:"dir"`
	Broker  string   `json:"broker,omitempty"` // empty for a folder without a record
	Results []Result `json:"results"`
	// Spoiled says why the run as a whole proves nothing.
	Spoiled []string `json:"spoiled,omitempty"`
	Account []Entry  `json:"account,omitempty"`
}

// Judge decides every assertion over a run, and whether the account is even
// when no assertion says what it should be.
func Judge(run *labs.Run, e *Expected) *Report {
	j := newJudge(run, e)
	j.account()
	r := &Report{Product: run.Product, Lab: run.Lab, Dir: run.Dir, Account: j.book}
	if run.Record != nil {
		r.Run, r.Broker = run.Record.Run, run.Record.Broker.String()
	}
	spoiled, shown := j.spoiled()
	r.Spoiled = spoiled
	balanced := false
	for _, a := range e.Assertions {
		balanced = balanced || a.Measure == "account"
		r.Results = append(r.Results, j.result(a, spoiled))
	}
	if res, tell := j.even(spoiled); tell && !balanced {
		r.Results = append(r.Results, res)
	}
	if len(spoiled) > 0 && len(r.Results) > 0 {
		r.Results[0].Evidence = shown
	}
	return r
}

// result decides one assertion. In a spoiled run the value is told and nothing
// is concluded from it.
func (j *judge) result(a Assertion, spoiled []string) Result {
	res := Result{Name: a.Name, Want: a.Want.String(), Measured: a.describe()}
	f, err := j.measure(a)
	if err == nil {
		res.Value = f.value
	}
	switch {
	case len(spoiled) > 0:
		res.Outcome, res.Reason = Inconclusive, spoiled[0]
	case err != nil:
		res.Outcome, res.Reason = Inconclusive, err.Error()
	case a.Want.Holds(f.value):
		res.Outcome = Held
	default:
		res.Outcome, res.Why = Violated, a.Why
		res.Evidence = evidenceOf(f.lines)
		if a.Measure == "exit" {
			res.Evidence = j.lastWords(a.Exit)
		}
		if res.Message = j.guilty(a, f); res.Message != "" {
			res.Timeline = j.timeline(res.Message)
		}
	}
	return res
}

func (j *judge) measure(a Assertion) (found, error) {
	for _, m := range measures() {
		if m.name == a.Measure {
			return m.find(j, a)
		}
	}
	return found{}, unknownf("nothing is measured")
}

// even judges the account that nobody asked for. It is silent when it holds,
// and when there is nothing to judge it by.
func (j *judge) even(spoiled []string) (res Result, tell bool) {
	var left unasked
	if len(spoiled) > 0 || errors.As(j.closed, &left) {
		return res, false
	}
	res = j.result(Assertion{Name: "account", Measure: "account", Want: Want{Value: Balance{}},
		Why: "every message that the broker confirmed is handled once"}, nil)
	return res, res.Outcome != Held
}

// Outcome is that of the whole run: violated if any assertion is, else
// inconclusive if any is.
func (r *Report) Outcome() Outcome {
	seen := map[Outcome]bool{}
	for _, res := range r.Results {
		seen[res.Outcome] = true
	}
	for _, o := range []Outcome{Violated, Inconclusive, Held, Skipped} {
		if seen[o] {
			return o
		}
	}
	return Inconclusive // nothing was judged
}
