package main

import (
	"archive/zip"
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

// fakeJava is a folder with a Java that says its version in the way that every
// Java does, and runs a shell script in the place of a broker.
func fakeJava(t *testing.T, version, script string) (home string) {
	t.Helper()
	home = t.TempDir()
	write(t, filepath.Join(home, "release"), "IMPLEMENTOR=\"Nobody\"\nJAVA_VERSION=\""+version+"\"\n")
	write(t, filepath.Join(home, "bin", "java"), "#!/bin/sh\n"+script+"\n")
	return home
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// fakeKafka is an installed Kafka with one jar, which nobody will ever load.
func fakeKafka(t *testing.T) (cache string) {
	t.Helper()
	cache = t.TempDir()
	dir := filepath.Join(cache, "mqlab", "kafka-4.4.0")
	write(t, filepath.Join(dir, "formatted", "meta.properties"), "version=1\n")
	write(t, filepath.Join(dir, "lib", "a.jar"), "not really")
	write(t, filepath.Join(dir, "jars.txt"), "0000 10 a.jar\n")
	return cache
}

// TestNoJava is a machine where the brokers that need it cannot run: each time
// the error says what helps, and auto takes the stand-in.
func TestNoJava(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.env = append(m.env, "DOCKER_HOST=unix://"+m.dir+"/none") // auto would take a container
	empty := t.TempDir()
	for _, c := range []struct {
		name, want string
		env        []string
	}{
		{"no java", "no java is on the PATH (apt-get install", []string{"PATH=" + empty, "JAVA_HOME="}},
		{"a wrong JAVA_HOME", "JAVA_HOME is set, but there is no ", []string{"JAVA_HOME=" + empty}},
		{"an old one", "is Java 11, Java 17 is needed", []string{"JAVA_HOME=" + fakeJava(t, "11.0.24", "")}},
		{"a very old one", "is Java 8, Java 17 is needed", []string{"JAVA_HOME=" + fakeJava(t, "1.8.0_402", "")}},
		{"no jars", "mqlab broker install kafka, or set KAFKA_HOME", []string{"JAVA_HOME=" + fakeJava(t, "17.0.1", ""), "XDG_CACHE_HOME=" + empty}},
		{"a wrong KAFKA_HOME", "KAFKA_HOME is set, but there are no jars in ", []string{"JAVA_HOME=" + fakeJava(t, "21", ""), "KAFKA_HOME=" + empty}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := *m
			m.t, m.env = t, append(m.env[:len(m.env):len(m.env)], c.env...)
			if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native"); !strings.Contains(stderr, c.want) {
				t.Errorf("want %q:\n%s", c.want, stderr)
			}
			if out, stderr := m.must(0, "run", "kafka/basic"); !strings.Contains(out, "embedded (simulated)") || !strings.Contains(stderr, c.want) {
				t.Errorf("auto: %s%s", out, stderr)
			}
			if out, _ := m.must(0, "doctor"); !strings.Contains(out, c.want) {
				t.Errorf("doctor: %s", out)
			}
		})
	}
}

