package main

import (
	"os"
	"strings"
	"testing"
)

// ownLabs are labs that only containers can run: all four brokers taken off the
// network while a delivery is in hand, and every act there is on one.
const ownLabs = "testdata/containers"

func (m *mqlab) copyLabs() {
	m.t.Helper()
	if err := os.CopyFS(m.dir+"/mine", os.DirFS(ownLabs)); err != nil {
		m.t.Fatal(err)
	}
}

func TestActsOnContainers(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	m.copyLabs()
	out, stderr := m.must(0, "run", "*/*", "--labs", "mine", "--broker", "container")
	if !strings.Contains(out, "5 held, 0 violated, 0 inconclusive, 0 without a verdict, 0 skipped") {
		t.Errorf("%s%s", out, stderr)
	}
	m.nothingLeft()
}

// TestActsNeedContainers: elsewhere they are skipped, and the reason is said.
func TestActsNeedContainers(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.copyLabs()
	out, _ := m.must(exitInconclusive, "run", "rabbitmq/offline", "--labs", "mine", "--broker", "embedded")
	if !strings.Contains(out, "SKIP rabbitmq/offline: it requires network, which embedded (simulated) lacks") {
		t.Error(out)
	}
}
