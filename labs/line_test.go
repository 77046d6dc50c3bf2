package labs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logfmt/logfmt"
	"github.com/google/go-cmp/cmp"
)

func TestLineRoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // value: as it stands in the line
		"plain":           "plain",
		"":                `""`,
		"a b":             `"a b"`,
		"a=b":             `"a=b"`,
		`say "hi"`:        `"say \"hi\""`,
		`back\slash`:      `"back\\slash"`,
		"two\nlines":      `"two\nlines"`,
		"tab\t":           `"tab\t"`,
		"\x00\x1f\x7f":    "\"\\u0000\\u001f\x7f\"",
		"\u2028":          `"\u2028"`,
		"\u00a0":          "\"\u00a0\"",
		"Bestellung é 订单": `"Bestellung é 订单"`,
		"é":               "é",
		"<a>&":            "<a>&",
		"[x]":             "[x]",
		"😀":               "😀",
	}
	for value, want := range tests {
		l := Line{Prefix: "consumer", Pairs: []Pair{{"a", value}, {"status", "done"}}}
		text := l.String()
		if got := "[consumer] a=" + want + " status=done"; text != got {
			t.Errorf("String of %q is %s, want %s", value, text, got)
		}
		back, own, err := ParseLine(text)
		if !own || err != nil {
			t.Errorf("ParseLine(%s): %v, %v", text, own, err)
		}
		if d := cmp.Diff(l, back); d != "" {
			t.Errorf("ParseLine(%s) differs:\n%s", text, d)
		}
	}
	if got := (Line{Prefix: "consumer", Pairs: []Pair{{"a", "\xff"}}}).String(); got != `[consumer] a="\ufffd"` {
		t.Errorf("what is not UTF-8 is written %s", got)
	}
}

func TestParseLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line string
		own  bool
		want string // the error
	}{
		"a foreign line":             {"SLF4J: no binding", false, ""},
		"an empty line":              {"", false, ""},
		"an unknown prefix":          {"[broker] a=b", false, ""},
		"a bracket that stays open":  {"[consumer a=b", false, ""},
		"a space before":             {" [consumer] a=b", false, ""},
		"no pairs":                   {"[consumer]", true, ""},
		"an empty value":             {"[consumer] a= b=c", true, ""},
		"no space":                   {"[consumer]a=b", true, "column 11: expected a space"},
		"two spaces":                 {"[consumer]  a=b", true, "column 12: expected key=value"},
		"no key":                     {"[consumer] =b", true, "column 12: expected key=value"},
		"no value":                   {"[consumer] a", true, "column 12: expected key=value"},
		"a space at the end":         {"[consumer] a=b ", true, "column 16: expected key=value"},
		"a quote in the middle":      {`[consumer] a=b"c`, true, `column 14: value "b\"c" needs quotes`},
		"an equals sign in a value":  {"[consumer] a=b=c", true, `column 14: value "b=c" needs quotes`},
		"a quote that stays open":    {`[consumer] a="b`, true, "column 14: unterminated or invalid quotes"},
		"a backslash at the end":     {`[consumer] a="b\`, true, "column 14: unterminated or invalid quotes"},
		"an escape that JSON lacks":  {`[consumer] a="\x41"`, true, "column 14: unterminated or invalid quotes"},
		"something after the quotes": {`[consumer] a="b"c=d`, true, "column 17: expected a space"},
		"the second pair":            {`[consumer] a=b c`, true, "column 16: expected key=value"},
		"a byte that is not UTF-8":   {"[consumer] a=\xff", true, "column 14: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, own, err := ParseLine(tt.line)
			if own != tt.own {
				t.Errorf("own is %v, want %v", own, tt.own)
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLineHas(t *testing.T) {
	t.Parallel()
	l := Line{Prefix: "consumer", Pairs: []Pair{{"a", "1"}, {"b", ""}, {"a", "2"}}}
	for _, tt := range []struct {
		where map[string]string
		want  bool
	}{{nil, true}, {map[string]string{"a": "1"}, true}, {map[string]string{"a": "3"}, false}, {map[string]string{"b": ""}, true},
		{map[string]string{"c": ""}, false}, {map[string]string{"a": "1", "c": "1"}, false}} {
		if got := l.Has(tt.where); got != tt.want {
			t.Errorf("Has(%v) = %v, want %v", tt.where, got, tt.want)
		}
	}
	if l.Get("a") != "1" || l.Get("nothing") != "" {
		t.Errorf("Get: %q, %q", l.Get("a"), l.Get("nothing"))
	}
}

// The article's own lines, in the text and as files, are ours to read, and
// written again they are the same.
func TestArticleLines(t *testing.T) {
	t.Parallel()
	files := append(glob("../assert/testdata/article", "*.out.txt"), "testdata/article.txt")
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(f) == ReportFile {
			continue
		}
		for i, text := range strings.Split(string(b), "\n") {
			l, own, err := ParseLine(text)
			if strings.Contains(text, "status=") && (!own || err != nil) {
				t.Errorf("%s:%d: %v, %v: %s", f, i+1, own, err, text)
			}
			if !own {
				continue
			}
			n++
			if l.String() != text {
				t.Errorf("%s:%d is written again as\n%s\nwas\n%s", f, i+1, l, text)
			}
			if !slices.Contains(WordNames(), l.Get("status")) {
				t.Errorf("%s:%d: no word is %q", f, i+1, l.Get("status"))
			}
			for _, p := range l.Pairs {
				if !slices.Contains(Keys(), p.Key) {
					t.Errorf("%s:%d: no key is %q", f, i+1, p.Key)
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("%d lines were read, the article has more", n)
	}
}

// The recorded runs of our own labs hold known words and keys only.
func TestRecordedLinesHaveKnownWords(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range glob("../assert/testdata", "*/*.out.txt") {
		if filepath.Base(f) == ReportFile {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range readLog(filepath.Base(f), f, b).Lines {
			if l.Broken != nil {
				t.Errorf("%s:%d: %v", f, l.Number, l.Broken)
			}
			if !l.Own() {
				continue
			}
			n++
			if _, ok := Words()[l.Get("status")]; !ok {
				t.Errorf("%s:%d: no word is %q", f, l.Number, l.Get("status"))
			}
			for _, p := range l.Pairs {
				if !slices.Contains(Keys(), p.Key) {
					t.Errorf("%s:%d: no key is %q", f, l.Number, p.Key)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no recorded line was read")
	}
}

func TestReadLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	text := "[consumer] a=" + strings.Repeat("x", maxLine)
	if l := ReadLine("s", "s.out.txt", 1, text); l.Own() || l.Text != text || l.Broken != nil {
		t.Error("a line that is too long is foreign, and whole")
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "plain", "a b", "a=b", `"`, `\`, "\n", "\x00", "\x7f", "\u2028", "\u0085", "é", "\xff", "\ufffd", "\ufeff", "😀", "\u202e", "[consumer] a=b", `"a\u0041"`, "null"} {
		f.Add(s, "[consumer] a="+s)
	}
	for _, s := range []string{`[consumer] a="A" b="" c= d=x`, "[replay-gate] timestamp=2026 status=waiting", "[inspect] a=\"\xff\"", "[producer]"} {
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, value, text string) {
		l := Line{Prefix: "consumer", Pairs: []Pair{{"a", value}, {"status", value}}}
		s := l.String()
		if strings.ContainsAny(s, "\n\r") {
			t.Fatalf("the line breaks in two: %q", s)
		}
		back, own, err := ParseLine(s)
		if !own || err != nil {
			t.Fatalf("ParseLine(%q): %v, %v", s, own, err)
		}
		if utf8.ValidString(value) {
			if d := cmp.Diff(l, back); d != "" {
				t.Fatalf("ParseLine(%q) differs:\n%s", s, d)
			}
			secondOpinion(t, s, l)
		}
		// What was read is written in one way.
		first, own, err := ParseLine(text)
		if !own || err != nil {
			return
		}
		again, own, err := ParseLine(first.String())
		if !own || err != nil {
			t.Fatalf("%q was read and written as %q: %v, %v", text, first, own, err)
		}
		if again.String() != first.String() {
			t.Fatalf("%q becomes %q, then %q", text, first, again)
		}
	})
}

// secondOpinion reads the pairs with go-logfmt: any logfmt reader can read our
// evidence.
func secondOpinion(t *testing.T, s string, want Line) {
	t.Helper()
	_, pairs, _ := strings.Cut(s, "] ")
	d := logfmt.NewDecoder(bytes.NewReader([]byte(pairs)))
	var got []Pair
	for d.ScanRecord() {
		for d.ScanKeyval() {
			got = append(got, Pair{string(d.Key()), string(d.Value())})
		}
	}
	if err := d.Err(); err != nil {
		t.Fatalf("logfmt reads %q with the error: %v", pairs, err)
	}
	if diff := cmp.Diff(want.Pairs, got); diff != "" {
		t.Fatalf("logfmt reads %q differently:\n%s", pairs, diff)
	}
}
