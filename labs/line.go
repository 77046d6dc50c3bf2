package labs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is one structured log line: a prefix in brackets, then ordered
// key=value pairs, such as
//
//	[consumer] timestamp=... messageId=... status=received
type Line struct {
	Prefix string
	Pairs  []Pair
}

// Pair is one key=value of a line.
type Pair struct{ Key, Value string }

// Prefixes lists what may stand in the brackets of our own lines; a line with
// another prefix, or without one, is foreign: kept, but not parsed.
func Prefixes() []string {
	return []string{"producer", "consumer", "inspect", "setup", "replay-gate"}
}

// Get returns the value of a key, or "" when the line does not have it.
func (l Line) Get(key string) string {
	for _, p := range l.Pairs {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}

// Has reports whether every given pair stands in the line.
func (l Line) Has(where map[string]string) bool {
	for k, v := range where {
		if !slices.Contains(l.Pairs, Pair{k, v}) {
			return false
		}
	}
	return true
}

// String writes the line without an end of line; it never contains one.
func (l Line) String() string {
	var b strings.Builder
	b.WriteString("[" + l.Prefix + "]")
	for _, p := range l.Pairs {
		b.WriteString(" " + p.Key + "=")
		if plain(p.Value) {
			b.WriteString(p.Value)
		} else {
			b.WriteString(quote(p.Value))
		}
	}
	return b.String()
}

// ParseLine is the inverse of String. ok is false for a foreign line; err says
// at which column one of our own lines is broken.
func ParseLine(s string) (l Line, ok bool, err error) {
	rest, found := strings.CutPrefix(s, "[")
	prefix, rest, closed := strings.Cut(rest, "]")
	if !found || !closed || !slices.Contains(Prefixes(), prefix) {
		return Line{}, false, nil
	}
	l.Prefix = prefix
	at := len(s) - len(rest)
	for at < len(s) {
		if s[at] != ' ' {
			return l, true, fmt.Errorf("column %d: expected a space", at+1)
		}
		at++
		key, after, cut := strings.Cut(s[at:], "=")
		if !cut || !plain(key) {
			return l, true, fmt.Errorf("column %d: expected key=value", at+1)
		}
		value, n, err := parseValue(after)
		if err != nil {
			return l, true, fmt.Errorf("column %d: %w", at+len(key)+2, err)
		}
		l.Pairs = append(l.Pairs, Pair{key, value})
		at += len(key) + 1 + n
	}
	return l, true, nil
}

// parseValue reads one value at the beginning of s and says how long it is there.
func parseValue(s string) (value string, n int, err error) {
	if !strings.HasPrefix(s, `"`) {
		value, _, _ = strings.Cut(s, " ")
		if value != "" && !plain(value) {
			return "", 0, fmt.Errorf("value %q needs quotes", value)
		}
		return value, len(value), nil
	}
	end := 1
	for end < len(s) && s[end] != '"' {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s) || json.Unmarshal([]byte(s[:end+1]), &value) != nil {
		return "", 0, fmt.Errorf("unterminated or invalid quotes")
	}
	return value, end + 1, nil
}

// plain reports whether s needs no quotes.
func plain(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '=' || r == '\\' || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// quote is JSON's quoting; what is not UTF-8 becomes U+FFFD, visibly.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `"?"` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
