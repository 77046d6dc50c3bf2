package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envContainers says that there is an engine with the images of all brokers.
const envContainers = "MQLAB_TEST_CONTAINERS"

// withEngine skips a test where no engine was prepared.
func withEngine(t *testing.T) *mqlab {
	t.Helper()
	if os.Getenv(envContainers) == "" {
		t.Skipf("%s is not set: scripts/test.sh starts an engine and builds its images", envContainers)
	}
	return newMqlab(t)
}

// with is the same mqlab with more environment.
func (m *mqlab) with(t *testing.T, env ...string) *mqlab {
	c := *m
	c.t, c.env = t, append(m.env[:len(m.env):len(m.env)], env...)
	return &c
}

// engineLists asks the engine, with a client that is not ours, for everything
// of this test: containers, networks, volumes.
func (m *mqlab) engineLists() string {
	m.t.Helper()
	var all strings.Builder
	for _, what := range [][]string{{"ps", "-a", "--format", "{{.ID}} {{.Image}} {{.Status}}"}, {"network", "ls", "-q"}, {"volume", "ls", "-q"}} {
		c := exec.CommandContext(context.Background(), "docker", append(what, "--filter", "label=mqlab.state="+m.dir+"/state")...)
		out, err := c.CombinedOutput()
		if err != nil {
			m.t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
		all.Write(out)
	}
	return all.String()
}

func (m *mqlab) nothingLeft() {
	m.t.Helper()
	if left := m.engineLists(); left != "" {
		m.t.Errorf("left on the engine:\n%s", left)
	}
}

// listenOn makes a socket in the place of an engine's.
func listenOn(t *testing.T) (l net.Listener, host string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // it goes with the process
	return l, "unix://" + path
}

// TestNoEngine are the ways in which there is no engine to use: each time the
// error says what helps, in a bounded time, and auto takes another provider.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	_, silent := listenOn(t) // accepts and says nothing
	for _, c := range []struct {
		name, host, want string
		bound            time.Duration
	}{
		{"none", "unix://" + m.dir + "/none", "no container engine answers at unix://" + m.dir + "/none (start one, or set DOCKER_HOST)", 5 * time.Second},
		{"silent", silent, "no container engine answered in time at unix://", 15 * time.Second},
		{"on another machine", "tcp://192.0.2.1:2375", "is on another machine, where brokers could not be reached", 5 * time.Second},
		{"over ssh", "ssh://someone@192.0.2.1", "is on another machine", 5 * time.Second},
		{"too old", (&fakeEngine{api: "1.24"}).serve(t), "is too old: its API is 1.24, mqlab needs 1.40 at least (Docker 19.03)", 5 * time.Second},
		{"no address", "tcp://%zz", "DOCKER_HOST is not an address", 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := m.with(t, "DOCKER_HOST="+c.host)
			start := time.Now()
			if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, c.want) {
				t.Errorf("want %q:\n%s", c.want, stderr)
			}
			m.must(exitEnvironment, "broker", "up", "kafka", "--broker", "container")
			if took := time.Since(start); took > c.bound {
				t.Errorf("it took %v", took)
			}
			if out, _ := m.must(0, "doctor"); !strings.Contains(out, c.want) {
				t.Errorf("doctor: %s", out)
			}
			// Without Java there is only the stand-in to fall back to.
			m = m.with(t, "PATH="+t.TempDir(), "JAVA_HOME=")
			if out, stderr := m.must(0, "run", "kafka/basic"); !strings.Contains(out, "embedded (simulated)") || !strings.Contains(stderr, "container is not available: ") {
				t.Errorf("auto: %s%s", out, stderr)
			}
		})
	}
}

