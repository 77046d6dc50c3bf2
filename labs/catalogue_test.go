package labs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const tiny = "summary: s\ndestination: {queue: q}\nsteps: [{name: setup}]\n"

func userCatalogue(t *testing.T) *Catalogue {
	return catalogueOf(t, map[string]string{
		"labs/rabbitmq/consumer-crash.yaml": tiny, "expected/rabbitmq/consumer-crash.yaml": "x: 1\n",
		"labs/rabbitmq/basic.yaml": tiny, "expected/rabbitmq/basic.yaml": "x: 1\n",
		"labs/kafka/basic.yaml": tiny, "expected/kafka/basic.yaml": "x: 1\n",
		"labs/kafka/alone.yaml":    tiny,
		"labs/rabbitmq/README.md":  "not a lab",
		"labs/rabbitmq/x/y.yaml":   tiny,
		"messages/order-1001.json": `{"messageId":"mine","aggregateId":"order-1001"}`,
		"messages/mine.json":       `{"messageId":"m","aggregateId":"a"}`,
		"messages/broken.json":     `{"messageId":`,
		"messages/empty.json":      `{}`,
	})
}

func TestCatalogueMatch(t *testing.T) {
	t.Parallel()
	c := userCatalogue(t)
	tests := map[string]struct {
		globs []string
		want  []string
		err   string
	}{
		"one":                      {[]string{"rabbitmq/basic"}, []string{"rabbitmq/basic"}, ""},
		"one by its file":          {[]string{"rabbitmq/basic.yaml"}, []string{"rabbitmq/basic"}, ""},
		"a glob":                   {[]string{"*/basic"}, []string{"kafka/basic", "rabbitmq/basic"}, ""},
		"all":                      {[]string{"*/*"}, []string{"kafka/alone", "kafka/basic", "rabbitmq/basic", "rabbitmq/consumer-crash"}, ""},
		"each once":                {[]string{"rabbitmq/*", "*/basic"}, []string{"kafka/basic", "rabbitmq/basic", "rabbitmq/consumer-crash"}, ""},
		"a set":                    {[]string{"[kr]a*/b?sic"}, []string{"kafka/basic", "rabbitmq/basic"}, ""},
		"a typing mistake":         {[]string{"rabbitmq/consumr-crash"}, nil, `no lab matches "rabbitmq/consumr-crash"; did you mean "rabbitmq/consumer-crash"?`},
		"another broker":           {[]string{"pulsar/consumer-crash"}, nil, `did you mean "rabbitmq/consumer-crash"?`},
		"the name alone":           {[]string{"consumer-crash"}, nil, `did you mean "rabbitmq/consumer-crash"?`},
		"nothing near":             {[]string{"zzzzzzzz/zzzzzzzzzzzz"}, nil, "`mqlab list` shows them all"},
		"a glob of nothing":        {[]string{"rabbitmq/zz*"}, nil, `no lab matches "rabbitmq/zz*"`},
		"a glob that is broken":    {[]string{"rabbitmq/["}, nil, `lab pattern "rabbitmq/["`},
		"one of two is not there":  {[]string{"*/*", "nope"}, nil, `no lab matches "nope"`},
		"a folder that is nested":  {[]string{"rabbitmq/x/y"}, nil, "no lab matches"},
		"nothing at all was asked": {nil, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Match(tt.globs...)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Match(%q): %v, want %q in it", tt.globs, err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("Match(%q) = %q, %v; want %q", tt.globs, got, err, tt.want)
			}
		})
	}
	empty := catalogueOf(t, map[string]string{"labs/.keep": "", "expected/.keep": ""})
	if _, err := empty.Match("a/b"); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("Match in an empty folder: %v", err)
	}
}

func TestCatalogueLoadErrors(t *testing.T) {
	t.Parallel()
	c := userCatalogue(t)
	for id, want := range map[string]string{
		"kafka/alone":       "expected file ",
		"kafka/missing":     "read the scenario of kafka/missing",
		"basic":             `lab "basic": want BROKER/NAME`,
		"../secrets/x":      "want BROKER/NAME",
		"rabbitmq/../basic": "want BROKER/NAME",
		"/etc/passwd":       "want BROKER/NAME",
		"":                  "want BROKER/NAME",
	} {
		if _, err := c.Load(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q): %v, want %q in it", id, err, want)
		}
	}
	_, err := c.Load("kafka/alone")
	var e *FileError
	if !errors.As(err, &e) || !strings.Contains(e.Message, filepath.Join("expected", "kafka", "alone.yaml")) || !strings.HasSuffix(e.File, "kafka/alone.yaml") {
		t.Errorf("Load of a lab without its twin: %v", err)
	}
}

