// Package role is what mqlab's child processes do: setup, producer, consumer
// and inspect-db. Each writes structured log lines to its standard output and
// waits at the gate where the runner wants it to.
package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"mqlab/brokers"
	"mqlab/gate"
	"mqlab/labs"
)

// The exit codes of a role.
const (
	ExitDone           = 0
	ExitFailed         = 1
	ExitUsage          = labs.ExitUsage
	ExitGateLost       = gate.ExitGateLost
	ExitConnectionLost = labs.ExitConnectionLost
	ExitRefused        = 76
	ExitHalt           = gate.ExitHalt
)

// EnvBroker is the variable that holds the broker's address, which may contain
// a password and so never stands on a command line.
const EnvBroker = labs.EnvBroker

// Options are a role's command line.
type Options struct {
	Role     string // setup, producer, consumer or inspect-db
	Lab      string // BROKER/NAME
	Step     string // default: the lab's first step with that role
	Run      string // the run's id; empty: plain names on the wire
	Store    string // the folder of the databases
	Received int    // a consumer ends after so many deliveries; 0: never
	Digest   string // of the scenario, to notice that its file was changed in mid-run
	Address  brokers.Address

	Catalogue *labs.Catalogue
	Registry  *brokers.Registry
	Out, Err  io.Writer
	Exit      func(int) // os.Exit
}

// Run does the role's work and returns its exit code.
func Run(ctx context.Context, o Options) int {
	r, err := newRole(o)
	if err != nil {
		fmt.Fprintf(o.Err, "mqlab role: %v\n", err) //nolint:errcheck // nowhere left to say it
		return ExitUsage
	}
	return r.run(ctx)
}

// role is one process run.
type role struct {
	o      Options
	lab    *labs.Lab
	step   labs.Step
	driver brokers.Driver
	dest   brokers.Destination
	log    *log
	gate   *gate.Client
	client string // how the broker's own tools show this process
}

func newRole(o Options) (*role, error) {
	lab, err := o.Catalogue.Load(o.Lab)
	if err != nil {
		return nil, err
	}
	if o.Digest != "" && lab.Digest() != o.Digest {
		return nil, fmt.Errorf("%s was changed while the run went on", lab.File.Path)
	}
	r := &role{o: o, lab: lab}
	if r.driver, err = o.Registry.Driver(lab.Product); err != nil {
		return nil, err
	}
	if err := lab.Check(r.driver); err != nil {
		return nil, err
	}
	for _, s := range lab.Scenario.Steps {
		if s.RoleName() == o.Role && (o.Step == "" || o.Step == s.Name) {
			r.step = s
			break
		}
	}
	if r.step.Name == "" {
		return nil, fmt.Errorf("the lab %s has no step %s with the role %s", o.Lab, o.Step, o.Role)
	}
	if o.Address.IsZero() && o.Role != labs.RoleInspectDB {
		return nil, fmt.Errorf("no broker address: set %s", EnvBroker)
	}
	if !o.Address.IsZero() && o.Address.Scheme() != r.driver.Scheme() {
		return nil, fmt.Errorf("the address in %s is one of %s, not of %s", EnvBroker, o.Address.Scheme(), r.driver.Scheme())
	}
	r.dest = lab.Scenario.DestinationOf(o.Run)
	r.client = "mqlab " + r.step.Name + " " + o.Run
	r.log = newLog(o.Out, o.Role, lab.Product, lab.Name)
	return r, nil
}

func (r *role) run(ctx context.Context) int {
	g, err := gate.Dial(ctx, r.step.Name, func(err error) {
		r.o.Exit(ExitGateLost) // at once: without its gate a role must not go on
	})
	if err != nil {
		r.end(err)
		return ExitGateLost
	}
	r.gate = g
	working, stop := context.WithCancel(ctx)
	cutting := make(chan struct{})
	go func() { // ends with the work
		defer close(cutting)
		r.cut(working)
	}()
	err = r.work(ctx)
	stop()
	<-cutting
	return r.end(errors.Join(err, g.Close()))
}

// cut breaks the connections whenever the runner asks for it.
func (r *role) cut(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.gate.Cutting():
			n, err := cutConnections(r.gate.Address())
			pairs := []labs.Pair{number("connections", int64(n))}
			if err != nil {
				pairs = append(pairs, labs.Pair{Key: "error", Value: err.Error()})
			}
			r.log.line("cut", pairs...)
		}
	}
}

func (r *role) work(ctx context.Context) error {
	switch r.o.Role {
	case labs.RoleSetup:
		return r.setup(ctx)
	case labs.RoleProducer:
		return r.produce(ctx)
	case labs.RoleConsumer:
		return r.consume(ctx)
	}
	return r.inspectDB(ctx)
}

// end turns an error into the role's last line and its exit code.
func (r *role) end(err error) int {
	if err == nil {
		return ExitDone
	}
	fmt.Fprintf(r.o.Err, "mqlab role %s: %v\n", r.o.Role, err) //nolint:errcheck // nowhere left to say it
	code, kind := ExitFailed, "error"
	switch {
	case errors.Is(err, brokers.ErrConnectionLost):
		code, kind = ExitConnectionLost, "connection_lost"
	case errors.Is(err, brokers.ErrRefused), errors.Is(err, brokers.ErrAckRefused), errors.Is(err, brokers.ErrUnroutable):
		code, kind = ExitRefused, "refused"
	}
	r.log.line("failed", labs.Pair{Key: "errorType", Value: kind}, labs.Pair{Key: "error", Value: err.Error()})
	return code
}

func (r *role) storePath(name string) string { return filepath.Join(r.o.Store, name+".db") }

// stopSignals delivers SIGTERM and SIGINT; stop ends the watching.
func stopSignals() (came <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	return c, func() { signal.Stop(c) }
}
