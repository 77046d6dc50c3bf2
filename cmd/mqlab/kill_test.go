package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqlab/brokers"
	"mqlab/compose"
)

// TestKillAtEveryStep kills mqlab with SIGKILL while each step runs: the roles
// end at once, and the next run removes the queue that was left.
func TestKillAtEveryStep(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	kept := len(m.ours())
	m.slow()
	for _, step := range []string{"setup", "producer", "consumer-1", "frozen", "consumer-2", "inspect-db"} {
		c, out := m.start("run", "rabbitmq/slow", "--labs", "mine")
		eventually(t, step+" begins", func() bool {
			if step == "frozen" {
				return m.stopped()
			}
			found, err := filepath.Glob(m.dir + "/runs/rabbitmq/slow/*.partial/" + step + ".out.txt")
			return err == nil && len(found) > 0
		})
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait() //nolint:errcheck // it was killed
		eventually(t, "the roles end after a kill in "+step, func() bool { return len(m.ours()) <= kept })
		if step == "setup" || len(queues(t, admin)) == 0 {
			t.Logf("killed in %s: %s", step, out)
		}
		_, stderr := m.must(0, "run", "rabbitmq/basic")
		if left := queues(t, admin); len(left) != 0 {
			t.Fatalf("killed in %s, after the next run the broker has %v\n%s", step, left, stderr)
		}
		if err := os.RemoveAll(m.dir + "/runs"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInterrupt sends Ctrl-C in mid-run: exit 130, the evidence so far is kept
// and not taken for a run, and nothing is left.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.slow()
	c, out := m.start("run", "rabbitmq/slow", "--labs", "mine", "--broker", "embedded")
	eventually(t, "a consumer is frozen", m.stopped)
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if c.ProcessState.ExitCode() != exitInterrupted {
		t.Fatalf("exit %d\n%s", c.ProcessState.ExitCode(), out)
	}
	if left := m.ours(); len(left) > 0 {
		t.Fatalf("processes are left: %v", left)
	}
	found, err := filepath.Glob(m.dir + "/runs/rabbitmq/slow/*.partial")
	if err != nil || len(found) != 1 {
		t.Fatalf("partial folders: %v %v", found, err)
	}
	m.must(exitInconclusive, "assert", found[0])
	if dirs, err := os.ReadDir(m.dir + "/state/brokers"); err != nil && !errors.Is(err, fs.ErrNotExist) || len(dirs) > 0 {
		t.Fatalf("broker folders are left: %v %v", dirs, err)
	}
}

// TestKilledWithItsBroker kills an mqlab that has a broker of its own: guard
// and broker end, and their folder is gone.
func TestKilledWithItsBroker(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.slow()
	c, _ := m.start("run", "rabbitmq/slow", "--labs", "mine", "--broker", "embedded")
	eventually(t, "a consumer is frozen", m.stopped)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // it was killed
	eventually(t, "everything ends", func() bool { return len(m.ours()) == 0 })
	eventually(t, "the broker's folder is gone", func() bool {
		dirs, err := os.ReadDir(m.dir + "/state/brokers")
		return err == nil && len(dirs) == 0
	})
}

// TestBrokerDies kills the broker's process in mid-run, on each product and
// provider: inconclusive, whoever notices it first, and the evidence is kept.
func TestBrokerDies(t *testing.T) {
	t.Parallel()
	for _, p := range products() {
		for _, provider := range []string{compose.Embedded, compose.Native} {
			t.Run(p.driver.Name()+"/"+provider, func(t *testing.T) { brokerDies(t, p.driver, provider) })
		}
	}
}

const held = `summary: a consumer is held for ever
destination: {%s: orders-held}
messages: [order-1001]
steps:
  - {name: setup}
  - {name: producer}
  - {name: consumer, hold: {at: before-ack, message: order-1001, until: {step: consumer, status: cut}}}
`

func brokerDies(t *testing.T, d brokers.Driver, provider string) {
	t.Helper()
	m := newMqlab(t)
	needs(t, d, provider)
	noun := "topic"
	if d.Name() == "rabbitmq" {
		noun = "queue"
	}
	write(t, filepath.Join(m.dir, "mine", "labs", d.Name(), "held.yaml"), fmt.Sprintf(held, noun))
	write(t, filepath.Join(m.dir, "mine", "expected", d.Name(), "held.yaml"), "exit: {exit: consumer, want: 0}\n")
	c, out := m.start("run", d.Name()+"/held", "--labs", "mine", "--broker", provider)
	within(t, 2*time.Minute, "the consumer stands before its ack", func() bool { // a real broker starts slowly while other tests run
		logs, err := filepath.Glob(m.dir + "/runs/" + d.Name() + "/held/*.partial/consumer.out.txt")
		if err != nil || len(logs) == 0 {
			return false
		}
		b, err := os.ReadFile(logs[0])
		return err == nil && strings.Contains(string(b), "checkpoint=before-ack")
	})
	killed := 0
	for pid, cmd := range m.ours() {
		if strings.Contains(cmd, " embedded "+d.Name()) || strings.Contains(cmd, "beam.smp") || strings.Contains(cmd, "java.args") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if killed != 1 || c.ProcessState.ExitCode() != exitInconclusive || !strings.Contains(out.String(), "in mid-run") {
		t.Fatalf("%d killed, exit %d\n%s", killed, c.ProcessState.ExitCode(), out)
	}
	if left := m.ours(); len(left) > 0 {
		t.Fatalf("processes are left: %v", left)
	}
	if kept, err := filepath.Glob(m.dir + "/runs/" + d.Name() + "/held/*Z-*/run.json"); err != nil || len(kept) != 1 {
		t.Errorf("the evidence: %v %v", kept, err)
	}
}

// needs skips a test where a provider cannot start a product.
func needs(t *testing.T, d brokers.Driver, provider string) {
	t.Helper()
	o, err := newApp(nil, nil).opener()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range o.Diagnose(t.Context(), d.Name()) {
		if row.Provider == provider && !strings.HasPrefix(row.State, "ready") {
			t.Skip(row.State)
		}
	}
}

// TestReaderGone closes standard output in the middle of several runs: they go
// on to their end, nothing is left, and the exit code says that the report was
// lost.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := m.command(t.Context(), "run", "rabbitmq/*", "--parallel", "4")
	var errs bytes.Buffer
	c.Stdout, c.Stderr = write, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write.Close(), read.Close()); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if c.ProcessState.ExitCode() != exitEnvironment || !strings.Contains(errs.String(), "write to standard output") {
		t.Errorf("exit %d\n%s", c.ProcessState.ExitCode(), &errs)
	}
	if left := queues(t, admin); len(left) != 0 {
		t.Errorf("the broker has %v", left)
	}
}

// TestHangUp closes the terminal in mid-run.
func TestHangUp(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	m.slow()
	c, out := m.start("run", "rabbitmq/slow", "--labs", "mine")
	eventually(t, "a consumer is frozen", m.stopped)
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if c.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("exit %d\n%s", c.ProcessState.ExitCode(), out)
	}
	if left := queues(t, admin); len(left) != 0 {
		t.Errorf("the broker has %v", left)
	}
}
