package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqlab/brokers"
)

// ours lists the living processes whose environment holds this test's state
// folder: everything that mqlab has started and that is not gone.
func (m *mqlab) ours() map[int]string {
	m.t.Helper()
	mark := []byte("MQLAB_STATE=" + m.dir + "/state\x00")
	found := map[int]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		env, err := os.ReadFile(d + "/environ")
		cmd, cmdErr := os.ReadFile(d + "/cmdline")
		broker := bytes.Contains(cmd, []byte(m.dir+"/state"))
		if pid != os.Getpid() && err == nil && cmdErr == nil && (bytes.Contains(env, mark) || broker) && len(cmd) > 0 {
			found[pid] = strings.ReplaceAll(string(cmd), "\x00", " ")
		}
	}
	return found
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 20*time.Second, what, ok)
}

func within(t *testing.T, bound time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}

// start starts mqlab and leaves it running.
func (m *mqlab) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	m.t.Helper()
	c := m.command(m.t.Context(), args...)
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	return c, out
}

// up keeps an embedded broker and returns its management address.
func (m *mqlab) up() (admin string) {
	m.t.Helper()
	m.must(0, "broker", "up", "rabbitmq", "--broker", "embedded")
	m.t.Cleanup(func() {
		m.t.Helper()
		c := m.command(context.Background(), "broker", "down", "rabbitmq")
		if out, err := c.CombinedOutput(); err != nil {
			m.t.Errorf("broker down: %v\n%s", err, out)
		}
		if left := m.ours(); len(left) > 0 {
			m.t.Errorf("processes are left: %v", left)
		}
	})
	b, err := os.ReadFile(m.dir + "/state/kept/rabbitmq.json")
	var k struct{ Address string }
	if err != nil || json.Unmarshal(b, &k) != nil {
		m.t.Fatalf("the kept broker's record: %v %s", err, b)
	}
	a, err := brokers.ParseAddress(k.Address)
	if err != nil {
		m.t.Fatal(err)
	}
	return a.URL().Query().Get("management")
}

// queues lists the names of the queues on a broker.
func queues(t *testing.T, admin string) []string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin+"/api/queues/%2F?disable_stats=true&enable_queue_totals=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("guest", "guest")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is decoded below, which says what is wrong
	var qs []struct{ Name string }
	if err := json.NewDecoder(res.Body).Decode(&qs); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range qs {
		names = append(names, q.Name)
	}
	return names
}

// slow writes a lab of the test's own into mine/: one that can be caught in
// the middle.
func (m *mqlab) slow() {
	m.t.Helper()
	for dir, text := range map[string]string{"labs": frozen, "expected": frozenExpected} {
		path := filepath.Join(m.dir, "mine", dir, "rabbitmq", "slow.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
}

const frozen = `summary: a consumer is frozen until another one is done
destination: {queue: orders.slow}
messages: [order-1001, order-1002, order-1003]
consumer: {design: transactional-dedupe, heartbeat: 1s}
steps:
  - {name: setup}
  - {name: producer}
  - {name: consumer-1, role: consumer, background: true, freeze: {at: after-delivery, message: order-1001, until: {step: consumer-2, status: done}}}
  - {name: consumer-2, role: consumer, after: {step: consumer-1, checkpoint: after-delivery}}
  - {name: inspect-db, after: {step: consumer-1, exit: any}}
`

const frozenExpected = `received:  {count: {status: received}, in: [consumer-1, consumer-2], want: 4}
repeats:   {repeats: messageId, in: [consumer-1, consumer-2], want: 1}
lateSkip:  {count: {status: duplicate_skipped}, in: [consumer-1], want: 1}
lateExit:  {exit: consumer-1, want: 75}
orders:    {last: business_rows, in: [inspect-db], want: 3}
`

// stopped reports whether one of our processes is stopped by a signal.
func (m *mqlab) stopped() bool {
	for pid := range m.ours() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(b), ") T ") {
			return true
		}
	}
	return false
}