func TestCatalogueFixtures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ message, want string }{
		"a fixture of one's own":        {"mine", ""},
		"ours":                          {"order-1002", ""},
		"one that nobody has":           {"order-1009", `y.yaml:3:12: no fixture is named "order-1009"; did you mean "order-100`},
		"one that is not JSON":          {"broken", "y.yaml:3:12: the fixture broken.json is not a message: read envelope: unexpected end of JSON input"},
		"one without an id":             {"empty", "the fixture empty.json is not a message: read envelope: messageId and aggregateId must not be empty"},
		"one outside the folder":        {"../labs/rabbitmq/y", `y.yaml:3:12: no fixture is named "../labs/rabbitmq/y"`},
		"an absolute one":               {"/etc/passwd", `no fixture is named "/etc/passwd"`},
		"one that is far too large":     {"large", "the fixture large.json has 1048577 bytes"},
		"one whose name has a surprise": {"'*'", `no fixture is named "*"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := catalogueOf(t, map[string]string{
				"labs/rabbitmq/y.yaml":     "summary: s\ndestination: {queue: q}\nmessages: [" + tt.message + "]\nsteps: [{name: producer}]\n",
				"expected/rabbitmq/y.yaml": "x: 1\n",
				"messages/mine.json":       `{"messageId":"m","aggregateId":"a"}`,
				"messages/broken.json":     `{"messageId":`,
				"messages/empty.json":      `{}`,
				"messages/large.json":      strings.Repeat(" ", maxFile+1),
			})
			l, err := c.Load("rabbitmq/y")
			if tt.want == "" {
				if err != nil || l.Fixtures[tt.message].Envelope.MessageID == "" {
					t.Errorf("Load: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load: %v, want %q in it", err, tt.want)
			}
		})
	}
}

// A user's own fixture takes the place of ours with the same name; ours are
// there for all others.
func TestCatalogueFixtureOrder(t *testing.T) {
	t.Parallel()
	c := userCatalogue(t)
	if b, err := c.fixture("order-1001"); err != nil || !strings.Contains(string(b), `"mine"`) {
		t.Errorf("order-1001 is %s, %v", b, err)
	}
	if b, err := c.fixture("order-1002"); err != nil || !strings.Contains(string(b), "order-1002") {
		t.Errorf("order-1002 is %s, %v", b, err)
	}
	names := c.FixtureNames()
	if !slices.IsSorted(names) || !slices.Contains(names, "mine") || !slices.Contains(names, "order-1003") || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the fixtures are %q", names)
	}
}

func TestCatalogueInAFolderThatIsNone(t *testing.T) {
	t.Parallel()
	c := NewCatalogue(os.DirFS("../expected"))
	dir := t.TempDir()
	if _, err := c.In(dir); err == nil || !strings.Contains(err.Error(), "there is no folder labs") {
		t.Errorf("In an empty folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "labs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := c.In(dir); err == nil || !strings.Contains(err.Error(), "there is no folder expected") {
		t.Errorf("In a folder without expected: %v", err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	c := userCatalogue(t)
	a, err := c.Load("rabbitmq/basic")
	b, err2 := c.Load("kafka/basic")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if len(a.Digest()) != 64 || a.Digest() != b.Digest() {
		t.Errorf("one text has the digests %s and %s", a.Digest(), b.Digest())
	}
	b.File.Text += " "
	if a.Digest() == b.Digest() {
		t.Error("another text has the same digest")
	}
}

// A run is judged with what it was run with, whatever the catalogue says now.
func TestRecordedLab(t *testing.T) {
	t.Parallel()
	c := NewCatalogue(os.DirFS("../expected"))
	l, err := c.Load("rabbitmq/consumer-crash")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for name, f := range l.Fixtures {
		bodies[name] = string(f.Body)
	}
	rec := Record{Product: l.Product, Lab: l.Name, Scenario: l.File, Expected: l.Expected, Fixtures: bodies}
	back, err := Recorded(&rec)
	if err != nil || back.ID != l.ID || len(back.Fixtures) != len(l.Fixtures) || back.Digest() != l.Digest() {
		t.Errorf("Recorded = %+v, %v", back, err)
	}
	rec.Fixtures = map[string]string{"order-1001": "{"}
	if _, err := Recorded(&rec); err == nil || !strings.Contains(err.Error(), "the fixture order-1001 in run.json") {
		t.Errorf("a broken fixture: %v", err)
	}
	rec.Scenario.Text = ""
	if _, err := Recorded(&rec); err == nil || !strings.Contains(err.Error(), "run.json holds no scenario") {
		t.Errorf("no scenario: %v", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"before-ack", "after-ack", "before-commit", "after-commit"}
	many := strings.Fields(strings.Repeat("abcdefghijkl ", 30))
	for _, tt := range []struct {
		word  string
		known []string
		want  string
	}{
		{"befor-ack", known, `; did you mean "before-ack"?`},
		{"BEFORE-ACK", known, `; did you mean "before-ack"?`},
		{"before_ack", known, `; did you mean "before-ack"?`},
		{"zzzzzzzzzzzzzzz", known, "; there is before-ack, after-ack, before-commit, after-commit"},
		{"zzzzzzzzzzzzzzz", many, ""},
		{"x", nil, ""},
		{"", known, "; there is before-ack, after-ack, before-commit, after-commit"},
		{"aa", []string{"ab", "ac", "ad", "ae"}, `; did you mean "ab" or "ac" or "ad"?`},
		{"Bestellung-é", known, "; there is before-ack, after-ack, before-commit, after-commit"},
	} {
		if got := Nearest(tt.word, tt.known); got != tt.want {
			t.Errorf("Nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
