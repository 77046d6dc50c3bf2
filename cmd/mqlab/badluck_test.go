package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
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

// TestFrozenConsumer is a takeover: the frozen consumer loses its delivery by
// the broker's patience, finishes late, and its ack is refused.
func TestFrozenConsumer(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.slow()
	m.must(0, "run", "rabbitmq/slow", "--labs", "mine", "--broker", "embedded")
}

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

// TestBrokerDies kills the broker's process in mid-run: inconclusive, and the
// evidence is kept.
func TestBrokerDies(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.slow()
	c, out := m.start("run", "rabbitmq/slow", "--labs", "mine", "--broker", "embedded")
	eventually(t, "a consumer is frozen", m.stopped)
	for pid, cmd := range m.ours() {
		if strings.Contains(cmd, " embedded rabbitmq") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if c.ProcessState.ExitCode() != exitInconclusive || !strings.Contains(out.String(), "the broker died in mid-run") {
		t.Fatalf("exit %d\n%s", c.ProcessState.ExitCode(), out)
	}
	if left := m.ours(); len(left) > 0 {
		t.Fatalf("processes are left: %v", left)
	}
}

// TestUnreachable are the addresses that cannot work: environment errors that
// never show a password.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	b, err := os.ReadFile(m.dir + "/state/kept/rabbitmq.json")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Address string }
	if err := json.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, want string
		code            int
	}{
		{"nobody listens", "amqp://guest:hush-hush@" + nobody + "/", "connection refused", exitEnvironment},
		{"wrong password", strings.Replace(k.Address, "guest:guest", "guest:hush-hush", 1), "403", exitEnvironment},
		{"no such vhost", strings.Replace(k.Address, "/?", "/hidden?", 1), "vhost", exitEnvironment},
		{"no management", strings.Replace(k.Address, admin[len("http://127.0.0.1:"):], "1", 1), "management API", exitEnvironment},
		{"another kind of broker", "kafka://guest:hush-hush@" + nobody, "no driver", exitUsage},
		{"not a URL", "amqp://guest:hush-hush@[::", "not a URL", exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := m.run("run", "rabbitmq/basic", "--broker", c.url)
			all := stdout + stderr
			if code != c.code || !strings.Contains(all, c.want) {
				t.Errorf("exit %d, want %d with %q\n%s", code, c.code, c.want, all)
			}
			if strings.Contains(all, "hush-hush") {
				t.Errorf("the password was printed:\n%s", all)
			}
		})
	}
}

// TestNativeCannotStart are a missing server and one that dies at once.
func TestNativeCannotStart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("epmd"); err != nil {
		t.Skip("no epmd on the PATH: install rabbitmq-server, as scripts/test.sh does")
	}
	m := newMqlab(t)
	m.env = append(m.env, "RABBITMQ_HOME="+m.dir)
	if _, stderr := m.must(exitEnvironment, "run", "rabbitmq/basic", "--broker", "native"); !strings.Contains(stderr, "RABBITMQ_HOME is set, but there is no") {
		t.Error(stderr)
	}
	if err := os.MkdirAll(m.dir+"/sbin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.dir+"/sbin/rabbitmq-server", []byte("#!/bin/sh\necho no memory for you\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, stderr := m.must(exitEnvironment, "run", "rabbitmq/basic", "--broker", "native"); !strings.Contains(stderr, "ended while it was starting; its last lines: ") || !strings.Contains(stderr, "no memory for you") {
		t.Error(stderr)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestNoPlaceToWrite are a folder that nobody may write to (looked at under
// another uid, since root ignores mode bits) and a full disk.
func TestNoPlaceToWrite(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	if _, stderr := m.must(exitEnvironment, "run", "rabbitmq/basic", "--broker", "embedded", "--runs", "/proc/runs"); !strings.Contains(stderr, "mqlab: rabbitmq/basic: make the run folder: ") {
		t.Error(stderr)
	}
	if os.Getuid() != 0 {
		t.Skip("another uid and a small file system need root")
	}
	for _, d := range []string{m.dir, m.dir + "/.."} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.dir+"/mqlab", self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.dir+"/locked", 0o755); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, d := range []string{home, home + "/.."} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), m.dir+"/mqlab", "run", "rabbitmq/basic", "--broker", "embedded", "--runs", m.dir+"/locked")
	c.Env, c.Dir = []string{envMain + "=1", "MQLAB_STATE=" + home + "/state"}, home
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != exitEnvironment || !strings.Contains(string(out), "permission denied") {
		t.Errorf("read-only runs folder: %v, exit %d\n%s", err, c.ProcessState.ExitCode(), out)
	}
	full := m.dir + "/full"
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer syscall.Unmount(full, 0) //nolint:errcheck // the folder is temporary
	stdout, stderr := m.must(exitEnvironment, "run", "rabbitmq/basic", "--broker", "embedded", "--runs", full)
	if !strings.Contains(stdout+stderr, "no space left on device") {
		t.Errorf("full disk:\n%s%s", stdout, stderr)
	}
}

// TestTwoAtOnce runs two mqlabs on one kept broker at the same time.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	var cs []*exec.Cmd
	var outs []*bytes.Buffer
	for range 2 {
		c, out := m.start("run", "rabbitmq/*", "--parallel", "4")
		cs, outs = append(cs, c), append(outs, out)
	}
	for i, c := range cs {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, outs[i])
		}
	}
	if left := queues(t, admin); len(left) != 0 {
		t.Errorf("the broker has %v", left)
	}
}
