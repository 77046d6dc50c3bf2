package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// keptGuard is the pid of the guard of the kept broker.
func (m *mqlab) keptGuard() int {
	m.t.Helper()
	b, err := os.ReadFile(m.dir + "/state/kept/rabbitmq.json")
	var k struct{ PID int }
	if err != nil || json.Unmarshal(b, &k) != nil || k.PID == 0 {
		m.t.Fatalf("the kept broker's record: %v %s", err, b)
	}
	return k.PID
}

// TestKeptBroker is the life of a broker between runs.
func TestKeptBroker(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.up()
	if out, _ := m.must(0, "broker", "up", "rabbitmq"); !strings.Contains(out, "runs already") {
		t.Errorf("up twice: %s", out)
	}
	m.must(exitEnvironment, "broker", "up", "rabbitmq", "--broker", "native")
	if out, _ := m.must(0, "broker", "status"); !strings.Contains(out, "rabbitmq  embedded ") {
		t.Errorf("status: %s", out)
	}
	m.must(0, "broker", "logs", "rabbitmq")
	if out, _ := m.must(0, "run", "rabbitmq/basic"); !strings.Contains(out, "broker: embedded (simulated)") {
		t.Errorf("a run did not adopt it: %s", out)
	}
	m.must(0, "broker", "down", "rabbitmq")
	if out, _ := m.must(0, "broker", "down", "rabbitmq"); !strings.Contains(out, "no rabbitmq is kept running") {
		t.Errorf("down twice: %s", out)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestGuardKilled kills the guard itself: the next mqlab ends its broker.
func TestGuardKilled(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.up()
	if err := syscall.Kill(m.keptGuard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only the broker is left", func() bool { return len(m.ours()) == 1 })
	if out, _ := m.must(0, "doctor"); !strings.Contains(out, "none (mqlab broker up rabbitmq)") {
		t.Errorf("doctor: %s", out)
	}
	eventually(t, "the broker ends", func() bool { return len(m.ours()) == 0 })
	if dirs, err := os.ReadDir(m.dir + "/state/brokers"); err != nil || len(dirs) > 0 {
		t.Errorf("broker folders are left: %v %v", dirs, err)
	}
}

// TestKilledWhileStarting kills `broker up` before the real broker is ready:
// nothing may be left, although it was to be kept.
func TestKilledWhileStarting(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("epmd"); err != nil {
		t.Skip("no epmd on the PATH: install rabbitmq-server, as scripts/test.sh does")
	}
	m := newMqlab(t)
	c, _ := m.start("broker", "up", "rabbitmq", "--broker", "native")
	eventually(t, "the node starts", func() bool {
		for _, cmd := range m.ours() {
			if strings.Contains(cmd, "beam.smp") {
				return true
			}
		}
		return false
	})
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // it was killed
	eventually(t, "everything ends", func() bool { return len(m.ours()) == 0 })
	if out, _ := m.must(0, "broker", "status"); !strings.Contains(out, "not kept running") {
		t.Errorf("status: %s", out)
	}
}

// TestTwoUpAtOnce starts two kept brokers at the same time: one stays, and
// nothing is left of the other.
func TestTwoUpAtOnce(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	var cs []*exec.Cmd
	for range 2 {
		c, _ := m.start("broker", "up", "rabbitmq", "--broker", "embedded")
		cs = append(cs, c)
	}
	for _, c := range cs {
		c.Wait() //nolint:errcheck // either may have given way
	}
	eventually(t, "one guard and one broker run", func() bool { return len(m.ours()) == 2 })
	m.must(0, "broker", "down", "rabbitmq")
	eventually(t, "everything ends", func() bool { return len(m.ours()) == 0 })
}

// TestChoices are the values of --broker.
func TestChoices(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--broker", "rabbitmq=embedded"}, 0, "broker: embedded"},
		{[]string{"--broker", "native", "--broker", "rabbitmq=embedded"}, 0, "broker: embedded"},
		{[]string{"--broker", "nats=embedded"}, exitUsage, "no provider is named"},
		{[]string{"--broker", "kafka://127.0.0.1:1"}, exitUsage, "it is the address of a kafka, and no lab of kafka was named"},
		{[]string{"--broker", "rabbitmq=nonsense"}, exitUsage, `no provider is named "nonsense"`},
	} {
		stdout, stderr, code := m.run(append([]string{"run", "rabbitmq/basic"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: exit %d, want %d with %q\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
	m.env = append(m.env, "MQLAB_BROKER=embedded")
	if out, _ := m.must(0, "run", "rabbitmq/basic"); !strings.Contains(out, "broker: embedded") {
		t.Errorf("MQLAB_BROKER=embedded: %s", out)
	}
}
