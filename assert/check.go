package assert

import (
	"reflect"
	"slices"
	"strings"

	"mqlab/labs"
)

// process reads the name of a step that runs a process.
func (d *decoder) process(n node) string {
	name := d.step(n)
	if s, ok := d.sc.Step(name); ok && s.RoleName() == "" {
		d.fail(n.at, "the step %q looks at the broker: it runs no process, so it has no lines and no exit code", name)
	}
	return name
}

func (d *decoder) step(n node) string {
	var known []string
	for _, s := range d.sc.Steps {
		known = append(known, s.Name)
	}
	return d.oneOf(n, "step of this lab", known)
}

func (d *decoder) in(n node) []string { return d.names(n, "steps", d.process) }

// sender reads the name of a step that can have sent messages.
func (d *decoder) sender(n node) string {
	name := d.process(n)
	s, ok := d.sc.Step(name)
	if ok && slices.Contains([]string{labs.RoleSetup, labs.RoleConsumer, labs.RoleInspectDB}, s.RoleName()) {
		d.fail(n.at, "the step %q is a %s: it sends nothing", name, s.RoleName())
	}
	return name
}

func (d *decoder) lineKey(n node) string { return d.oneOf(n, "key of a log line", labs.Keys()) }

// pairs reads what a line must have. Words that nobody logs are refused: a
// count over them would hold for ever.
func (d *decoder) pairs(n node) Pairs {
	if n.kind != isMap || len(n.entries) == 0 {
		d.fail(n.at, "expected pairs such as {status: received}, not %s", n.kind)
		return nil
	}
	p := Pairs{}
	for _, e := range n.entries {
		if !slices.Contains(labs.Keys(), e.key) {
			d.fail(e.at, "no key of a log line is named %q%s", printable(e.key, '?'), labs.Nearest(e.key, labs.Keys()))
			continue
		}
		p[e.key] = d.scalar(e.value)
		d.valueOf(e.key, e.value)
	}
	return p
}

// valueOf refuses a value that a key never has.
func (d *decoder) valueOf(key string, n node) {
	known := valuesOf(key)
	what := "value of " + key
	switch key {
	case "status":
		what = "status word"
	case "checkpoint":
		for _, s := range d.sc.Steps {
			known = append(known, d.stops(s)...)
		}
		what = "checkpoint at which a step of this lab stops"
	case "aggregateId":
		known = d.businessKeys()
		what = "business key of this lab's messages"
	}
	if len(known) > 0 && n.scalar() && n.text != "" && !slices.Contains(known, n.text) {
		d.fail(n.at, "no %s is named %q%s", what, printable(n.text, '?'), labs.Nearest(n.text, known))
	}
}

// valuesOf are the only values that a key can have; nil when they are free.
func valuesOf(key string) []string {
	switch key {
	case "status":
		return labs.WordNames()
	case "redelivered":
		return []string{"true", "false", "unknown"}
	}
	return nil
}

// businessKeys are those of the lab's messages; nil when one is not known.
func (d *decoder) businessKeys() []string {
	var keys []string
	for _, name := range messages(d.sc) {
		k, ok := d.keys[name]
		if !ok {
			return nil
		}
		keys = append(keys, k)
	}
	return keys
}

// columns reads the pairs of `rows`, which adds status=row itself.
func (d *decoder) columns(n node) Pairs {
	for _, e := range n.entries {
		if e.key == "status" {
			d.fail(e.at, "rows are the lines with status=row; leave status out")
		}
	}
	return d.pairs(n)
}

func (d *decoder) message(n node) string {
	return d.oneOf(n, "message of this lab", messages(d.sc))
}

