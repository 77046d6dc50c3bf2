package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf is a schema, as `mqlab schema` prints it, ready to validate.
func schemaOf(t *testing.T, of string) *jsonschema.Resolved {
	t.Helper()
	b, err := Schema(of)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// validate reads a YAML text as JSON and holds it against a schema.
func validate(t *testing.T, r *jsonschema.Resolved, text string) error {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return r.Validate(v)
}

// Schema and decoder (with the check behind it) take and refuse the same.
func TestSchemaOfScenario(t *testing.T) {
	t.Parallel()
	r := schemaOf(t, "scenario")
	const top = "summary: s\ndestination: {queue: q}\nmessages: [order-1001]\n"
	step := func(s string) string { return top + "steps:\n  - {name: producer}\n  - " + s + "\n" }
	samples := map[string]struct {
		text string
		good bool
	}{
		"the least":                            {"summary: s\ndestination: {queue: q}\nsteps: [{name: setup}]\n", true},
		"a halt":                               {step("{name: consumer, halt: {at: before-ack, message: order-1001, how: term-kill}}"), true},
		"a halt as the article says":           {step("{name: consumer, halt: {at: before-offset-commit}}"), true},
		"a condition with one step":            {step("{name: consumer, after: {step: producer, exit: any}}"), true},
		"a condition with a list":              {step("{name: consumer, after: {step: [producer], status: done, count: 2}}"), true},
		"an exit as a number":                  {step("{name: consumer, after: {step: producer, exit: 137}}"), true},
		"an exit as a word":                    {step(`{name: consumer, after: {step: producer, exit: "0"}}`), true},
		"a figure":                             {step("{name: consumer, after: {broker: depth, is: 0}}"), true},
		"a hold":                               {step("{name: consumer, hold: {at: before-ack, until: {broker: depth, is: 3}}}"), true},
		"a fail":                               {step("{name: consumer, fail: {at: before-ack, times: 3}}"), true},
		"durations":                            {"timeout: 1m30s\n" + step("{name: consumer, timeout: 1.5s, consumer: {heartbeat: 2s}}"), true},
		"settings":                             {step("{name: consumer, consumer: {design: ack-first, key: aggregateId, store: other, name: c, prefetch: 3}}"), true},
		"a quorum queue":                       {"summary: s\nrequires: [quorum]\ndestination: {queue: q, queue-type: quorum}\nsteps: [{name: setup}]\n", true},
		"no summary":                           {"destination: {queue: q}\nsteps: [{name: setup}]\n", false},
		"no destination":                       {"summary: s\nsteps: [{name: setup}]\n", false},
		"no steps":                             {top, false},
		"an empty list of steps":               {top + "steps: []\n", false},
		"a step without a name":                {step("{role: consumer}"), false},
		"a fault without a place":              {step("{name: consumer, halt: {message: order-1001}}"), false},
		"an unknown key":                       {top + "mesages: []\nsteps: [{name: setup}]\n", false},
		"an unknown key in a step":             {step("{name: consumer, halts: {at: before-ack}}"), false},
		"an unknown key of a fault":            {step("{name: consumer, halt: {at: before-ack, times: 2}}"), false},
		"an unknown key of a when":             {step("{name: consumer, after: {step: producer, exit: any, within: 2}}"), false},
		"an unknown checkpoint":                {step("{name: consumer, halt: {at: befor-ack}}"), false},
		"an unknown checkpoint of a condition": {step("{name: consumer, after: {step: producer, checkpoint: befor-ack}}"), false},
		"an unknown word":                      {step("{name: consumer, after: {step: producer, status: recieved}}"), false},
		"an unknown way to halt":               {step("{name: consumer, halt: {at: before-ack, how: nicely}}"), false},
		"an unknown design":                    {step("{name: consumer, consumer: {design: hope}}"), false},
		"an unknown dedupe key":                {step("{name: consumer, consumer: {key: id}}"), false},
		"an unknown role":                      {step("{name: c, role: consumr}"), false},
		"an unknown inspection":                {step("{name: c, inspect: queue}"), false},
		"an unknown capability":                {"requires: [magic]\n" + step("{name: consumer}"), false},
		"an exit of words":                     {step("{name: consumer, after: {step: producer, exit: soon}}"), false},
		"a duration without a unit":            {"timeout: 60\n" + step("{name: consumer}"), false},
		"a duration of words":                  {"timeout: long\n" + step("{name: consumer}"), false},
		"a negative duration":                  {"timeout: -1s\n" + step("{name: consumer}"), false},
		"a word for a list":                    {"summary: s\ndestination: {queue: q}\nmessages: order-1001\nsteps: [{name: setup}]\n", false},
		"a word for a number":                  {step("{name: consumer, consumer: {prefetch: many}}"), false},
		"a negative prefetch":                  {step("{name: consumer, consumer: {prefetch: -1}}"), false},
		"a word for a truth":                   {step("{name: consumer, background: maybe}"), false},
		"a list for a mapping":                 {step("{name: consumer, halt: [before-ack]}"), false},
		"a name of capitals":                   {step("{name: C, role: consumer}"), false},
		"a count below 1":                      {step("{name: consumer, after: {step: producer, status: done, count: -1}}"), false},
		"until nothing":                        {step("{name: consumer, until: {received: 0}}"), false},
		"an arrival below 1":                   {step("{name: consumer, halt: {at: before-ack, arrival: -1}}"), false},
		"failing less than once":               {step("{name: consumer, fail: {at: before-ack, times: -1}}"), false},
	}
	for name, tt := range samples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, decoded := loadText(t, tt.text)
			if decoded == nil {
				decoded = l.Check(newFakeBroker(""))
			}
			if (decoded == nil) != tt.good {
				t.Errorf("the decoder says %v, good is %v", decoded, tt.good)
			}
			if err := validate(t, r, tt.text); (err == nil) != tt.good {
				t.Errorf("the schema says %v, good is %v", err, tt.good)
			}
		})
	}
}

