package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFrozenConsumer is a takeover: the frozen consumer loses its delivery by
// the broker's patience, finishes late, and its ack is refused.
func TestFrozenConsumer(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.slow()
	m.must(0, "run", "rabbitmq/slow", "--labs", "mine", "--broker", "embedded")
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
		{"another kind of broker", "nats://guest:hush-hush@" + nobody, "no driver", exitUsage},
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

// TestSlowAnswers puts a broker whose management API answers late between: a
// process that ends while the runner waits for an answer is not taken for one
// that keeps its output open.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	admin := m.up()
	b, err := os.ReadFile(m.dir + "/state/kept/rabbitmq.json")
	var k struct{ Address string }
	if err != nil || json.Unmarshal(b, &k) != nil {
		t.Fatalf("the kept broker's record: %v %s", err, b)
	}
	target, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(2500 * time.Millisecond): // longer than an output may stay open
		case <-r.Context().Done():
		}
		forward.ServeHTTP(w, r)
	}))
	defer slow.Close()
	address := strings.Replace(k.Address, url.QueryEscape(admin), url.QueryEscape(slow.URL), 1)
	path := filepath.Join(m.dir, "mine", "labs", "rabbitmq", "quick.yaml")
	m.slow()
	if err := os.WriteFile(path, []byte(quick), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.Replace(path, "/labs/", "/expected/", 1), []byte(quickExpected), 0o644); err != nil {
		t.Fatal(err)
	}
	m.must(0, "run", "rabbitmq/quick", "--labs", "mine", "--broker", address)
}

const quick = `summary: one consumer ends while the runner asks about the other
destination: {queue: orders.quick}
messages: [order-1001, order-1002]
steps:
  - {name: setup}
  - {name: producer}
  - {name: consumer-1, role: consumer, background: true, until: {received: 1}}
  - {name: consumer-2, role: consumer, background: true, until: {received: 1}}
  - {name: inspect-db, after: {step: [consumer-1, consumer-2], exit: 0}}
`

const quickExpected = `business_rows: {last: business_rows, in: [inspect-db], want: 2}
`
