package assert

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mqlab/labs"
)

// Schema is the JSON Schema of an expected file. The keys and their meanings
// come from the struct that the decoder fills, and which key goes with which
// measure from the table of measures. What a schema cannot know (the steps and
// messages of the twin scenario, the broker's figures) is left to Read.
func Schema() ([]byte, error) {
	fields, err := jsonschema.For[Assertion](&jsonschema.ForOptions{TypeSchemas: fieldSchemas()})
	if err != nil {
		return nil, fmt.Errorf("derive the schema of an expected file: %w", err)
	}
	for _, s := range fields.Properties {
		notNull(s)
	}
	one := &jsonschema.Schema{}
	for _, m := range measures() {
		one.OneOf = append(one.OneOf, m.schema(fields.Properties))
	}
	b, err := json.MarshalIndent(&jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "mqlab expected file",
		Description:   "what a lab must show: assertions by name, in the order of the report",
		Type:          "object",
		MinProperties: jsonschema.Ptr(1), PropertyNames: &jsonschema.Schema{Pattern: namePattern},
		AdditionalProperties: one,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema of an expected file: %w", err)
	}
	return append(b, '\n'), nil
}

// notNull takes back what a pointer in the struct adds: no key may be null.
func notNull(s *jsonschema.Schema) {
	s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
	switch len(s.Types) {
	case 0:
		s.Types = nil
	case 1:
		s.Type, s.Types = s.Types[0], nil
	}
}

// schema is that of an assertion with this measure.
func (m measure) schema(fields map[string]*jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Title: m.name, Type: "object", Properties: map[string]*jsonschema.Schema{},
		Required: append([]string{m.name, "want"}, m.needs...), AdditionalProperties: never()}
	for _, key := range append([]string{m.name, "why"}, m.takes...) {
		s.Properties[key] = fields[key]
	}
	want := *m.want.schema()
	want.Description = fields["want"].Description
	s.Properties["want"] = &want
	switch m.name {
	case "repeats":
		s.Properties[m.name] = oneWord("messageId", fields[m.name].Description)
	case "account":
		s.Properties[m.name] = oneWord("keys", fields[m.name].Description)
	case "distinct", "last", "first", "sequence":
		s.Properties[m.name] = lineKeySchema(fields[m.name].Description)
	case "rows":
		rows := *fields[m.name]
		rows.Properties = maps.Clone(rows.Properties)
		rows.Properties["status"] = never()
		s.Properties[m.name] = &rows
	}
	if per, ok := s.Properties["per"]; ok {
		s.Properties["per"] = lineKeySchema(per.Description)
	}
	return s
}

// fieldSchemas are those of the types whose YAML form is not their Go form.
func fieldSchemas() map[reflect.Type]*jsonschema.Schema {
	pairs := &jsonschema.Schema{Type: "object", MinProperties: jsonschema.Ptr(1),
		PropertyNames: &jsonschema.Schema{Enum: anys(labs.Keys())}, AdditionalProperties: scalarSchema(),
		Properties: map[string]*jsonschema.Schema{"status": {Enum: anys(valuesOf("status"))},
			// YAML writes true and false without quotes.
			"redelivered": {Enum: append(anys(valuesOf("redelivered")), true, false)}}}
	text := textSchema()
	moment := object([]string{"step", "status"}, map[string]*jsonschema.Schema{
		"step": textSchema(), "status": {Enum: anys(labs.WordNames())}, "message": textSchema()})
	at := object([]string{"step"}, map[string]*jsonschema.Schema{
		"step": textSchema(), "checkpoint": textSchema(), "message": textSchema()})
	at.DependentRequired = map[string][]string{"message": {"checkpoint"}}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Pairs]():    pairs,
		reflect.TypeFor[string]():   text,
		reflect.TypeFor[[]string](): {Type: "array", Items: textSchema(), MinItems: jsonschema.Ptr(1), UniqueItems: true},
		reflect.TypeFor[Want]():     {},
		reflect.TypeFor[At]():       {AnyOf: []*jsonschema.Schema{{Enum: []any{"end"}}, at}},
		reflect.TypeFor[Moment]():   moment,
	}
}

// schema is that of what may be wanted of a value of this shape.
func (s shape) schema() *jsonschema.Schema {
	names := &jsonschema.Schema{Type: "array", Items: textSchema(), MinItems: jsonschema.Ptr(1), UniqueItems: true}
	value := s.valueSchema()
	switch s {
	case aBalance:
		account := object(nil, map[string]*jsonschema.Schema{"lost": names, "doubled": names, "phantom": names})
		account.MinProperties = jsonschema.Ptr(1)
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Enum: []any{"even"}}, account}}
	case aList:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{value, object([]string{"not"}, map[string]*jsonschema.Schema{"not": value})}}
	}
	low, high := &jsonschema.Schema{Type: "integer"}, &jsonschema.Schema{Type: "integer"}
	switch s {
	case aCount:
		low.Minimum, high.Minimum = jsonschema.Ptr(1.0), jsonschema.Ptr(0.0)
	case anExit:
		low.Minimum, high.Minimum, high.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(0.0), jsonschema.Ptr(254.0)
	}
	// A single bound that every value keeps claims nothing.
	atLeast, atMost, not := *low, *high, value
	atMost.ExclusiveMaximum = jsonschema.Ptr(float64(beyond))
	if s == aFigure {
		atLeast.Minimum = jsonschema.Ptr(1.0)
		not = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: jsonschema.Ptr(0.0)}, {Enum: []any{"none"}}}}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{value,
		object([]string{"min", "max"}, map[string]*jsonschema.Schema{"min": low, "max": high}),
		object([]string{"min"}, map[string]*jsonschema.Schema{"min": &atLeast}),
		object([]string{"max"}, map[string]*jsonschema.Schema{"max": &atMost}),
		object([]string{"not"}, map[string]*jsonschema.Schema{"not": not})}}
}

func (s shape) valueSchema() *jsonschema.Schema {
	number := &jsonschema.Schema{Type: "integer"}
	switch s {
	case aWord:
		return scalarSchema()
	case aList:
		return &jsonschema.Schema{Type: "array", Items: scalarSchema()}
	case aFigure:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{number, {Enum: []any{"none"}}}}
	case anExit:
		number.Maximum = jsonschema.Ptr(255.0)
		fallthrough
	case aCount:
		number.Minimum = jsonschema.Ptr(0.0)
	}
	return number
}

func object(required []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Required: required, Properties: properties, AdditionalProperties: never(),
		PropertyOrder: slices.Sorted(maps.Keys(properties))}
}

func textSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}
}

func scalarSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: jsonschema.Ptr(1)}
}

func lineKeySchema(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Enum: anys(labs.Keys()), Description: description}
}

func oneWord(word, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Enum: []any{word}, Description: description}
}

func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func anys(words []string) []any {
	var out []any
	for _, w := range words {
		out = append(out, w)
	}
	return out
}
