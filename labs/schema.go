package labs

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"mqlab/brokers"
	"mqlab/gate"
)

// Schema is the JSON Schema of a file: scenario, run (run.json) or replay
// (replay.json). It comes from the structs that the files are read into.
func Schema(of string) ([]byte, error) {
	text := &jsonschema.Schema{Type: "string"}
	opts := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():        {Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
		reflect.TypeFor[Names]():           {OneOf: []*jsonschema.Schema{text, {Type: "array", Items: text}}},
		reflect.TypeFor[brokers.Address](): text,
	}}
	var s *jsonschema.Schema
	var err error
	switch of {
	case "scenario":
		if s, err = jsonschema.For[Scenario](opts); err == nil {
			enumerate(s)
		}
	case "run":
		s, err = jsonschema.For[Record](opts)
	case "replay":
		s, err = jsonschema.For[Replay](opts)
	default:
		return nil, fmt.Errorf("no schema of %q; there is scenario, run and replay", of)
	}
	if err != nil {
		return nil, fmt.Errorf("derive the schema of %s: %w", of, err)
	}
	return json.MarshalIndent(s, "", "  ")
}

// enumerate adds the words that the checker knows, and the bounds of numbers
// and names.
func enumerate(s *jsonschema.Schema) {
	var checkpoints, capabilities []any
	for _, c := range gate.Checkpoints() {
		checkpoints = append(checkpoints, string(c))
	}
	checkpoints = append(checkpoints, "before-offset-commit")
	for _, c := range brokers.Capabilities() {
		capabilities = append(capabilities, string(c))
	}
	s.Properties["requires"].Items.Enum = capabilities
	steps := s.Properties["steps"]
	steps.MinItems, steps.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(maxSteps)
	step := steps.Items
	for _, c := range []*jsonschema.Schema{s.Properties["consumer"], step.Properties["consumer"]} {
		c.Properties["design"].Enum = words(DesignNames())
		c.Properties["key"].Enum = words([]string{"messageId", "aggregateId"})
		c.Properties["prefetch"].Minimum = jsonschema.Ptr(0.0)
		named(c.Properties["store"])
		named(c.Properties["name"])
	}
	named(step.Properties["name"])
	step.Properties["role"].Enum = words(Roles())
	step.Properties["inspect"].Enum = words([]string{"broker"})
	step.Properties["until"].Properties["received"].Minimum = jsonschema.Ptr(1.0)
	condition(step.Properties["after"], checkpoints)
	for _, kind := range []string{KindHalt, KindHold, KindFreeze, KindFail} {
		fault := step.Properties[kind].Properties
		fault["at"].Enum = checkpoints
		fault["arrival"].Minimum = jsonschema.Ptr(0.0)
		for _, name := range []string{"until", "when"} {
			if c := fault[name]; c != nil {
				condition(c, checkpoints)
			}
		}
	}
	step.Properties[KindHalt].Properties["how"].Enum = words([]string{HowExit, HowKill, HowTerm, HowTermKill})
	step.Properties[KindFail].Properties["times"].Minimum = jsonschema.Ptr(0.0)
}

func condition(c *jsonschema.Schema, checkpoints []any) {
	c.Properties["checkpoint"].Enum = checkpoints
	c.Properties["status"].Enum = words(WordNames())
	c.Properties["count"].Minimum = jsonschema.Ptr(0.0)
	exit := c.Properties["exit"]
	exit.Type, exit.Types = "", []string{"integer", "string"} // a code needs no quotes
	exit.Pattern = `^(any|[+-]?[0-9]+)$`
}

func named(s *jsonschema.Schema) { s.Pattern, s.MaxLength = kebab.String(), jsonschema.Ptr(maxName) }

func words(list []string) []any {
	var out []any
	for _, w := range list {
		out = append(out, w)
	}
	return out
}
