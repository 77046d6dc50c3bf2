package assert

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Want is what an assertion claims: Value, or with Not anything but Value, or a
// number between Min and Max.
type Want struct {
	Value    any // as Result.Value; nil when Min or Max is set
	Not      bool
	Min, Max *int64
}

// Balance is what became of the business keys that were produced. The empty
// one is even: each key was done once, or is still queued.
type Balance struct {
	Lost    []string `json:"lost,omitempty"`    // produced, and nowhere to be found
	Doubled []string `json:"doubled,omitempty"` // done more than once
	Phantom []string `json:"phantom,omitempty"` // done, though nobody produced it
}

// String is `even`, or such as `lost order-1001; doubled order-1002,order-1003`.
func (b Balance) String() string {
	var parts []string
	for _, p := range []struct {
		name string
		keys []string
	}{{"lost", b.Lost}, {"doubled", b.Doubled}, {"phantom", b.Phantom}} {
		if len(p.keys) > 0 {
			parts = append(parts, p.name+" "+strings.Join(p.keys, ","))
		}
	}
	if len(parts) == 0 {
		return "even"
	}
	return strings.Join(parts, "; ")
}

// Holds reports whether a measure's value is the wanted one.
func (w Want) Holds(v any) bool {
	if w.Min != nil || w.Max != nil {
		n, ok := number(v)
		return ok && (w.Min == nil || n >= *w.Min) && (w.Max == nil || n <= *w.Max)
	}
	return equal(v, w.Value) != w.Not
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []string:
		list, ok := b.([]string)
		return ok && slices.Equal(a, list)
	case Balance:
		other, ok := b.(Balance)
		return ok && a.String() == other.String()
	}
	return a == b
}

// String is the want as a report shows it: 3, 1,2,3, not 0, 3..5, at least 3.
func (w Want) String() string {
	switch {
	case w.Min != nil && w.Max != nil:
		return fmt.Sprintf("%d..%d", *w.Min, *w.Max)
	case w.Min != nil:
		return fmt.Sprintf("at least %d", *w.Min)
	case w.Max != nil:
		return fmt.Sprintf("at most %d", *w.Max)
	case w.Not:
		return "not " + show(w.Value)
	}
	return show(w.Value)
}

// number reads a number, also one that stands in a log line as text.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	}
	return 0, false
}

// show writes a value on one line, whatever it came from.
func show(v any) string {
	s := ""
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		if len(v) == 0 {
			return "(none)"
		}
		s = strings.Join(v, ",")
	default:
		s = fmt.Sprint(v)
	}
	if printable(s, '?') != s {
		return strconv.Quote(s)
	}
	return s
}

// shape is the sort of value that a measure finds, and with it what may be wanted of it.
type shape int

const (
	aCount   shape = iota // a number from 0
	anExit                // 0 to 255
	aNumber               // any whole number
	aFigure               // a whole number, or none
	aWord                 // the text of a value in a line
	aList                 // several of them
	aBalance              // even, or who was lost, doubled or a phantom
)

// bounds of a number of this shape.
func (s shape) bounds() (low, high int64) {
	switch s {
	case aCount:
		return 0, math.MaxInt64
	case anExit:
		return 0, 255
	}
	return math.MinInt64, math.MaxInt64
}

func (s shape) String() string {
	return [...]string{"a number from 0", "an exit code from 0 to 255", "a whole number", "a whole number or none",
		"a text, a number, or true or false", "a list", "even, or a mapping with lost, doubled, phantom"}[s]
}

func (d *decoder) want(n node, s shape) Want {
	if s == aBalance {
		return Want{Value: d.balance(n)}
	}
	if n.kind != isMap {
		return Want{Value: d.value(n, s)}
	}
	var w Want
	ranged := []string{"min", "max"}
	if s == aList {
		ranged = nil
	}
	d.mapping(n, nil, append(ranged, "not"), func(key string, v node) {
		switch key {
		case "min":
			w.Min = d.limit(v, s, true)
		case "max":
			w.Max = d.limit(v, s, false)
		case "not":
			w.Not, w.Value = true, d.value(v, s)
		}
	})
	switch {
	case len(n.entries) == 0:
		d.fail(n.at, "want is empty")
	case w.Not && len(n.entries) > 1:
		d.fail(n.at, "want has either not, or min and max")
	case w.Min != nil && w.Max != nil && *w.Min > *w.Max:
		d.fail(n.at, "nothing is at least %d and at most %d", *w.Min, *w.Max)
	}
	return w
}

// limit reads a bound. One that every value keeps is refused: it claims nothing.
func (d *decoder) limit(n node, s shape, least bool) *int64 {
	if n.kind != isNumber || !n.whole {
		d.fail(n.at, "expected a whole number, not %s", n.emptyOr())
		return nil
	}
	low, high := s.bounds()
	if least && low == 0 && n.number <= low || !least && (n.number < low || high == 255 && n.number >= high) {
		d.fail(n.at, "a bound of %d says nothing about %s", n.number, s)
	}
	return &n.number
}

func (d *decoder) value(n node, s shape) any {
	low, high := s.bounds()
	switch {
	case s == aList && n.kind == isList:
		list := []string{}
		for _, item := range n.items {
			list = append(list, d.scalar(item))
		}
		return list
	case s == aWord && n.scalar():
		return d.scalar(n)
	case s == aFigure && n.kind == isText && n.text == "none":
		return n.text
	case s <= aFigure && n.kind == isNumber && n.whole && n.number >= low && n.number <= high:
		return n.number
	}
	what := n.emptyOr()
	if n.kind == isNumber {
		what = n.text
	}
	d.fail(n.at, "want is %s here, not %s", s, what)
	return nil
}

func (d *decoder) balance(n node) Balance {
	var b Balance
	if n.kind == isText && n.text == "even" {
		return b
	}
	if n.kind != isMap || len(n.entries) == 0 {
		d.fail(n.at, "want is %s here, not %s", aBalance, n.emptyOr())
		return b
	}
	d.mapping(n, nil, []string{"lost", "doubled", "phantom"}, func(key string, v node) {
		switch key {
		case "lost":
			b.Lost = d.names(v, "messages", d.owed)
		case "doubled":
			b.Doubled = d.names(v, "messages", d.owed)
		case "phantom": // it may be a key of no fixture
			b.Phantom = d.names(v, "business keys", d.scalar)
		}
	})
	for _, list := range [][]string{b.Lost, b.Doubled, b.Phantom} {
		slices.Sort(list)
	}
	return b
}

// owed reads a fixture's name or its business key, as its business key.
func (d *decoder) owed(n node) string {
	if n.kind == isText && slices.Contains(d.businessKeys(), n.text) {
		return n.text
	}
	name := d.message(n)
	if k, ok := d.keys[name]; ok {
		return k
	}
	return name
}
