package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReadme holds the README to the tables of the code.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, e := range exitMeaning() {
		if row := fmt.Sprintf("| %d | %s |", e.Code, e.Text); !strings.Contains(text, row) {
			t.Errorf("the README lacks %q", row)
		}
	}
	c, err := newApp(nil, nil).catalogue()
	if err != nil {
		t.Fatal(err)
	}
	names, err := c.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, _, err := load(c, n); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		if _, name, _ := strings.Cut(n, "/"); !strings.Contains(text, name) {
			t.Errorf("the README lacks the lab %s", n)
		}
	}
}
