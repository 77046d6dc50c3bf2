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
// broker when standard input ends. The other orders are brokers.Act; the guard
// answers each with a line that begins with answerMark.
const (
	keepWord   = "keep"
	answerMark = "\x01"
)

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
	orders := make(chan string)
	go func() { // ends with the pipe
		defer close(orders)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			orders <- strings.TrimSpace(line)
		}
	}()
	g := &guarding{spec: spec, out: out, orders: orders, end: end}
	err = g.act(brokers.Start)
	for err == nil && g.obey() {
	}
	return errors.Join(err, g.group.end(), os.RemoveAll(spec.Dir))
}

// guarding is a guard at work.
type guarding struct {
	spec  guardSpec
	out   io.Writer
	group *processGroup // nil while the broker is down on order
	died  <-chan struct{}
	keep  bool
	over  bool // the end came while an order was carried out

	orders <-chan string
	end    <-chan os.Signal
	later  []string // orders that came while another one was carried out
}

// obey waits for one thing to happen and reports whether to go on.
func (g *guarding) obey() bool {
	if len(g.later) > 0 {
		order := g.later[0]
		g.later = g.later[1:]
		return g.take(order)
	}
	select {
	case <-g.end:
		return false
	case <-g.died:
		// The folder goes, so the reader of this pipe gets the end of the log.
		g.out.Write(tail(filepath.Join(g.spec.Dir, logFile))) //nolint:errcheck // a reader that is gone needs no reason
		return false
	case order, open := <-g.orders:
		switch {
		case !open && !g.keep:
			return false
		case !open:
			select { // a kept broker ends by SIGTERM, or by itself
			case <-g.end:
			case <-g.died:
			}
			return false
		}
		return g.take(order)
	}
}

// take carries out one order, "ACT NUMBER", and answers it by its number: who
// gave it may have stopped waiting and given another one.
func (g *guarding) take(order string) bool {
	if order == keepWord {
		g.keep = true
		return true
	}
	act, number, _ := strings.Cut(order, " ")
	answer := "done"
	if err := g.act(brokers.Act(act)); err != nil {
		answer = err.Error()
	}
	fmt.Fprintf(g.out, "%s%s %s\n", answerMark, number, strings.ReplaceAll(answer, "\n", "; ")) //nolint:errcheck // a reader that is gone needs no answer
	return !g.over
}

// stopped waits for an orderly end. The end of the guard's own time is not put
// off by it.
func (g *guarding) stopped() error {
	late := time.After(stopTimeout)
	for {
		select {
		case <-g.died:
			return nil
		case <-late:
			return fmt.Errorf("stop the broker: it went on for %s after SIGTERM and was killed", stopTimeout)
		case <-g.end:
			g.over = true
			return nil
		case order, open := <-g.orders:
			if !open {
				g.over = true
				return nil
			}
			g.later = append(g.later, order)
		}
	}
}

// stopTimeout is what a broker gets for its own orderly end; RocketMQ needs ten
// to fourteen seconds.
const stopTimeout = 30 * time.Second

// act does one thing to the broker. What ends it on order is not its death.
func (g *guarding) act(a brokers.Act) (err error) {
	if down := g.group == nil; down != (a == brokers.Start) {
		return fmt.Errorf("%s the broker: it %s", a, map[bool]string{true: "is down", false: "runs"}[down])
	}
	switch a {
	case brokers.Start:
		g.group, g.died, err = g.spec.start()
		return err
	case brokers.Pause:
		return g.group.signal(syscall.SIGSTOP)
	case brokers.Resume:
		return g.group.signal(syscall.SIGCONT)
	case brokers.Stop:
		// A paused broker takes SIGTERM only when it goes on.
		err = errors.Join(g.group.signal(syscall.SIGTERM), g.group.signal(syscall.SIGCONT), g.stopped())
	case brokers.Kill:
	default:
		return fmt.Errorf("the guard knows no order %q", a)
	}
	err = errors.Join(err, g.group.end())
	g.group, g.died = nil, nil
	return err
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
	if g == nil || g.id == 0 {
		return nil
	}
	err := g.signal(syscall.SIGKILL)
	g.waits.Wait()
	return err
}

