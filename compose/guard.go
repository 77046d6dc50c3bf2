package compose

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mqlab/brokers"
)

// guardSpec is the guard's first line of standard input.
type guardSpec struct {
	Dir      string     `json:"dir"`      // the broker's folder, removed at the end
	Commands [][]string `json:"commands"` // started in order in one process group; the last one is the broker
	Env      []string   `json:"env"`
}

// keepWord, as a line of its own after the first, makes the guard keep its
// broker when standard input ends.
const keepWord = "keep\n"

// guardFile, in the broker's folder, says who guards it; logFile is its output.
const (
	guardFile = "guard.json"
	logFile   = "broker.log"
)

// guardRecord is what a later mqlab needs to end a broker whose guard was
// killed.
type guardRecord struct {
	PID        int    `json:"pid"`
	Start      string `json:"start"`
	Group      int    `json:"group"`
	GroupStart string `json:"groupStart"`
}

// Guard is the hidden command between mqlab and a broker process: it starts the
// broker and ends it, with everything in its process group, when mqlab's end of
// the pipe closes before it was told to keep the broker, when SIGTERM comes, or
// when the broker itself ends. It works
// whatever way mqlab ends in, SIGKILL included.
func Guard(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("guard: read what to guard: %w", err)
	}
	var spec guardSpec
	if err := json.Unmarshal(line, &spec); err != nil {
		return fmt.Errorf("guard: read what to guard: %w", err)
	}
	// Ctrl-C on a terminal is for mqlab, which then closes the pipe.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() { // ends with the pipe
		if word, err := r.ReadString('\n'); err != nil || word != keepWord {
			close(gone)
		}
	}()
	group, died, err := spec.start()
	if err == nil {
		select {
		case <-gone:
		case <-end:
		case <-died:
			// The folder goes, so the reader of this pipe gets the end of the log.
			fmt.Fprint(out, tail(filepath.Join(spec.Dir, logFile))) //nolint:errcheck // a reader that is gone needs no reason
		}
	}
	return errors.Join(err, group.end(), os.RemoveAll(spec.Dir))
}

// processGroup is what the guard has started.
type processGroup struct {
	id    int
	procs []*exec.Cmd
	waits sync.WaitGroup
}

func (s guardSpec) start() (*processGroup, <-chan struct{}, error) {
	g, died := &processGroup{}, make(chan struct{})
	log, err := os.OpenFile(filepath.Join(s.Dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return g, died, fmt.Errorf("guard: open the broker's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the children have their own
	for i, argv := range s.Commands {
		c := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is ended with its group
		c.Env, c.Dir, c.Stdout, c.Stderr = s.Env, s.Dir, log, log
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
		if err := c.Start(); err != nil {
			return g, died, fmt.Errorf("guard: start %s: %w", argv[0], err)
		}
		if g.id == 0 {
			g.id = c.Process.Pid
			if err := s.record(g.id); err != nil {
				return g, died, err
			}
		}
		g.procs = append(g.procs, c)
		last := i == len(s.Commands)-1
		g.waits.Go(func() {
			c.Wait() //nolint:errcheck // how the broker ended stands in its log
			if last {
				close(died)
			}
		})
	}
	return g, died, nil
}

func (s guardSpec) record(group int) error {
	b, err := json.Marshal(guardRecord{PID: os.Getpid(), Start: brokers.ProcessStart(os.Getpid()), Group: group, GroupStart: brokers.ProcessStart(group)})
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, guardFile), b, 0o600); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// end kills the whole group and waits for what the guard itself has started.
func (g *processGroup) end() error {
	if g.id == 0 {
		return nil
	}
	err := syscall.Kill(-g.id, syscall.SIGKILL)
	g.waits.Wait()
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("guard: end the broker: %w", err)
	}
	return nil
}

// process is a broker that runs under a guard.
type process struct {
	origin brokers.Origin
	dir    string
	log    string // the path of the broker's output
	guard  *exec.Cmd
	pipe   io.WriteCloser
	died   chan struct{}
	last   bytes.Buffer // what the guard said at the end; complete when died is closed
	once   sync.Once
	err    error
}

// startGuarded starts a guard over commands. The caller waits for readiness; on
// an error the broker's folder is gone.
func (o *Opener) startGuarded(spec guardSpec) (*process, error) {
	p, err := o.startGuard(spec)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard: %w", err), os.RemoveAll(spec.Dir))
	}
	return p, nil
}

func (o *Opener) startGuard(spec guardSpec) (*process, error) {
	g := exec.Command(o.Program[0], append(append([]string(nil), o.Program[1:]...), "guard")...) //nolint:noctx // it ends with its pipe
	g.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := g.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &process{dir: spec.Dir, log: filepath.Join(spec.Dir, logFile), guard: g, pipe: pipe, died: make(chan struct{})}
	g.Stdout, g.Stderr = &p.last, &p.last
	if err := g.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the guard, which Release waits for
		g.Wait() //nolint:errcheck // the broker's log says why
		close(p.died)
	}()
	b, err := json.Marshal(spec)
	if err == nil {
		_, err = pipe.Write(append(b, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// await polls until ready returns nil, the broker has ended, or ctx ends.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-p.died:
			return fmt.Errorf("the broker ended while it was starting; its last lines: %s", p.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("the broker was not ready in time (%w): %w; its last lines: %s", ctx.Err(), last, p.LastWords())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Origin says where the broker came from.
func (p *process) Origin() brokers.Origin { return p.origin }

// Died is closed when the broker or its guard has ended.
func (p *process) Died() <-chan struct{} { return p.died }

// LastWords are the last lines of the broker's output.
func (p *process) LastWords() string {
	select {
	case <-p.died:
		if p.last.Len() > 0 {
			return strings.TrimSpace(p.last.String())
		}
	default:
	}
	return tail(p.log)
}

// keep lets the broker go on when this process ends.
func (p *process) keep() error {
	_, err := io.WriteString(p.pipe, keepWord)
	if err = errors.Join(err, p.pipe.Close()); err != nil {
		return fmt.Errorf("keep the broker: %w", err)
	}
	return nil
}

// Release ends the broker and returns when nothing of it is left.
func (p *process) Release() error {
	p.once.Do(func() {
		err := p.pipe.Close()
		<-p.died
		if err != nil && !errors.Is(err, os.ErrClosed) {
			p.err = fmt.Errorf("end the broker: %w", err)
		}
		// A guard that was killed has left its broker.
		p.err = errors.Join(p.err, sweepOne(p.dir))
	})
	return p.err
}

const lastLines, lastBytes = 12, 4096

// tail is the end of a log as one line.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b[max(0, len(b)-lastBytes):])), "\n")
	return strings.Join(lines[max(0, len(lines)-lastLines):], " | ")
}
