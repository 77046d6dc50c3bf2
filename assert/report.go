package assert

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// shownLines bounds a timeline and a list of counted lines in the text report;
// the JSON report has all of them.
const shownLines = 12

// Text writes the report, one line for each assertion in the file's order, with
// indented lines below one that failed, and the result as the last line.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	told := map[string]string{}
	for i, res := range r.Results {
		res.text(&b, told)
		if i == 0 {
			r.others(&b)
		}
		list(&b, res.Evidence)
	}
	b.WriteString("RESULT: " + r.sum() + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// others tells the further reasons why the run proves nothing, once.
func (r *Report) others(b *strings.Builder) {
	for i, reason := range r.Spoiled {
		if i == shownLines {
			indent(b, 1, "", fmt.Sprintf("... and %d more", len(r.Spoiled)-i))
			return
		}
		if i > 0 {
			indent(b, 1, "also: ", reason)
		}
	}
}

func (r *Report) sum() string {
	failed, reason := 0, "nothing was judged"
	for _, res := range r.Results {
		if res.Outcome == Violated {
			failed++
		}
	}
	for _, res := range r.Results {
		if res.Outcome == r.Outcome() && res.Reason != "" {
			reason = res.Reason
			break
		}
	}
	switch r.Outcome() {
	case Held:
		return "all assertions passed"
	case Violated:
		return fmt.Sprintf("%d assertion(s) FAILED", failed)
	case Skipped:
		return "skipped: " + printable(reason, ' ')
	}
	return "inconclusive: " + printable(reason, ' ')
}

// text writes one result, without the lines that it rests on. A message's story is told once; told remembers under
// which assertion.
func (res Result) text(b *strings.Builder, told map[string]string) {
	switch res.Outcome {
	case Held:
		fmt.Fprintf(b, "PASS %s: %s\n", res.Name, show(res.Value))
	case Skipped:
		fmt.Fprintf(b, "SKIP %s: %s\n", res.Name, printable(res.Reason, ' '))
	case Violated:
		fmt.Fprintf(b, "FAIL %s: expected=%s actual=%s\n", res.Name, res.Want, show(res.Value))
		indent(b, 1, "why: ", res.Why)
		indent(b, 1, "measured: ", res.Measured)
	default:
		fmt.Fprintf(b, "INCONCLUSIVE %s: %s", res.Name, printable(res.Reason, ' '))
		if v := show(res.Value); v != "" {
			fmt.Fprintf(b, " (%s)", v)
		}
		b.WriteString("\n")
	}
	switch at, before := told[res.Message]; {
	case len(res.Timeline) == 0:
	case before:
		indent(b, 1, "what happened to ", fmt.Sprintf("%s: see %s", res.Message, at))
	default:
		told[res.Message] = res.Name
		indent(b, 1, "what happened to ", res.Message+":")
		list(b, res.Timeline)
	}
	switch {
	case len(res.Evidence) == 0 || res.Outcome != Violated:
	case res.Evidence[0].Brief == "":
		indent(b, 1, "", "last words:")
	default:
		indent(b, 1, "", "lines counted:")
	}
}

// list shows lines; of too many it leaves the gate's out first.
func list(b *strings.Builder, lines []Evidence) {
	shown := withoutGate(lines)
	shown = shown[:min(len(shown), shownLines)]
	for _, v := range shown {
		indent(b, 2, "", v.String())
	}
	if more := len(lines) - len(shown); more > 0 {
		indent(b, 2, "", fmt.Sprintf("... and %d more", more))
	}
}

// withoutGate leaves the gate's lines out of a timeline that is too long: they
// say when the role stood still, not what it did.
func withoutGate(lines []Evidence) []Evidence {
	if len(lines) <= shownLines {
		return lines
	}
	var out []Evidence
	for _, v := range lines {
		if !strings.HasPrefix(v.Text, "[replay-gate]") {
			out = append(out, v)
		}
	}
	return out
}

func indent(b *strings.Builder, depth int, label, text string) {
	if text != "" {
		b.WriteString(strings.Repeat("  ", depth) + label + printable(text, ' ') + "\n")
	}
}

// JSON is the report for programs: the exported fields of Report with the
// overall outcome before them.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(struct {
		Schema  int     `json:"schema"` // of this report
		Outcome Outcome `json:"outcome"`
		Result  string  `json:"result"` // the last line of the text report
		*Report
	}{1, r.Outcome(), r.sum(), r}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	return append(b, '\n'), nil
}