// TestEngineNotForUs runs as a user who may not use the socket; root ignores
// its mode.
func TestEngineNotForUs(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	if os.Getuid() != 0 {
		t.Skip("to become another user needs root")
	}
	dir, err := os.MkdirTemp("", "mqlab-nobody-") //nolint:usetesting // t.TempDir is below a folder that is the owner's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // it is below the temporary folder
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program, socket := filepath.Join(dir, "mqlab"), filepath.Join(dir, "s")
	if out, err := exec.CommandContext(t.Context(), "cp", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it goes with the process
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "run", "kafka/basic", "--broker", "container")
	c.Dir = dir
	c.Env = append(m.env, "DOCKER_HOST=unix://"+socket, "HOME="+dir, "MQLAB_STATE="+dir+"/state")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err == nil || c.ProcessState.ExitCode() != exitEnvironment || !strings.Contains(string(out), "may not be used by this user (add it to the group of the socket") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestImageMissing names images that the engine has not got and no registry
// gives: what helps is said, and auto does not pull.
func TestImageMissing(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	const nowhere = "127.0.0.1:1/mqlab/"
	image := nowhere + "none:1"
	k := m.with(t, "MQLAB_IMAGE_KAFKA="+image)
	if _, stderr := k.must(exitEnvironment, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, helpsPull) || !strings.Contains(stderr, "pulling the image "+image) {
		t.Errorf("want %q:\n%s", helpsPull, stderr)
	}
	if _, stderr := k.must(0, "run", "kafka/basic"); strings.Contains(stderr, "pulling") || !strings.Contains(stderr, "the image is not there: "+image) {
		t.Errorf("auto: %s", stderr)
	}
	if _, stderr := m.with(t, "MQLAB_IMAGE_RYUK="+nowhere+"none:1").must(exitEnvironment, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, "MQLAB_IMAGE_RYUK names it") {
		t.Error(stderr)
	}
	mirror := m.with(t, "TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX=127.0.0.1:1/mirror", "MQLAB_IMAGE_KAFKA=apache/kafka:none")
	if _, stderr := mirror.must(exitEnvironment, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, "127.0.0.1:1/mirror/apache/kafka:none") {
		t.Error(stderr)
	}
	m.nothingLeft()
}

// TestContainerEndsAtOnce starts an image without what the broker needs: its
// last lines are the reason.
func TestContainerEndsAtOnce(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	m.env = append(m.env, "MQLAB_IMAGE_KAFKA="+os.Getenv("MQLAB_IMAGE_RABBITMQ"))
	_, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "container")
	if !strings.Contains(stderr, "the container ended while the broker was starting; its last lines: ") || !strings.Contains(stderr, "java: not found") {
		t.Error(stderr)
	}
	m.nothingLeft()
}

// TestInsideContainer is told where the engine's ports are found.
func TestInsideContainer(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	out, err := exec.CommandContext(t.Context(), "docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}").Output()
	gateway := strings.TrimSpace(string(out))
	if err != nil || net.ParseIP(gateway) == nil {
		t.Skipf("the bridge has no gateway: %v %q", err, gateway)
	}
	m.with(t, "TESTCONTAINERS_HOST_OVERRIDE="+gateway).must(0, "run", "kafka/basic", "--broker", "container")
	_, stderr := m.with(t, "TESTCONTAINERS_HOST_OVERRIDE=somewhere").must(exitEnvironment, "run", "kafka/basic", "--broker", "container")
	if !strings.Contains(stderr, "want the IPv4 address") {
		t.Error(stderr)
	}
	m.nothingLeft()
}

func kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // it was killed
}

// TestNoReaper disables the reaper: that is said, mqlab still removes what it
// made, and what a killed one has left goes with the next run.
func TestNoReaper(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	m.env = append(m.env, "TESTCONTAINERS_RYUK_DISABLED=true")
	if _, stderr := m.must(0, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, "the reaper is disabled (TESTCONTAINERS_RYUK_DISABLED)") {
		t.Error(stderr)
	}
	m.nothingLeft()
	c, _ := m.start("run", "kafka/basic", "--broker", "container")
	within(t, time.Minute, "the container starts", func() bool { return strings.Contains(m.engineLists(), "Up ") })
	kill(t, c)
	m.must(0, "run", "kafka/basic", "--broker", "container")
	m.nothingLeft()
}

// reaped is how long the reaper may take: its patience is 5 s, and 10 s when
// nobody ever came.
const reaped = 15 * time.Second

