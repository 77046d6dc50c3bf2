package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestArticle judges the article's own logs: without a record the exit codes
// and the broker's numbers cannot be known, with one transcribed from the
// article everything holds.
func TestArticle(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	saved, err := filepath.Abs("../../assert/testdata")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := m.must(exitInconclusive, "assert", filepath.Join(saved, "article"))
	if pass, open := strings.Count("\n"+out, "\nPASS "), strings.Count("\n"+out, "\nINCONCLUSIVE "); pass != 6 || open != 3 {
		t.Errorf("%d PASS and %d INCONCLUSIVE, want 6 and 3\n%s", pass, open, out)
	}
	out, _ = m.must(exitHeld, "assert", filepath.Join(saved, "article-with-record"))
	if pass := strings.Count("\n"+out, "\nPASS "); pass != 9 {
		t.Errorf("%d PASS, want 9\n%s", pass, out)
	}
}
