package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asExit finds an exit code in an error.
func asExit(err error, c *interface{ ExitCode() int }) bool {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return false
	}
	*c = e
	return true
}

// mqlab is a command line of the test binary as mqlab, with a state folder and
// a working folder of its own.
type mqlab struct {
	t   *testing.T
	dir string
	env []string
}

func newMqlab(t *testing.T) *mqlab {
	t.Helper()
	dir := t.TempDir()
	return &mqlab{t: t, dir: dir, env: append(os.Environ(), envMain+"=1", "MQLAB_STATE="+dir+"/state", "MQLAB_BROKER=")}
}

func (m *mqlab) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Dir, c.Env = m.dir, m.env
	return c
}

// run runs to the end and returns what was printed, and the exit code.
func (m *mqlab) run(args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	c := m.command(ctx, args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var e interface{ ExitCode() int }
	if err != nil && !asExit(err, &e) {
		m.t.Fatalf("mqlab %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// must runs and demands an exit code.
func (m *mqlab) must(want int, args ...string) (stdout, stderr string) {
	m.t.Helper()
	stdout, stderr, code := m.run(args...)
	if code != want {
		m.t.Fatalf("mqlab %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout, stderr
}
