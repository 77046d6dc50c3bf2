package brokertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Differences compares the transcript of one broker with that of another, case
// by case, and returns one text for each case that differs. A case that was not
// run or was skipped says nothing about the broker; a case that the golden
// transcript does not know is a difference.
//
// known lists what is allowed to differ, in the form of a transcript: below a
// case's name come a line "reason: ..." and what this broker says instead. A
// known difference without a reason, or one that is none, is a difference too.
func Differences(golden, known, transcript string) []string {
	want, instead := sections(golden), sections(known)
	var diffs []string
	got := sections(transcript)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		expected := want[name]
		if lines, ok := instead[name]; ok {
			reason, lines, _ := strings.Cut(lines, "\n")
			if !strings.HasPrefix(reason, "reason: ") {
				diffs = append(diffs, name+": the known difference has no reason")
			}
			if lines == expected {
				diffs = append(diffs, name+": the known difference is none")
			}
			expected = lines
		}
		if strings.Contains(got[name], "skipped: ") || strings.Contains(expected, "skipped: ") {
			continue
		}
		if diff := cmp.Diff(expected, got[name]); diff != "" {
			diffs = append(diffs, fmt.Sprintf("%s: expected (-), this broker (+):\n%s", name, diff))
		}
	}
	return diffs
}

// sections are the lines of a transcript by case.
func sections(transcript string) map[string]string {
	m := map[string]string{}
	for _, s := range strings.Split("\n"+transcript, "\n# ")[1:] {
		name, lines, _ := strings.Cut(s, "\n")
		m[name] = strings.TrimSpace(lines)
	}
	return m
}