// TestInstallCannot are the ways in which an installation fails: nothing
// half-done is left, and what was damaged is noticed before it is used.
func TestInstallCannot(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	cache, java := t.TempDir(), fakeJava(t, "17.0.1", "exit 1")
	m.env = append(m.env, "XDG_CACHE_HOME="+cache, "JAVA_HOME="+java)
	none := *m
	none.env = append(m.env[:len(m.env):len(m.env)], "PATH="+java)
	if _, stderr := none.must(exitEnvironment, "broker", "install", "kafka"); !strings.Contains(stderr, "no mvn is on the PATH (apt-get install") {
		t.Error(stderr)
	}
	for script, want := range map[string]string{
		"echo Could not resolve dependencies; exit 1":                                                           "Could not resolve dependencies",
		`for a; do case $a in -DoutputDirectory=*) d=${a#*=}; mkdir -p $d; echo half >$d/half.jar;; esac; done`: "check half.jar: zip: not a valid zip file",
	} {
		bin := t.TempDir()
		write(t, filepath.Join(bin, "mvn"), "#!/bin/sh\n"+script+"\n")
		m := *m
		m.env = append(m.env[:len(m.env):len(m.env)], "PATH="+bin+":/usr/bin:/bin")
		if _, stderr := m.must(exitEnvironment, "broker", "install", "kafka"); !strings.Contains(stderr, want) {
			t.Errorf("want %q:\n%s", want, stderr)
		}
		if left, err := filepath.Glob(cache + "/mqlab/*"); err != nil || len(left) > 0 {
			t.Errorf("%q is left, %v", left, err)
		}
	}
	m.env = append(m.env, "XDG_CACHE_HOME="+fakeKafka(t))
	jar := strings.TrimPrefix(m.env[len(m.env)-1], "XDG_CACHE_HOME=") + "/mqlab/kafka-4.4.0/lib/a.jar"
	write(t, jar, "not rea")
	want := "the installed kafka is damaged: a.jar has 7 bytes instead of 10 (mqlab broker install kafka, or set KAFKA_HOME)"
	if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native"); !strings.Contains(stderr, want) {
		t.Errorf("want %q:\n%s", want, stderr)
	}
	if err := os.Remove(jar); err != nil {
		t.Fatal(err)
	}
	if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native"); !strings.Contains(stderr, "a.jar is gone") {
		t.Error(stderr)
	}
}

