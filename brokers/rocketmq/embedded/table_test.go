package embedded

import (
	"maps"
	"slices"
	"testing"
)

// TestTable holds the table to what a client sees: every request of it is served
// or refused with the protocol's own code, and so is one that nobody knows.
func TestTable(t *testing.T) {
	c := connect(t, Options{})
	served := 0
	for _, code := range append(slices.Sorted(maps.Keys(requests())), 9999, 200050) {
		r := requests()[code]
		a := c.call(&command{Code: code, body: []byte("{}")})
		if refused := a.Code == codeNotSupported; refused != (r.serve == nil) {
			t.Errorf("request %d %s: code %d, served here: %t", code, r.name, a.Code, r.serve != nil)
		}
		if r.serve != nil {
			served++
		}
	}
	if served < 25 {
		t.Errorf("%d requests are served", served)
	}
}