// messages lists the fixtures that a scenario names.
func messages(sc *labs.Scenario) []string {
	all := slices.Concat(sc.Messages, sc.Producer.Messages)
	for _, s := range sc.Steps {
		all = append(all, s.Producer.Messages...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (d *decoder) destination(n node) string {
	if name := d.sc.Destination.Name(); name != "" {
		return d.oneOf(n, "destination of this lab", []string{name})
	}
	return d.text(n)
}

func (d *decoder) at(n node) *At {
	if n.kind == isText && n.text == "end" {
		return &At{}
	}
	if n.kind != isMap {
		d.fail(n.at, "expected end, or a mapping with step, checkpoint, message")
		return nil
	}
	at := &At{}
	d.mapping(n, []string{"step"}, []string{"checkpoint", "message"}, func(key string, v node) {
		switch key {
		case "step":
			at.Step = d.step(v)
		case "checkpoint":
			at.Checkpoint = checkpoint(d.text(v))
		case "message":
			at.Message = d.message(v)
		}
	})
	d.asked(n, at)
	return at
}

// asked refuses a moment at which nobody asks the broker.
func (d *decoder) asked(n node, at *At) {
	s, ok := d.sc.Step(at.Step)
	cp := n.get("checkpoint")
	switch {
	case !ok:
	case cp == nil && at.Message != "":
		d.fail(n.get("message").at, "a message needs a checkpoint: the broker is asked when a step stands there with it")
	case cp == nil && s.Inspect == "":
		d.fail(n.get("step").at, "the broker is not asked at %q; name a checkpoint, or a step with inspect: broker", at.Step)
	case cp != nil && at.Checkpoint != "" && !slices.Contains(d.stops(s), at.Checkpoint):
		d.fail(cp.at, "%q does not stop at %q%s", at.Step, printable(at.Checkpoint, '?'), labs.Nearest(at.Checkpoint, d.stops(s)))
	}
}

// checkpoint reads Kafka's name of before-ack as what it is.
func checkpoint(name string) string {
	if name == "before-offset-commit" {
		return "before-ack"
	}
	return name
}

func (d *decoder) stops(s labs.Step) []string {
	var names []string
	for _, cp := range d.sc.Stops(s) {
		names = append(names, string(cp))
	}
	return names
}

func (d *decoder) span(n node) *Span {
	s := &Span{}
	d.mapping(n, []string{"from", "to"}, nil, func(key string, v node) {
		if key == "from" {
			s.From = d.moment(v)
		} else {
			s.To = d.moment(v)
		}
	})
	return s
}

func (d *decoder) moment(n node) Moment {
	var m Moment
	d.mapping(n, []string{"step", "status"}, []string{"message"}, func(key string, v node) {
		switch key {
		case "step":
			m.Step = d.process(v)
		case "status":
			m.Status = d.oneOf(v, "status word", labs.WordNames())
		case "message":
			m.Message = d.message(v)
		}
	})
	return m
}

// inspectOnly refuses what only inspect-db writes in any other step: it would
// be counted as 0, or never be found.
func (d *decoder) inspectOnly(a Assertion, in *node) {
	if in == nil {
		return
	}
	alone := ""
	for _, key := range append([]string{a.Last, a.First, a.Sequence, a.Distinct, a.Per}, keysOf(a.Count, a.Where, a.Rows)...) {
		if slices.Contains([]string{"business_rows", "processed_rows", "table"}, key) {
			alone = key
		}
	}
	for _, word := range []string{a.Count["status"], a.Where["status"]} {
		if word == "row" || word == "snapshot" {
			alone = "status=" + word
		}
	}
	if a.Rows != nil {
		alone = "status=row"
	}
	for _, item := range in.items {
		s, ok := d.sc.Step(item.text)
		if alone != "" && ok && s.RoleName() != labs.RoleInspectDB && s.RoleName() != "" {
			d.fail(item.at, "only inspect-db writes %s, and %q is a %s", alone, item.text, s.RoleName())
		}
	}
}

func keysOf(maps ...Pairs) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// assertionKeys lists every key of an assertion, off the struct that has them.
func assertionKeys() []string {
	var keys []string
	t := reflect.TypeFor[Assertion]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}
