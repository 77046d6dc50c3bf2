package labs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"mqlab/brokers"
)

// orphanTimeout is how long the output may stay open after the process has
// ended: only a grandchild can keep it.
const orphanTimeout = 2 * time.Second

// child is one role's process. Its callbacks come from goroutines that end
// before ended is called.
type child struct {
	cmd   *exec.Cmd
	out   *os.File
	err   *os.File
	ended func(exit)
}

// exit is how a process ended.
type exit struct {
	code   int    // the exit code, or 128 + the signal
	signal string // empty when it exited by itself
	cut    bool   // something kept the output open; the rest of it is unknown
	failed error  // the output could not be kept
}

// startChild starts a process in a group of its own and reads both its outputs
// to their end into STEP.out.txt and STEP.err.txt.
func startChild(dir, step string, argv, env []string, line func(LogLine), ended func(exit)) (*child, error) {
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), ended: ended} //nolint:noctx // it is ended by signals, in the order that the scenario wants
	c.cmd.Env = env
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", step, err)
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", step, err), outRead.Close(), outWrite.Close())
	}
	c.cmd.Stdout, c.cmd.Stderr = outWrite, errWrite
	if err = c.open(dir, step); err == nil {
		err = c.cmd.Start()
	}
	err = errors.Join(err, outWrite.Close(), errWrite.Close())
	if err != nil {
		c.out.Close() //nolint:errcheck // nothing was written; nil is fine too
		c.err.Close() //nolint:errcheck // as above
		return nil, errors.Join(fmt.Errorf("start %s: %w", step, err), outRead.Close(), errRead.Close())
	}
	var readers sync.WaitGroup
	var outErr, errErr error
	readers.Go(func() { outErr = splitLines(outRead, c.out, step, line) })
	readers.Go(func() { errErr = keep(errRead, c.err, step) })
	go c.wait(&readers, outRead, errRead, &outErr, &errErr) // ends with the process; ended is its last act
	return c, nil
}

// open makes the files of both outputs.
func (c *child) open(dir, step string) (err error) {
	if c.out, err = os.Create(filepath.Join(dir, step+outSuffix)); err != nil {
		return err
	}
	c.err, err = os.Create(filepath.Join(dir, step+errSuffix))
	return err
}

func (c *child) wait(readers *sync.WaitGroup, outRead, errRead *os.File, outErr, errErr *error) {
	var x exit
	err := c.cmd.Wait()
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }() // ends when the pipes are closed, below at the latest
	select {
	case <-done:
	case <-time.After(orphanTimeout):
		x.cut = true
		c.signal(syscall.SIGKILL) //nolint:errcheck // who keeps it must not outlive the run; outside the group it is out of reach
	}
	closed := errors.Join(outRead.Close(), errRead.Close())
	<-done
	x.failed = errors.Join(*outErr, *errErr, c.out.Close(), c.err.Close())
	if x.failed == nil && !x.cut {
		x.failed = closed
	}
	x.code, x.signal = exitCode(c.cmd.ProcessState, err)
	c.ended(x)
}

func exitCode(s *os.ProcessState, err error) (int, string) {
	if s == nil {
		return 1, fmt.Sprint(err)
	}
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), w.Signal().String()
	}
	return s.ExitCode(), ""
}

// splitLines copies the output into its file and hands on every line when it is
// there. A line that is too long to parse is handed on cut.
func splitLines(from io.Reader, to io.Writer, step string, line func(LogLine)) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var text []byte
	var failed error
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		if _, werr := to.Write(part); werr != nil && failed == nil {
			failed = fmt.Errorf("keep the output of %s: %w", step, werr)
		}
		if room := maxLine + 1 - len(text); room > 0 {
			text = append(text, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(text) > 0 {
			line(ReadLine(step, step+outSuffix, n, string(trimEnd(text))))
			text = text[:0]
			n++
		}
		if err != nil {
			return errors.Join(failed, unlessEnd(step, err))
		}
	}
}

func trimEnd(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}

// keep copies an output into its file, and reads on when the file cannot take
// more, so that the process never blocks on its own output.
func keep(from io.Reader, to io.Writer, step string) error {
	_, err := io.Copy(to, from)
	if err != nil {
		_, rest := io.Copy(io.Discard, from)
		return errors.Join(unlessEnd(step, err), unlessEnd(step, rest))
	}
	return nil
}

func unlessEnd(step string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return fmt.Errorf("copy the output of %s: %w", step, err)
}

// signal sends a signal to the process's group.
func (c *child) signal(s syscall.Signal) error {
	if err := syscall.Kill(-c.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to %d: %w", s, c.cmd.Process.Pid, err)
	}
	return nil
}

// stop freezes the process and returns when it stands still.
func (c *child) stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return waitStopped(ctx, c.cmd.Process.Pid, true)
}

// thaw lets the process go on and returns when it runs.
func (c *child) thaw(ctx context.Context) error {
	if err := c.signal(syscall.SIGCONT); err != nil {
		return err
	}
	return waitStopped(ctx, c.cmd.Process.Pid, false)
}

// waitStopped asks the operating system until the process is stopped, or is
// not any more.
func waitStopped(ctx context.Context, pid int, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	for {
		stopped, err := brokers.ProcessStopped(pid)
		if err != nil {
			return fmt.Errorf("look whether process %d is stopped: %w", pid, err)
		}
		if stopped == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d: stopped is %v, want %v: %w", pid, stopped, want, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
