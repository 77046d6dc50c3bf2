package assert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mqlab/labs"
)

// tailLines is how many of a failed step's last words are shown.
const tailLines = 5

// maxReasons bounds how many unreadable lines are told.
const maxReasons = 50

// spoiled says why nothing can be concluded from the run, and shows it.
func (j *judge) spoiled() (reasons []string, shown []Evidence) {
	reasons = slices.Clone(j.run.Altered)
	if j.run.Record == nil {
		reasons = append(reasons, j.foreignFaults()...)
	} else {
		r := j.run.Record
		reasons = append(reasons, r.Spoiled...)
		if r.Interrupted {
			reasons = append(reasons, "the run was interrupted")
		} else if !r.Complete {
			reasons = append(reasons, "the run was never completed")
		}
		reasons = append(reasons, j.faults()...)
		ends, tail := j.ends()
		reasons, shown = append(reasons, ends...), tail
		reasons = append(reasons, j.cuts()...)
	}
	reasons = append(reasons, j.grammar()...)
	for i := range reasons {
		reasons[i] = printable(reasons[i], ' ')
	}
	return reasons, shown
}

// faults names every declared fault that did not strike: without it the run is
// a happy path under another name.
func (j *judge) faults() []string {
	var out []string
	for _, f := range j.run.Record.Faults {
		if f.Struck < f.Wanted {
			out = append(out, fmt.Sprintf("the %s of %s at %s%s did not strike: %d of %d, %d matching arrivals were seen",
				f.Kind, f.Step, f.At, forMessage(f.Message), f.Struck, f.Wanted, f.Seen))
		}
	}
	for _, s := range j.scenario.Steps {
		for _, f := range s.Faults() {
			if !slices.ContainsFunc(j.run.Record.Faults, func(r labs.FaultRecord) bool {
				return r.Step == s.Name && r.Kind == f.Kind && checkpoint(r.At) == checkpoint(f.At) && r.Message == f.Message
			}) {
				out = append(out, fmt.Sprintf("the %s of %s at %s%s is not in the record", f.Kind, s.Name, f.At, forMessage(f.Message)))
			}
		}
	}
	return out
}

func forMessage(name string) string {
	if name == "" {
		return ""
	}
	return " for " + name
}

// foreignFaults does the same for a folder without a record, where only the
// crash_injected line tells.
func (j *judge) foreignFaults() []string {
	var out []string
	for _, s := range j.scenario.Steps {
		for _, f := range s.Faults() {
			where := Pairs{"status": "crash_injected"}
			if f.Message != "" {
				where["aggregateId"] = j.e.key(f.Message)
			}
			lines, err := j.lines([]string{s.Name}, where, "")
			if err != nil || len(lines) == 0 {
				out = append(out, fmt.Sprintf("nothing shows that the %s of %s at %s%s struck: there is no %s, and no crash_injected line in its log",
					f.Kind, s.Name, f.At, forMessage(f.Message), labs.RecordFile))
			}
		}
	}
	return out
}

// ends names the steps that never started, still run, or ended otherwise than
// planned while no assertion asks for their exit.
func (j *judge) ends() (reasons []string, tail []Evidence) {
	for _, s := range j.scenario.Steps {
		r, ok := j.record(s.Name)
		switch {
		case s.RoleName() == "": // a look at the broker is no process
		case !ok:
			reasons = append(reasons, s.Name+" was never started")
		case r.Exit == nil && r.Started.IsZero():
			reasons = append(reasons, s.Name+" was never started")
		case r.Exit == nil:
			reasons = append(reasons, s.Name+" was still running when the run was judged")
		case *r.Exit != r.Planned && !j.asked(s.Name):
			reasons = append(reasons, fmt.Sprintf("%s ended with exit %d%s, planned was %d", s.Name, *r.Exit, bySignal(r.Signal), r.Planned))
			tail = append(tail, j.lastWords(s.Name)...)
		}
	}
	return reasons, tail
}

func bySignal(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// asked reports whether an assertion judges the step's exit itself.
func (j *judge) asked(step string) bool {
	return slices.ContainsFunc(j.e.Assertions, func(a Assertion) bool { return a.Exit == step })
}

// lastWords are the last lines that a step wrote for humans.
func (j *judge) lastWords(step string) []Evidence {
	name := step + ".err.txt"
	b, err := os.ReadFile(filepath.Join(j.run.Dir, name))
	if err != nil {
		return nil // it wrote none
	}
	lines := withoutDump(bytes.Split(bytes.TrimRight(b, "\r\n"), []byte("\n")))
	from := max(0, len(lines)-tailLines)
	var out []Evidence
	for i, l := range lines[from:] {
		if text := strings.TrimRight(string(l[:min(len(l), 400)]), "\r"); text != "" {
			out = append(out, Evidence{File: name, Line: from + i + 1, Step: step, Text: text})
		}
	}
	return out
}

// withoutDump leaves out what Go writes when SIGQUIT ends a process, but for
// its first line: it ends with the registers, which tell nobody anything.
func withoutDump(lines [][]byte) [][]byte {
	for i, l := range lines {
		if bytes.HasPrefix(l, []byte("SIGQUIT: quit")) {
			return lines[:i+1]
		}
	}
	return lines
}

// grammar names lines of ours that are broken, and in a run of ours also words
// and keys that nobody knows: what they would have said is missing everywhere.
func (j *judge) grammar() []string {
	var out []string
	words, keys := labs.Words(), labs.Keys()
	for _, s := range j.run.Steps {
		for _, l := range s.Lines {
			wrong := unreadable(l)
			if wrong == "" && l.Own() && j.run.Record != nil {
				wrong = strange(l, words, keys)
			}
			if wrong != "" {
				out = append(out, fmt.Sprintf("%s:%d %s", l.File, l.Number, wrong))
			}
			if len(out) == maxReasons {
				return out
			}
		}
	}
	return out
}

func unreadable(l labs.LogLine) string {
	if l.Broken != nil {
		return fmt.Sprintf("cannot be read: %v", l.Broken)
	}
	prefix, _, _ := strings.Cut(strings.TrimPrefix(l.Text, "["), "]")
	if l.Prefix == "" && strings.HasPrefix(l.Text, "[") && slices.Contains(labs.Prefixes(), prefix) {
		return fmt.Sprintf("is too long to be read: %d bytes", len(l.Text)) // the only reason why ours is taken for foreign
	}
	return ""
}

func strange(l labs.LogLine, words map[string]string, keys []string) string {
	if w := l.Get("status"); words[w] == "" {
		return fmt.Sprintf("has a status word that nobody knows: %q", w)
	}
	var seen []string
	for _, p := range l.Pairs {
		switch {
		case !slices.Contains(keys, p.Key):
			return fmt.Sprintf("has a key that nobody knows: %q", p.Key)
		case slices.Contains(seen, p.Key):
			return fmt.Sprintf("has the key %q twice", p.Key)
		}
		seen = append(seen, p.Key)
	}
	return ""
}
