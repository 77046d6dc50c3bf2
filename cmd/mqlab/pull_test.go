package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// helpsPull is what helps where no image can be pulled.
const helpsPull = "(without a registry: scripts/images.sh builds one, MQLAB_IMAGE_KAFKA names it; or --broker native)"

// docker runs the engine's own client.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPull pulls an image from a registry, once, and says its digest.
func TestPull(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	r := newRegistry(t)
	digest := r.image("@" + digestOf(r.manifest))
	for _, image := range []string{r.image(":1"), digest, r.image(":1@" + digestOf(r.manifest))} {
		m := m.with(t, "MQLAB_IMAGE_KAFKA="+image)
		before := r.pulls.Load()
		_, stderr := m.must(0, "broker", "install", "kafka", "--broker", "container")
		if !strings.Contains(stderr, "pulling the image "+image+"\npulled 0 MB after ") || !strings.Contains(stderr, "the engine has "+image+": "+digest+"\n") || r.pulls.Load() == before {
			t.Errorf("%s: %s", image, stderr)
		}
		before = r.pulls.Load()
		if _, stderr := m.must(0, "broker", "install", "kafka", "--broker", "container"); strings.Contains(stderr, "pull") || !strings.Contains(stderr, digest) || r.pulls.Load() != before {
			t.Errorf("again: %s", stderr)
		}
		id := docker(t, "image", "inspect", "--format", "{{.Id}}", image)
		docker(t, "rmi", "--force", strings.TrimSpace(id))
	}
}

// TestPullWrongDigest has a registry that gives other bytes than were asked for.
func TestPullWrongDigest(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	r := newRegistry(t)
	wrong := "sha256:" + strings.Repeat("0", 64)
	for _, image := range []string{r.image("@" + wrong), r.image(":4@" + wrong)} {
		m := m.with(t, "MQLAB_IMAGE_KAFKA="+image)
		for _, args := range [][]string{{"run", "kafka/basic", "--broker", "container"}, {"broker", "install", "kafka", "--broker", "container"}} {
			if _, stderr := m.must(exitEnvironment, args...); !strings.Contains(stderr, "verification failed for digest "+wrong) || !strings.Contains(stderr, helpsPull) {
				t.Errorf("%v: %s", args, stderr)
			}
		}
	}
	m.nothingLeft()
}

// TestPullCredentials is refused without a password, and with one that is wrong;
// with the right one, of the client's own file, it pulls.
func TestPullCredentials(t *testing.T) {
	t.Parallel()
	m := withEngine(t)
	r := newRegistry(t, func(_ *testing.T, r *fakeRegistry) { r.password = "right" })
	image := r.image(":1")
	for _, password := range []string{"", "wrong", "right"} {
		dir := t.TempDir()
		if password != "" {
			auth := base64.StdEncoding.EncodeToString([]byte("somebody:" + password))
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+r.host+`":{"auth":"`+auth+`"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m := m.with(t, "MQLAB_IMAGE_KAFKA="+image, "DOCKER_CONFIG="+dir)
		want := exitEnvironment
		if password == "right" {
			want = 0
			t.Cleanup(func() { docker(t, "rmi", image) })
		}
		_, stderr := m.must(want, "broker", "install", "kafka", "--broker", "container")
		if want != 0 && !strings.Contains(stderr, " (docker login "+r.host+"; without a registry: ") {
			t.Errorf("password %q: %s", password, stderr)
		}
	}
}

// seen is what a program has written so far.
type seen struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *seen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// TestPullInterrupted waits for a line of progress and interrupts the pull: it
// ends at once, on the engine too.
func TestPullInterrupted(t *testing.T) {
	t.Parallel()
	withEngine(t)
	for _, args := range [][]string{{"broker", "install", "kafka", "--broker", "container"}, {"run", "kafka/basic", "--broker", "container"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, slowLayer)
			image := r.image(":1")
			m := newMqlab(t).with(t, "MQLAB_IMAGE_KAFKA="+image)
			var out seen
			c := m.command(t.Context(), args...)
			c.Stdout, c.Stderr = &out, &out
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			within(t, 20*time.Second, "a line of progress comes", func() bool { return strings.Contains(out.String(), " of 512 MB\n") })
			start := time.Now()
			if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			c.Wait() //nolint:errcheck // its code is looked at
			if took := time.Since(start); took > 5*time.Second || c.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("it took %v, exit %d", took, c.ProcessState.ExitCode())
			}
			if !strings.Contains(out.String(), "pull the image "+image+": it was interrupted\n") || strings.Count(out.String(), "pulling the image "+image+": ") > 3 {
				t.Error(out.String())
			}
			select {
			case <-r.ended:
			case <-time.After(10 * time.Second):
				t.Error("the engine goes on with the pull")
			}
			m.nothingLeft()
		})
	}
}
