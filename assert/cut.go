package assert

import (
	"fmt"
	"slices"

	"mqlab/labs"
)

// cuts names the steps whose log is not whole: what is missing in it would be
// counted as never having happened.
func (j *judge) cuts() []string {
	var out []string
	for _, s := range j.scenario.Steps {
		r, ok := j.record(s.Name)
		if s.RoleName() == "" || !ok || r.PID == 0 && r.Exit == nil {
			continue // it never ran
		}
		log, ok := j.run.Step(s.Name)
		if !ok {
			out = append(out, fmt.Sprintf("%s ran, but its log is missing", s.Name))
			continue
		}
		if reason := j.cut(log, s.RoleName(), r); reason != "" {
			out = append(out, reason)
		}
	}
	return out
}

// cut says what the log of a step that ended lacks at its end. A line behind
// the end word does no harm: it is counted like any other.
func (j *judge) cut(log labs.StepLog, role string, r labs.StepRecord) string {
	if r.Exit == nil {
		return "" // it is still running
	}
	if *r.Exit == 0 {
		if word := endWord(role); word != "" && !logged(log, word) {
			return fmt.Sprintf("%s ended with exit 0, but its log does not end with %s: it was cut", log.Name, word)
		}
		return ""
	}
	for _, f := range j.run.Record.Faults {
		switch {
		case f.Step != log.Name || f.Struck == 0 || f.Kind != labs.KindHalt:
		case f.How == labs.HowExit && !logged(log, "crash_injected"):
			return fmt.Sprintf("the halt of %s struck, but its log does not end with crash_injected: it was cut", log.Name)
		case !log.Wrote():
			return fmt.Sprintf("the halt of %s struck, but its log has no structured line: it was cut", log.Name)
		}
	}
	return ""
}

// endWord is the status of the last line of a role that ended in order. A setup
// need not say anything.
func endWord(role string) string {
	switch role {
	case labs.RoleProducer, labs.RoleConsumer:
		return "done"
	case labs.RoleInspectDB:
		return "snapshot"
	}
	return ""
}

func logged(log labs.StepLog, word string) bool {
	return slices.ContainsFunc(log.Lines, func(l labs.LogLine) bool { return l.Own() && l.Get("status") == word })
}
