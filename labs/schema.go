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

// enumerate adds the words that the checker knows.
func enumerate(s *jsonschema.Schema) {
	var checkpoints []any
	for _, c := range gate.Checkpoints() {
		checkpoints = append(checkpoints, string(c))
	}
	checkpoints = append(checkpoints, "before-offset-commit")
	step := s.Properties["steps"].Items
	consumers := []*jsonschema.Schema{s.Properties["consumer"], step.Properties["consumer"]}
	for _, c := range consumers {
		c.Properties["design"].Enum = words(DesignNames())
		c.Properties["key"].Enum = words([]string{"messageId", "aggregateId"})
	}
	step.Properties["role"].Enum = words(Roles())
	step.Properties["inspect"].Enum = words([]string{"broker"})
	for _, kind := range []string{KindHalt, KindHold, KindFreeze, KindFail} {
		step.Properties[kind].Properties["at"].Enum = checkpoints
	}
	step.Properties[KindHalt].Properties["how"].Enum = words([]string{HowExit, HowKill, HowTerm, HowTermKill})
}

func words(list []string) []any {
	var out []any
	for _, w := range list {
		out = append(out, w)
	}
	return out
}
