package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"mqlab/brokers"
	"mqlab/compose"
)

// moments is how many moments of a run TestKillAtMoments tries; the variable
// MQLAB_TEST_MOMENTS says another number.
const moments = 3

// TestKillAtMoments kills mqlab with SIGKILL at several moments of a run, on
// each product and provider: every role ends at once, and the next run removes
// from the broker what was left there.
func TestKillAtMoments(t *testing.T) {
	t.Parallel()
	many := moments
	if text := os.Getenv("MQLAB_TEST_MOMENTS"); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range products() {
		for _, provider := range []string{compose.Embedded, compose.Native} {
			t.Run(p.driver.Name()+"/"+provider, func(t *testing.T) { killAtMoments(t, p.driver, provider, time.Duration(many)) })
		}
	}
}

func killAtMoments(t *testing.T, d brokers.Driver, provider string, many time.Duration) {
	m := newMqlab(t)
	lab := d.Name() + "/consumer-crash"
	needs(t, d, provider)
	m.must(0, "broker", "up", d.Name(), "--broker", provider)
	kept := len(m.ours())
	start := time.Now()
	m.must(0, "run", lab)
	whole := time.Since(start)
	for n := range many {
		c, _ := m.start("run", lab)
		time.Sleep(whole * (n + 1) / (many + 1)) // the moment itself; whatever runs then
		c.Process.Kill()                         //nolint:errcheck // it may have ended
		c.Wait()                                 //nolint:errcheck // it was killed
		eventually(t, "the roles end", func() bool { return len(m.ours()) <= kept })
		left := m.left(d)
		m.must(0, "run", d.Name()+"/basic")
		for at, dests := range left {
			for _, dest := range dests {
				i, err := d.OpenInspector(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				_, err = i.State(t.Context(), dest)
				if !errors.Is(err, brokers.ErrNotFound) {
					t.Errorf("moment %d: %s of a killed run is still there: %v", n, dest.Name(), err)
				}
				if err := i.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if files, err := filepath.Glob(m.dir + "/state/runs/*"); err != nil || len(files) > 0 {
		t.Errorf("records are left: %v %v", files, err)
	}
	m.must(0, "broker", "down", d.Name())
	eventually(t, "everything ends", func() bool { return len(m.ours()) == 0 })
}

// left is what killed runs have left on the kept broker, by its address.
func (m *mqlab) left(d brokers.Driver) map[brokers.Address][]brokers.Destination {
	m.t.Helper()
	b, err := os.ReadFile(m.dir + "/state/kept/" + d.Name() + ".json")
	if err != nil {
		m.t.Fatal(err)
	}
	var k struct{ Address string }
	if err := json.Unmarshal(b, &k); err != nil {
		m.t.Fatal(err)
	}
	at, err := brokers.ParseAddress(k.Address)
	if err != nil {
		m.t.Fatal(err)
	}
	files, err := filepath.Glob(m.dir + "/state/runs/*.json")
	if err != nil {
		m.t.Fatal(err)
	}
	found := map[brokers.Address][]brokers.Destination{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			m.t.Fatal(err)
		}
		var rec struct {
			Run, Group  string
			Destination brokers.Destination
		}
		if err := json.Unmarshal(b, &rec); err != nil {
			m.t.Fatal(err)
		}
		rec.Destination.Suffix, rec.Destination.Group = rec.Run, rec.Group
		found[at] = append(found[at], rec.Destination)
	}
	return found
}
