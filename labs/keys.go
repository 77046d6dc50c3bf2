package labs

import (
	"iter"
	"reflect"
	"strings"
)

// presentKeys yields the YAML keys of a struct whose values are not zero.
func presentKeys(v any) iter.Seq[string] {
	return func(yield func(string) bool) {
		r := reflect.ValueOf(v)
		for i := range r.NumField() {
			name, _, _ := strings.Cut(r.Type().Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !r.Field(i).IsZero() && !yield(name) {
				return
			}
		}
	}
}
