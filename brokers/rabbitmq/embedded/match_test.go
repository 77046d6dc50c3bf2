package embedded

import (
	"strings"
	"testing"
)

func TestTopicMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		want         bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.b.c", false},
		{"*", "a", true},
		{"*", "", false},
		{"*", "a.b", false},
		{"#", "", true},
		{"#", "a.b.c", true},
		{"#.b", "b", true},
		{"#.b", "a.b", true},
		{"#.b", "a.b.c", false},
		{"a.#", "a", true},
		{"a.#.c", "a.c", true},
		{"a.#.c", "a.b.b.c", true},
		{"a.#.b.#.c", "a.b.x.b.c", true},
		{"a.#.b.#.c", "a.x.c", false},
		{"#.*", "", false},
		{"#.*", "a", true},
		{"*.#.*", "a", false},
		{"*.#.*", "a.b", true},
		{"#.a.#", "x.a.y", true},
		{"", "", true},
		{"", "a", false},
		{"a..b", "a..b", true},
		{"a.*.b", "a..b", true},
		{".", ".", true},
	} {
		if got := topicMatch(words(c.pattern), words(c.key)); got != c.want {
			t.Errorf("pattern %q, key %q: %v", c.pattern, c.key, got)
		}
	}
}

// TestTopicMatchIsBounded would not end if each # were tried at each place.
func TestTopicMatchIsBounded(t *testing.T) {
	pattern := words(strings.Repeat("#.a.", 60) + "b")
	key := words(strings.Repeat("a.", 127) + "c")
	if topicMatch(pattern, key) {
		t.Error("matches")
	}
}

func TestHeadersMatch(t *testing.T) {
	message := table{{"type", "order"}, {"n", int32(1)}, {"x-n", "1"}, {"void", nil}}
	for _, c := range []struct {
		args table
		want bool
	}{
		{table{}, true},
		{table{{"x-match", "any"}}, false},
		{table{{"type", "order"}}, true},
		{table{{"type", "other"}}, false},
		{table{{"type", []byte("order")}}, true},
		{table{{"type", nil}}, true},
		{table{{"none", nil}}, false},
		{table{{"void", nil}}, true},
		{table{{"n", int64(1)}}, true},
		{table{{"n", 1.0}}, true},
		{table{{"n", "1"}}, false},
		{table{{"x-match", "all"}, {"type", "order"}, {"n", int32(2)}}, false},
		{table{{"x-match", "any"}, {"type", "order"}, {"n", int32(2)}}, true},
		{table{{"x-match", "any"}, {"x-n", "1"}}, false},
		{table{{"x-match", "any-with-x"}, {"x-n", "1"}}, true},
		{table{{"x-match", "all-with-x"}, {"type", "order"}, {"x-n", "2"}}, false},
		{table{{"type", "order"}, {"x-n", "2"}}, true},
	} {
		if got := headersMatch(c.args, message); got != c.want {
			t.Errorf("%v: %v", c.args, got)
		}
	}
}
