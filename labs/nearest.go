package labs

import (
	"slices"
	"strings"
)

// Nearest is a hint that names the known words closest to a wrong one, such as
// `; did you mean "before-ack"?`, or the whole list when it is short and
// nothing is close.
func Nearest(word string, known []string) string {
	best, found := 1+max(2, len(word)/3), []string(nil)
	for _, k := range known {
		switch d := distance(strings.ToLower(word), strings.ToLower(k)); {
		case d < best:
			best, found = d, []string{k}
		case d == best && len(found) > 0 && !slices.Contains(found, k):
			found = append(found, k)
		}
	}
	if len(found) > 0 {
		return `; did you mean "` + strings.Join(found[:min(3, len(found))], `" or "`) + `"?`
	}
	if len(known) > 0 && len(known) <= 24 {
		return "; there is " + strings.Join(known, ", ")
	}
	return ""
}

// distance is the Levenshtein distance in bytes; our words are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