// TestKilledWithContainers kills mqlab at five moments of a run, and while it
// keeps a broker: everything is gone.
func TestKilledWithContainers(t *testing.T) {
	t.Parallel()
	withEngine(t)
	up := func(n int) func(*mqlab) bool {
		return func(m *mqlab) bool { return strings.Count(m.engineLists(), "Up ") == n }
	}
	run := []string{"run", "kafka/broker-kill", "kafka/basic", "--broker", "container"}
	for _, c := range []struct {
		moment string
		args   []string
		now    func(*mqlab) bool
	}{
		{"the reaper is created", run, func(m *mqlab) bool { return m.engineLists() != "" }},
		{"the reaper runs", run, up(1)},
		{"the broker is created", run, func(m *mqlab) bool { return strings.Count(m.engineLists(), "\n") == 2 }},
		{"the broker starts", run, up(2)},
		{"a lab runs", run, func(m *mqlab) bool {
			runs, err := filepath.Glob(m.dir + "/runs/kafka/*/*")
			return err == nil && len(runs) > 0
		}},
		{"a broker is to be kept", []string{"broker", "up", "kafka", "--broker", "container"}, up(2)},
	} {
		t.Run(c.moment, func(t *testing.T) {
			m := newMqlab(t)
			p, out := m.start(c.args...)
			within(t, 2*time.Minute, c.moment, func() bool { return c.now(m) })
			kill(t, p)
			within(t, reaped, "everything is gone: "+out.String(), func() bool { return m.engineLists() == "" })
			eventually(t, "the roles end", func() bool { return len(m.ours()) == 0 })
		})
	}
	t.Run("Ctrl-C", func(t *testing.T) {
		m := newMqlab(t)
		p, out := m.start("run", "kafka/basic", "--broker", "container")
		within(t, time.Minute, "the broker starts", func() bool { return up(2)(m) })
		start := time.Now()
		if err := p.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		p.Wait() //nolint:errcheck // its code is looked at
		if took := time.Since(start); took > 5*time.Second || p.ProcessState.ExitCode() != exitInterrupted {
			t.Errorf("it took %v, exit %d\n%s", took, p.ProcessState.ExitCode(), out)
		}
		m.nothingLeft()
	})
}

// TestKeepAfterRun lets the container of a run go on, without its reaper.
func TestKeepAfterRun(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	if _, stderr := m.must(0, "run", "kafka/basic", "--broker", "container", "--keep"); !strings.Contains(stderr, "kafka goes on: kafka://127.0.0.1:") {
		t.Error(stderr)
	}
	if list := m.engineLists(); strings.Count(list, "\n") != 1 {
		t.Errorf("one container is kept:\n%s", list)
	}
	if out, _ := m.must(0, "run", "kafka/basic"); !strings.Contains(out, "(kept running)") {
		t.Error(out)
	}
	m.must(0, "broker", "down", "kafka")
	m.nothingLeft()
}

// TestKeptContainer keeps a container over several mqlabs, without a reaper;
// one that has ended is noticed.
func TestKeptContainer(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	m.must(0, "broker", "up", "rabbitmq", "--broker", "container")
	t.Cleanup(func() {
		if out, err := m.command(context.Background(), "broker", "down", "rabbitmq").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		m.nothingLeft()
	})
	if list := m.engineLists(); strings.Count(list, "\n") != 1 {
		t.Errorf("one container is kept:\n%s", list)
	}
	for range 2 {
		if out, _ := m.must(0, "run", "rabbitmq/consumer-crash"); !strings.Contains(out, "broker: container ") || !strings.Contains(out, "(kept running)") {
			t.Error(out)
		}
	}
	if out, _ := m.must(0, "broker", "status", "rabbitmq"); !strings.Contains(out, "container ") || !strings.Contains(out, " MB") || strings.Contains(out, "all interfaces") {
		t.Error(out)
	}
	m.must(0, "broker", "logs", "rabbitmq")
	id, _, _ := strings.Cut(m.engineLists(), " ")
	if out, err := exec.CommandContext(t.Context(), "docker", "kill", id).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, _ := m.must(0, "broker", "status", "rabbitmq"); !strings.Contains(out, "not kept running") {
		t.Error(fmt.Sprint("the record of a container that was killed: ", out))
	}
}