func (g *processGroup) signal(s syscall.Signal) error {
	if err := syscall.Kill(-g.id, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("guard: send %s to the broker: %w", s, err)
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

	// ready asks whether a message goes through, and for the version.
	ready   func(context.Context) (version string, err error)
	acting  sync.Mutex
	orders  int         // given so far
	answers chan string // of the guard, each with the number of its order
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
	p := &process{dir: spec.Dir, log: filepath.Join(spec.Dir, logFile), guard: g, pipe: pipe, died: make(chan struct{}), answers: make(chan string, maxAnswers)}
	out, err := g.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.Stderr = g.Stdout
	if err := g.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the guard, which Release waits for
		p.listen(out)
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

// maxAnswers bounds the answers that nobody has read.
const maxAnswers = 16

// listen takes the guard's answers and keeps what else it says.
func (p *process) listen(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if answer, ok := strings.CutPrefix(line, answerMark); ok {
			select {
			case p.answers <- strings.TrimSpace(answer):
			default: // nobody has waited for so many
			}
		} else {
			p.last.WriteString(line)
		}
		if err != nil {
			return
		}
	}
}

// awaitReady waits, bounded, until a message goes through.
func (p *process) awaitReady(ctx context.Context, bound time.Duration) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err = p.await(ctx, func(ctx context.Context) (err error) {
		version, err = p.ready(ctx)
		return err
	})
	return version, err
}

// Act does something to the broker's process and returns when it is done: for
// a start when a message goes through.
func (p *process) Act(ctx context.Context, a brokers.Act) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if a == brokers.Restart {
		if err := p.order(ctx, brokers.Stop); err != nil {
			return err
		}
		return p.begin(ctx)
	}
	if a == brokers.Start {
		return p.begin(ctx)
	}
	return p.order(ctx, a)
}

func (p *process) begin(ctx context.Context) error {
	if err := p.order(ctx, brokers.Start); err != nil {
		return err
	}
	if _, err := p.awaitReady(ctx, nativeTimeout); err != nil {
		return fmt.Errorf("start the broker again: %w", err)
	}
	return nil
}

// order tells the guard and waits for its answer.
func (p *process) order(ctx context.Context, a brokers.Act) error {
	p.orders++
	if _, err := fmt.Fprintf(p.pipe, "%s %d\n", a, p.orders); err != nil {
		return fmt.Errorf("%s the broker: %w", a, err)
	}
	for {
		select {
		case answer := <-p.answers:
			number, text, _ := strings.Cut(answer, " ")
			switch {
			case number != fmt.Sprint(p.orders): // of an order that was given up
			case text != "done":
				return errors.New(text)
			default:
				return nil
			}
		case <-p.died:
			return fmt.Errorf("%s the broker: it has ended: %s", a, brokers.LastWords(p.Log()))
		case <-ctx.Done():
			return fmt.Errorf("%s the broker: %w", a, ctx.Err())
		}
	}
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
			return fmt.Errorf("the broker ended while it was starting; its last lines: %s", brokers.LastWords(p.Log()))
		case <-ctx.Done():
			return fmt.Errorf("the broker was not ready in time (%w): %w; its last lines: %s", ctx.Err(), last, brokers.LastWords(p.Log()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Origin says where the broker came from.
func (p *process) Origin() brokers.Origin { return p.origin }

// Died is closed when the broker or its guard has ended.
func (p *process) Died() <-chan struct{} { return p.died }

// Log is the broker's output. The guard has said it when the folder is gone.
func (p *process) Log() []byte {
	select {
	case <-p.died:
		return p.last.Bytes()
	default:
	}
	return tail(p.log)
}

// record is what is remembered of a kept broker.
func (p *process) record() Kept {
	return Kept{Dir: p.dir, PID: p.guard.Process.Pid, Start: brokers.ProcessStart(p.guard.Process.Pid)}
}

// keep lets the broker go on when this process ends.
func (p *process) keep() error {
	_, err := io.WriteString(p.pipe, keepWord+"\n")
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

// maxLog bounds what is kept of a broker's log, in bytes.
const maxLog = 1 << 20

// tail is the end of a log.
func tail(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it is only read
	if st, err := f.Stat(); err == nil && st.Size() > maxLog {
		if _, err := f.Seek(-maxLog, io.SeekEnd); err != nil {
			return nil
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxLog))
	if err != nil {
		return nil
	}
	return b
}
