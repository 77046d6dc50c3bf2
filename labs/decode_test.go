package labs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func decodeScenario(text string) (Scenario, error) {
	var s Scenario
	err := Decode(File{Path: "labs/x/y.yaml", Text: text}, &s)
	return s, err
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const ok = "summary: s\ndestination: {queue: q}\n"
	tests := map[string]struct {
		text, want string // want is a part of the whole message, its place included
	}{
		"an unknown key":                {ok + "mesages: [order-1001]\n", `y.yaml:3:1: unknown key "mesages"; did you mean "messages"?`},
		"an unknown key in a step":      {ok + "steps:\n  - {name: a, halt: {att: before-ack}}\n", `y.yaml:4:22: unknown key "att"; did you mean "at"`},
		"an unknown key in an embedded": {ok + "steps:\n  - name: a\n    hold:\n      untile: {}\n", `y.yaml:6:7: unknown key "untile"; did you mean "until"?`},
		"a key that is not near":        {ok + "frobnicate: 1\n", `y.yaml:3:1: unknown key "frobnicate"`},
		"a key of Go's name":            {"Summary: s\n", `y.yaml:1:1: unknown key "Summary"; did you mean "summary"?`},
		"a list for a word":             {"summary: [a]\n", "y.yaml:1:"},
		"a word for a list":             {ok + "messages: order-1001\n", "y.yaml:3:"},
		"a word for a mapping":          {ok + "consumer: transactional-dedupe\n", "y.yaml:3:"},
		"a word for a number":           {ok + "consumer: {prefetch: many}\n", "y.yaml:3:"},
		"a number that is too large":    {ok + "consumer: {prefetch: 99999999999999999999}\n", "y.yaml:3:"},
		"a word for a truth":            {ok + "destination2: 1\n", `unknown key "destination2"; did you mean "destination"?`},
		"a duration without a unit":     {ok + "timeout: 60\n", `"60" is not a duration such as 300ms or 2s`},
		"a negative duration":           {ok + "timeout: -1s\n", `"-1s" is not a duration such as`},
		"a doubled key":                 {"summary: a\nsummary: b\n", "y.yaml:2:1: "},
		"a doubled key in a step":       {ok + "steps:\n  - {name: a, name: b}\n", "y.yaml:4:15: "},
		"a second document":             {ok + "---\nsummary: b\n", "y.yaml:3:1: a second document in the file"},
		"an anchor":                     {"summary: &a s\n", "anchors and aliases are not part of the lab language"},
		"an alias":                      {"summary: *a\n", "anchors and aliases are not part of the lab language"},
		"a merge":                       {"<<: {summary: s}\n", "y.yaml:1:1: anchors and aliases are not part of the lab language"},
		"a tag":                         {ok + "messages: !x y\n", "y.yaml:3:11: tags are not part of the lab language"},
		"a bomb of aliases":             {"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "y.yaml:1:4: anchors and aliases"},
		"an empty file":                 {"", "y.yaml:1:1: the file is empty"},
		"a file of comments":            {"# nothing\n\n# here\n", "the file is empty"},
		"a file of one separator":       {"---\n", "the file is empty"},
		"tabs":                          {"summary: s\nsteps:\n\t- {name: a}\n", "y.yaml:3:"},
		"a broken quote":                {"summary: \"s\n", "y.yaml:1:"},
		"a broken bracket":              {ok + "messages: [a, b\n", "y.yaml:3:"},
		"deep flow":                     {"summary: " + strings.Repeat("[", 100) + "\n", "the file nests too deep"},
		"deep blocks":                   {deepBlocks(3000), "y.yaml:1:1: "},
		"ten megabytes":                 {"summary: " + strings.Repeat("x", 10<<20), "the file has 10485769 bytes, more than the 1048576"},
		"a list of steps' names":        {ok + "steps: [producer]\n", "y.yaml:3:"},
		"a mapping for a list":          {ok + "steps: {name: a}\n", "y.yaml:3:"},
		"a scalar for the whole":        {"hello\n", "y.yaml:1:1: "},
		"a list for the whole":          {"- a\n", "y.yaml:1:1: "},
		"names of the wrong type":       {ok + "steps: [{name: a, after: {step: {x: y}, exit: any}}]\n", "y.yaml:3:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeScenario(tt.text)
			var e *FileError
			if !errors.As(err, &e) {
				t.Fatalf("Decode: %v, want a *FileError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Decode: %v\nwant %q in it", err, tt.want)
			}
			if e.Line > 0 && e.Line <= strings.Count(tt.text, "\n")+1 && tt.text != "" && !strings.Contains(e.Message, "the file is empty") &&
				(!strings.Contains(e.Excerpt, " | ") || !strings.HasSuffix(e.Excerpt, "^")) {
				t.Errorf("no excerpt in %q", err)
			}
			if n := len(err.Error()); n > 1000 {
				t.Errorf("the message has %d bytes", n)
			}
		})
	}
}

func deepBlocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
		if b.Len() > maxFile-2*n {
			break
		}
	}
	return b.String()
}

func TestDecodeReads(t *testing.T) {
	t.Parallel()
	s, err := decodeScenario("# a comment\n---\nsummary: s\ndestination: {queue: q}\ntimeout: 1m30s\nsteps:\n" +
		"  - name: a\n    after: {step: [b, c], exit: 137}\n    halt: {at: before-ack, message: order-1001, arrival: 2, how: kill}\n" +
		"  - {name: b, after: {step: a, exit: any}}\n")
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Steps[0], s.Steps[1]
	if s.Timeout.Std() != 90*time.Second || len(a.After.Step) != 2 || a.After.Exit != "137" || b.After.Step[0] != "a" {
		t.Errorf("read %+v", s)
	}
	if a.Halt.At != "before-ack" || a.Halt.Message != "order-1001" || a.Halt.Arrival != 2 || a.Halt.How != HowKill {
		t.Errorf("read the halt %+v", a.Halt)
	}
}

func TestErrorAtPlacesThatAreNotThere(t *testing.T) {
	t.Parallel()
	f := File{Path: "l.yaml", Text: "summary: s\nsteps:\n  - {name: a}\n"}
	for path, want := range map[string]string{
		"$.steps[0].name":     "l.yaml:3:12: m",
		"$.steps[0].halt.at":  "l.yaml:3:6: m",
		"$.steps[9].name":     "l.yaml:3:3: m",
		"$.consumer.design":   "l.yaml:1:1: m",
		"$":                   "l.yaml:1:1: m",
		"$.steps[0].n-a.m[1]": "l.yaml:3:6: m",
	} {
		if got, _, _ := strings.Cut(f.ErrorAt(path, "m").Error(), "\n"); got != want {
			t.Errorf("ErrorAt(%s) = %q, want %q", path, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"rabbitmq/*.yaml", "../expected/rabbitmq/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(b))
		}
	}
	for _, s := range []string{"", "a: &a [*a]", "? {}\n", "- - - -", "a: |\n  b\n c", "\"\\", "{{{{", "!!binary x", "a: !!int b", "%YAML 1.2\n---\na: b", "summary: >+\n\n\n x", "\t", "\r\n", "steps: [{name: a, after: {step: []}}]", "timeout: 1h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		var s Scenario
		file := File{Path: "f.yaml", Text: text}
		err := Decode(file, &s)
		if err == nil {
			l := &Lab{Product: "rabbitmq", File: file, Scenario: s, Fixtures: map[string]Fixture{}}
			err = l.Check(newFakeBroker(""))
		}
		if took := time.Since(began); took > time.Second && len(text) < 4096 {
			t.Errorf("%d bytes took %v", len(text), took)
		}
		for _, e := range all(err) {
			if e.Line < 0 || e.Line > strings.Count(text, "\n")+2 || e.Error() == "" {
				t.Errorf("a mistake at %d:%d: %v", e.Line, e.Col, e)
			}
		}
	})
}