// TestPortTaken is a broker that finds its port taken: it is tried three times
// with other ports, and then its own words are the reason.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	tries := filepath.Join(m.dir, "tries")
	m.env = append(m.env, "XDG_CACHE_HOME="+fakeKafka(t), "JAVA_HOME="+fakeJava(t, "17.0.1",
		"echo once >>"+tries+"; echo 'java.net.BindException: Address already in use' >&2; exit 1"))
	if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native"); !strings.Contains(stderr, "its last lines: java.net.BindException") {
		t.Error(stderr)
	}
	if b, err := os.ReadFile(tries); err != nil || string(b) != "once\nonce\nonce\n" {
		t.Errorf("%q, %v", b, err)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestKilledWhileJavaStarts kills mqlab while its broker starts, which here takes
// for ever: the broker ends, and its folder is gone.
func TestKilledWhileJavaStarts(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	up := filepath.Join(m.dir, "up")
	m.env = append(m.env, "XDG_CACHE_HOME="+fakeKafka(t), "JAVA_HOME="+fakeJava(t, "17.0.1", "echo $$ >"+up+"; exec sleep 600"))
	for _, args := range [][]string{{"run", "kafka/basic", "--broker", "native"}, {"broker", "up", "kafka"}} {
		c, _ := m.start(args...)
		var pid int
		eventually(t, "the broker starts", func() bool {
			b, err := os.ReadFile(up)
			if err != nil {
				return false
			}
			_, err = fmt.Sscan(string(b), &pid)
			return err == nil
		})
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait() //nolint:errcheck // it was killed
		eventually(t, "the broker ends", func() bool { return syscall.Kill(pid, 0) != nil && len(m.ours()) == 0 })
		eventually(t, "its folder is gone", func() bool {
			dirs, err := os.ReadDir(m.dir + "/state/brokers")
			return err == nil && len(dirs) == 0
		})
		if err := os.Remove(up); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBrokerThatNeverWorks listens and says that it is up, but no message goes
// through: it is not ready, and Ctrl-C ends the waiting.
func TestBrokerThatNeverWorks(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	m.env = append(m.env, "XDG_CACHE_HOME="+fakeKafka(t), "JAVA_HOME="+fakeJava(t, "17.0.1", "echo boot success; exec sleep 600"))
	c, out := m.start("run", "kafka/basic", "--broker", "native")
	eventually(t, "it says that it is up", func() bool {
		logs, err := filepath.Glob(m.dir + "/state/brokers/*/broker.log")
		if err != nil || len(logs) == 0 {
			return false
		}
		b, err := os.ReadFile(logs[0])
		return err == nil && string(b) == "boot success\n"
	})
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	c.Wait() //nolint:errcheck // its code is looked at
	if c.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(out.String(), "not ready in time") || !strings.Contains(out.String(), "boot success") {
		t.Errorf("exit %d\n%s", c.ProcessState.ExitCode(), out)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// installed skips a test where Kafka is not installed.
func installed(t *testing.T) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cache, "mqlab", "kafka-4.4.0")); err != nil {
		t.Skip("Kafka is not installed: mqlab broker install kafka, as scripts/test.sh does")
	}
}

// TestOutOfHeap gives the real broker a heap that is too small.
func TestOutOfHeap(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	installed(t)
	m.env = append(m.env, "MQLAB_JAVA_OPTS=-Xms4m -Xmx20m")
	if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native"); !strings.Contains(stderr, "OutOfMemoryError") {
		t.Error(stderr)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestNoSpace gives the real broker a store on a disk that is full.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	installed(t)
	if os.Getuid() != 0 {
		t.Skip("a small file system needs root")
	}
	dir := m.dir + "/state/brokers"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=64k", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %s", out)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) }) //nolint:errcheck // it goes with the machine
	_, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "native")
	if !strings.Contains(stderr, "no space left on device") && !strings.Contains(stderr, "No space left on device") {
		t.Error(stderr)
	}
	if left := m.ours(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestInstallAgain finds an installed distribution whole, by the sums of its
// jars.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	cache := fakeKafka(t)
	dir := filepath.Join(cache, "mqlab", "kafka-4.4.0")
	f, err := os.Create(filepath.Join(dir, "lib", "a.jar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.NewWriter(f).Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// SHA-256 of an empty zip file, which is its end record alone.
	write(t, filepath.Join(dir, "jars.txt"), "8739c76e681f900923b900c9df0ef75cf421d39cabb54650c4b9ad19b6a76d85 22 a.jar\n")
	write(t, filepath.Join(dir, "classes.jsa"), "")
	m.env = append(m.env, "XDG_CACHE_HOME="+cache, "JAVA_HOME="+fakeJava(t, "17.0.1", "exit 1"))
	if _, stderr := m.must(0, "broker", "install", "kafka"); !strings.Contains(stderr, "kafka 4.4.0 is whole in ") {
		t.Error(stderr)
	}
}

// TestAnotherKind gives each driver the address of a broker of another kind.
func TestAnotherKind(t *testing.T) {
	t.Parallel()
	m := newMqlab(t)
	hosts := map[string]string{}
	for _, p := range products() {
		name := p.driver.Name()
		m.must(0, "broker", "up", name, "--broker", "embedded")
		out, _ := m.must(0, "broker", "status", name)
		for _, word := range strings.Fields(out) {
			if _, rest, ok := strings.Cut(word, "://"); ok {
				_, rest, _ = strings.Cut("@"+rest, "@")
				host, _, _ := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
				hosts[name], _, _ = strings.Cut(host, "?")
			}
		}
		if _, _, err := net.SplitHostPort(hosts[name]); err != nil {
			t.Fatalf("no address is in %q: %v", out, err)
		}
	}
	for _, p := range products() {
		for other, host := range hosts {
			if other == p.driver.Name() {
				continue
			}
			t.Run(p.driver.Name()+" at "+other, func(t *testing.T) {
				start := time.Now()
				stdout, stderr, code := m.run("run", p.driver.Name()+"/basic", "--broker", p.driver.Scheme()+"://someone:hush-hush@"+host)
				if code != exitEnvironment || strings.Contains(stdout+stderr, "hush-hush") {
					t.Errorf("exit %d, want %d\n%s%s", code, exitEnvironment, stdout, stderr)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
	for name := range hosts {
		m.must(0, "broker", "down", name)
	}
}
