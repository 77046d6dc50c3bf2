package assert

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"mqlab/labs"
)

// maxErrors bounds how many mistakes of one file are told.
const maxErrors = 50

// namePattern is what an assertion's name looks like: crashExitCode,
// consumer-run2.exitCode, received:orders.routing.eu.
const namePattern = `^[A-Za-z0-9][A-Za-z0-9._:/-]*$`

// decoder turns a file's nodes into assertions and gathers the mistakes.
type decoder struct {
	file    labs.File
	lines   []string
	sc      *labs.Scenario
	figures []string
	keys    map[string]string // fixture to business key, where known
	errs    []*labs.FileError
}

func (d *decoder) assertions(root node) []Assertion {
	if root.kind != isMap || len(root.entries) == 0 {
		d.fail(root.at, "an expected file is a mapping from an assertion's name to what it claims")
		return nil
	}
	name := regexp.MustCompile(namePattern)
	var list []Assertion
	for _, e := range root.entries {
		if len(d.errs) >= maxErrors {
			break
		}
		if !name.MatchString(e.key) {
			d.fail(e.at, "an assertion's name is made of letters, digits and . _ : / -, not %q", printable(e.key, '?'))
		}
		list = append(list, d.assertion(e))
	}
	return list
}

// mistakes joins what was found, in the order of the file.
func (d *decoder) mistakes() error {
	slices.SortStableFunc(d.errs, func(a, b *labs.FileError) int { return cmp.Or(a.Line-b.Line, a.Col-b.Col) })
	var errs []error
	for _, e := range d.errs {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// assertion decodes one claim: first which measure it has, because that says
// which other keys it takes.
func (d *decoder) assertion(e entry) Assertion {
	a := Assertion{Name: e.key}
	if e.value.kind != isMap {
		d.fail(e.value.at, "an assertion is a mapping such as {count: {status: received}, in: [consumer], want: 3}, not %s", e.value.kind)
		return a
	}
	var found []measure
	for _, m := range measures() {
		if e.value.get(m.name) != nil {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 1:
		a.Measure = found[0].name
		d.fields(&a, e, found[0])
		return a
	case len(found) == 0:
		d.fail(e.at, "%s has no measure; there is %s", e.key, strings.Join(measureNames(), ", "))
	default:
		d.fail(e.at, "%s has two measures, %s and %s; an assertion has one", e.key, found[0].name, found[1].name)
	}
	d.unknown(e, nil)
	return a
}

func (d *decoder) fields(a *Assertion, e entry, m measure) {
	takes := append([]string{m.name, "want", "why"}, m.takes...)
	d.unknown(e, takes)
	for _, key := range append([]string{"want"}, m.needs...) {
		if e.value.get(key) == nil {
			d.fail(e.at, "%s: %s needs `%s`", e.key, m.name, key)
		}
	}
	for _, f := range e.value.entries {
		if slices.Contains(takes, f.key) {
			d.field(a, f, m)
		}
	}
	d.inspectOnly(*a, e.value.get("in"))
	d.silent(*a, e.value)
	d.vacuous(*a, m.want, e.value.get("want"))
}

// unknown refuses keys that nothing takes and, when takes is given, keys that
// this measure does not take.
func (d *decoder) unknown(e entry, takes []string) {
	for _, f := range e.value.entries {
		switch {
		case !slices.Contains(assertionKeys(), f.key):
			d.fail(f.at, "unknown key %q%s", printable(f.key, '?'), labs.Nearest(f.key, assertionKeys()))
		case takes != nil && !slices.Contains(takes, f.key):
			d.fail(f.at, "%s does not take `%s`; it takes %s", takes[0], f.key, strings.Join(takes[1:], ", "))
		}
	}
}

func (d *decoder) field(a *Assertion, f entry, m measure) {
	v := f.value
	switch f.key {
	case "exit":
		a.Exit = d.process(v)
	case "count":
		a.Count = d.pairs(v)
	case "where":
		a.Where = d.pairs(v)
	case "rows":
		a.Rows = d.columns(v)
	case "distinct":
		a.Distinct = d.lineKey(v)
	case "per":
		a.Per = d.lineKey(v)
	case "last":
		a.Last = d.lineKey(v)
	case "first":
		a.First = d.lineKey(v)
	case "sequence":
		a.Sequence = d.lineKey(v)
	case "repeats":
		a.Repeats = d.oneOf(v, "key whose repeats are counted", []string{"messageId"})
	case "account":
		a.Account = d.oneOf(v, "account", []string{"keys"})
	case "state":
		a.State = d.oneOf(v, "figure of this broker", d.figures)
	case "of":
		a.Of = d.destination(v)
	case "at":
		a.At = d.at(v)
	case "duration":
		a.Duration = d.span(v)
	case "in":
		a.In = d.in(v)
	case "from":
		a.From = d.sender(v)
	case "why":
		a.Why = d.text(v)
	case "want":
		a.Want = d.want(v, m.want)
	}
}

func (n node) get(key string) *node {
	for i := range n.entries {
		if n.entries[i].key == key {
			return &n.entries[i].value
		}
	}
	return nil
}

// text reads a text; an empty one is a mistake everywhere.
func (d *decoder) text(n node) string {
	if n.kind != isText || n.text == "" {
		d.fail(n.at, "expected a text, not %s", n.emptyOr())
		return ""
	}
	return n.text
}

func (n node) emptyOr() string {
	if n.scalar() && n.text == "" {
		return "an empty one"
	}
	return n.kind.String()
}

// scalar reads a text, a number, or true or false, as its text.
func (d *decoder) scalar(n node) string {
	if !n.scalar() || n.text == "" {
		d.fail(n.at, "expected a text, a number, or true or false, not %s", n.emptyOr())
		return ""
	}
	return n.text
}

func (d *decoder) oneOf(n node, what string, known []string) string {
	s := d.text(n)
	if s != "" && !slices.Contains(known, s) {
		d.fail(n.at, "no %s is named %q%s", what, printable(s, '?'), labs.Nearest(s, known))
	}
	return s
}

func (d *decoder) list(n node, what string) []node {
	if n.kind != isList {
		d.fail(n.at, "expected a list of %s, not %s", what, n.kind)
		return nil
	}
	if len(n.items) == 0 {
		d.fail(n.at, "the list of %s is empty", what)
	}
	return n.items
}

// names reads a list in which each name stands once.
func (d *decoder) names(n node, what string, read func(node) string) []string {
	var out []string
	for _, item := range d.list(n, what) {
		s := read(item)
		if s != "" && slices.Contains(out, s) {
			d.fail(item.at, "%q stands in the list twice", printable(s, '?'))
		}
		out = append(out, s)
	}
	return out
}

// mapping reads a mapping with a fixed set of keys.
func (d *decoder) mapping(n node, needs, may []string, read func(key string, v node)) {
	if n.kind != isMap {
		d.fail(n.at, "expected a mapping with %s, not %s", strings.Join(append(slices.Clone(needs), may...), ", "), n.kind)
		return
	}
	known := append(slices.Clone(needs), may...)
	for _, e := range n.entries {
		if !slices.Contains(known, e.key) {
			d.fail(e.at, "unknown key %q%s", printable(e.key, '?'), labs.Nearest(e.key, known))
			continue
		}
		read(e.key, e.value)
	}
	for _, key := range needs {
		if n.get(key) == nil {
			d.fail(n.at, "`%s` is missing", key)
		}
	}
}