func TestSchemaOfShippedLabs(t *testing.T) {
	t.Parallel()
	r := schemaOf(t, "scenario")
	for _, f := range glob("rabbitmq", "*.yaml") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, r, string(b)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// A real run's files are what their schemas say.
func TestSchemaOfRun(t *testing.T) {
	t.Parallel()
	whole := recorded(t)
	broken := scene{steps: "  - {name: consumer}\n", left: 1, acts: map[string][]string{"consumer": {"raise 9"}},
		hook: refuse}.play(t)
	for _, dir := range []string{whole.load(t).Dir, broken.load(t).Dir} {
		for of, file := range map[string]string{"run": RecordFile, "replay": ReplayFile} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			r := schemaOf(t, of)
			if err := r.Validate(v); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			v.(map[string]any)["surprise"] = 1
			if err := r.Validate(v); err == nil {
				t.Errorf("the schema of %s takes any key", of)
			}
		}
	}
}

func TestSchemaOfSomethingElse(t *testing.T) {
	t.Parallel()
	if _, err := Schema("labs"); err == nil || !strings.Contains(err.Error(), "there is scenario, run and replay") {
		t.Errorf("Schema(labs): %v", err)
	}
}

// Every key of the scenario says what it is for.
func TestSchemaDescribesItsKeys(t *testing.T) {
	t.Parallel()
	b, err := Schema("scenario")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	var bare []string
	var walk func(path string, s *jsonschema.Schema)
	walk = func(path string, s *jsonschema.Schema) {
		if s == nil {
			return
		}
		for name, p := range s.Properties {
			if p.Description == "" {
				bare = append(bare, path+"."+name)
			}
			walk(path+"."+name, p)
		}
		walk(path+"[]", s.Items)
	}
	walk("$", &s)
	slices.Sort(bare)
	if len(bare) > 0 {
		t.Errorf("no description of %q", bare)
	}
}
