package role

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqlab/gate"
	"mqlab/labs"
)

// article reads the lines that the source article prints, by status word.
func article(t *testing.T) map[string]labs.Line {
	t.Helper()
	lines := map[string]labs.Line{}
	files, err := filepath.Glob("../../../assert/testdata/article/*.out.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("the article's lines are not there: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(b), "\n") {
			if l, own, err := labs.ParseLine(text); own && err == nil {
				lines[l.Prefix+" "+l.Get("status")] = l
			}
		}
	}
	return lines
}

func keys(l labs.Line) []string {
	var ks []string
	for _, p := range l.Pairs {
		ks = append(ks, p.Key)
	}
	return ks
}

// Our evidence reads like the article's: the same keys in the same order, the
// same values where they are not of the moment.
func TestLinesAreTheArticles(t *testing.T) {
	want := article(t)
	st := newStage(t, strings.Replace(scenario(""), ", poison-message", "", 1))
	got := map[string]labs.Line{}
	take := func() {
		for _, l := range st.lines("") {
			got[l.Prefix+" "+l.Get("status")] = l
		}
		st.out.b.Reset()
	}
	if code := st.run("producer"); code != 0 {
		t.Fatal(st.errs)
	}
	take()
	st.broker.queue = nil
	st.deliver("order-1001", "order-1002", "again order-1003")
	st.decide = func(a gate.Arrival) gate.Decision {
		if a.Checkpoint == gate.BeforeAck && a.Key == "order-1003" {
			return gate.Halt
		}
		return gate.Pass
	}
	st.run("consumer")
	st.deliver("again order-1003")
	st.run("consumer")
	take()
	if code := st.run("inspect-db"); code != 0 {
		t.Fatal(st.errs)
	}
	take()
	for _, name := range []string{"producer confirmed", "producer done", "consumer received", "consumer business_committed", "consumer duplicate_skipped",
		"consumer crash_injected", "consumer done", "replay-gate waiting", "replay-gate released", "inspect snapshot"} {
		w, ok := want[name]
		g, ours := got[name]
		if !ok || !ours {
			t.Errorf("no line %q: in the article %v, ours %v", name, ok, ours)
			continue
		}
		if !slices.Equal(keys(g), keys(w)) {
			t.Errorf("%s has the keys\n%v, the article\n%v", name, keys(g), keys(w))
		}
		for _, key := range []string{"level", "service", "product", "lab", "eventType", "schemaVersion", "destination", "queue", "routingKey", "consumer", "attempt"} {
			if g.Get(key) != w.Get(key) {
				t.Errorf("%s: %s is %q, in the article %q", name, key, g.Get(key), w.Get(key))
			}
		}
		if !strings.HasSuffix(g.Get("timestamp"), "Z") || len(g.Get("timestamp")) != len(w.Get("timestamp")) {
			t.Errorf("%s: timestamp %q, in the article %q", name, g.Get("timestamp"), w.Get("timestamp"))
		}
	}
}
