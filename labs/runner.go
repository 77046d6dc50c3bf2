package labs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
)

const (
	// stateTimeout bounds one question to the broker.
	stateTimeout = 5 * time.Second
	// cleanTimeout bounds the removal of what a run made on the broker.
	cleanTimeout = 5 * time.Second
	// pollEvery is the pause between two questions while the runner waits for
	// something that only the broker can tell.
	pollEvery = 10 * time.Millisecond
	// settle is the least distance of the two readings that must agree before
	// a destination counts as drained.
	settle = 50 * time.Millisecond
	// lastChance is what a role that is being ended gets to write its stack.
	lastChance = 2 * time.Second
)

// Runner runs labs on one broker. Its methods may be called from several
// goroutines.
type Runner struct {
	Driver  brokers.Driver
	Control brokers.Control
	Program []string      // argv of mqlab's own executable
	Args    []string      // more flags for every role, such as --labs DIR
	Env     []string      // the roles' environment without what the runner adds
	Root    string        // the folder of all runs
	State   string        // the folder of the records that a killed run leaves to the next one
	Timeout time.Duration // instead of the scenarios' own; 0: theirs
	Version string        // mqlab's own
	Client  string        // the client library with its version
	// Progress is called when a step starts and ends, from the running goroutine.
	Progress func(Progress)
}

// Progress is a step that started, or ended.
type Progress struct {
	Lab  string
	Step string
	Ends bool
	Exit int
	Took time.Duration
}

// The exit codes of a role that mean something to the runner; package role has
// the others.
const (
	// ExitUsage is that of a role that refused its command line, or the lab's
	// files, which were changed in mid-run.
	ExitUsage = 64
	// ExitConnectionLost is that of a role whose broker went away, or took its
	// connection away.
	ExitConnectionLost = 75
)

// EnvBroker is the variable that hands a role the broker's address, which may
// contain a password and so never stands on a command line.
const EnvBroker = "MQLAB_BROKER_URL"

// Skips says why a lab cannot run on this broker, or nothing.
func (r *Runner) Skips(l *Lab) string {
	for _, need := range l.Scenario.needs() {
		if slices.Contains(r.Control.Origin().Lacks, need) {
			return fmt.Sprintf("it requires %s, which %s lacks", need, r.Control.Origin())
		}
	}
	return ""
}

// Run runs one lab to its end and returns the evidence, which the caller judges
// and seals. An error means that there is no run to judge; an interruption (the
// end of ctx) and a broker that dies are evidence, not errors.
func (r *Runner) Run(ctx context.Context, l *Lab) (*Evidence, error) {
	id := strings.ToLower(rand.Text()[:10])
	started := time.Now()
	e, err := newEvidence(r.Root, l, id, started)
	if err != nil {
		return nil, err
	}
	e.Record.Broker, e.Record.Version, e.Record.Client = r.Control.Origin(), r.Version, r.Client
	dest := l.Scenario.DestinationOf(id)
	forget, err := r.remember(l, id, dest)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(e.dir))
	}
	inspector, err := r.Driver.OpenInspector(ctx, r.Control.Origin().Address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask the broker for its numbers: %w", err), forget(), os.RemoveAll(e.dir))
	}
	door, err := gate.Listen(ctx)
	if err != nil {
		return nil, errors.Join(err, inspector.Close(), forget(), os.RemoveAll(e.dir))
	}
	x := &execution{Runner: r, lab: l, sc: &l.Scenario, id: id, dest: dest, ev: e, door: door, inspector: inspector,
		events: newEvents()}
	x.plan()
	x.run(ctx)
	x.events.end()
	err = errors.Join(x.failed, door.Close())
	err = errors.Join(err, x.inspector.Close())
	if left := r.clean(ctx, dest); left != nil {
		e.Record.Left = left.Error() // the record stays, so that the next run removes it
	} else {
		err = errors.Join(err, forget())
	}
	if log := r.Control.Log(); len(log) > 0 && len(e.Record.Spoiled) > 0 {
		err = errors.Join(err, e.WriteFile(BrokerLogFile, log))
	}
	e.Record.Ended = time.Now().UTC()
	e.Record.Complete = !e.Record.Interrupted
	return e, errors.Join(err, e.write())
}

// clean removes the run's destination; on a broker that died there is nothing
// to remove, and on one that ends with the run it does not matter.
func (r *Runner) clean(ctx context.Context, d brokers.Destination) error {
	select {
	case <-r.Control.Died():
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	err := r.Driver.Remove(ctx, r.Control.Origin().Address, d)
	if err != nil && r.Control.Origin().Adopted {
		return fmt.Errorf("remove what the run made on the broker: %w", err)
	}
	return nil
}

// argv is a step's command line. It holds no secret: it goes into the evidence.
func (r *Runner) argv(l *Lab, s Step, id, dir string) []string {
	argv := append([]string(nil), r.Program...)
	argv = append(argv, "role", s.RoleName(), "--lab", l.ID, "--step", s.Name, "--run", id, "--store", dir)
	if s.Until != nil {
		argv = append(argv, "--received", fmt.Sprint(s.Until.Received))
	}
	return append(argv, r.Args...)
}

// stores is where the databases of a run lie: in its folder, whose name must
// not change under a running role.
func (x *execution) stores() string {
	if abs, err := filepath.Abs(x.ev.dir); err == nil {
		return abs
	}
	return x.ev.dir
}
