package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"mqlab/brokers"
)

// Kept is a broker that `mqlab broker up` has left running.
type Kept struct {
	Product  string    `json:"product"`
	Provider string    `json:"provider"`
	Version  string    `json:"version"`
	Address  string    `json:"address"` // whole; the file is readable by its owner alone
	Dir      string    `json:"dir"`
	Started  time.Time `json:"started"`
	PID      int       `json:"pid"` // the guard's
	Start    string    `json:"start"`
}

// Alive reports whether the guard still runs.
func (k *Kept) Alive() bool { return brokers.ProcessStart(k.PID) == k.Start && k.Start != "" }

// Shown is the address without a password.
func (k *Kept) Shown() string {
	a, err := brokers.ParseAddress(k.Address)
	if err != nil {
		return "?"
	}
	return a.String()
}

// Log is the path of the broker's output.
func (k *Kept) Log() string { return filepath.Join(k.Dir, logFile) }

func (o *Opener) keptFile(product string) string {
	return filepath.Join(o.State, "kept", product+".json")
}

// Kept returns the broker that is kept for a product, or nil. The record of one
// that has ended is removed.
func (o *Opener) Kept(product string) (*Kept, error) {
	b, err := os.ReadFile(o.keptFile(product))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var k Kept
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		return nil, fmt.Errorf("look for a kept %s: read %s: %w (remove the file if nothing is kept)", product, o.keptFile(product), err)
	}
	if !k.Alive() {
		return nil, o.forget(product)
	}
	return &k, nil
}

// forget removes the record of a broker that has ended; another mqlab may have
// done it before.
func (o *Opener) forget(product string) error {
	if err := os.Remove(o.keptFile(product)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the kept %s: %w", product, err)
	}
	return nil
}

// adoptKept takes a kept broker for a run, if it answers.
func (o *Opener) adoptKept(ctx context.Context, k *Kept, d brokers.Driver) (brokers.Control, error) {
	at, err := brokers.ParseAddress(k.Address)
	if err == nil {
		_, err = d.Probe(ctx, at)
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the kept %s: %w (mqlab broker down %s ends it)", d.Name(), err, d.Name())
	}
	origin := brokers.Origin{Product: d.Name(), Provider: k.Provider, Version: k.Version, Address: at, Adopted: true}
	if k.Provider == Embedded {
		origin.Lacks = o.Lacks(k.Product)
	}
	return adopted{origin}, nil
}

// Up starts a broker that goes on after mqlab; one that is kept already is
// returned as it is, with started false.
func (o *Opener) Up(ctx context.Context, product, want string) (k *Kept, started bool, err error) {
	d, err := o.Registry.Driver(product)
	if err != nil {
		return nil, false, err
	}
	if k, err := o.Kept(product); k != nil || err != nil {
		if k != nil && want != Auto && want != k.Provider {
			return nil, false, fmt.Errorf("a %s %s is kept running already; mqlab broker down %s ends it", k.Provider, product, product)
		}
		return k, false, err
	}
	if want == Auto {
		want = Native
	}
	p, err := providerOf(want)
	if err != nil {
		return nil, false, err
	}
	if err := p.missing(product); err != nil {
		return nil, false, fmt.Errorf("start a %s %s: %w", want, product, err)
	}
	run, err := p.start(ctx, o, d)
	if err != nil {
		return nil, false, err
	}
	k = &Kept{Product: product, Provider: want, Version: run.origin.Version, Address: run.origin.Address.Secret(), Dir: run.dir,
		Started: time.Now().UTC(), PID: run.guard.Process.Pid, Start: brokers.ProcessStart(run.guard.Process.Pid)}
	if err := o.saveKept(k); err != nil {
		err = errors.Join(err, run.Release())
		if other, _ := o.Kept(product); other != nil && errors.Is(err, fs.ErrExist) {
			return other, false, nil // another one was up first
		}
		return nil, false, err
	}
	// Killed before this line, the guard ends its broker and the record is stale.
	return k, true, run.keep()
}

// saveKept writes the record whole and under its name only if there is none:
// of two that start at once one gives way.
func (o *Opener) saveKept(k *Kept) error {
	path := o.keptFile(k.Product)
	b, err := json.Marshal(k)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	fresh := fmt.Sprintf("%s.%d", path, k.PID)
	if err == nil {
		err = os.WriteFile(fresh, b, 0o600)
	}
	if err == nil {
		err = errors.Join(os.Link(fresh, path), os.Remove(fresh))
	}
	if err != nil {
		return fmt.Errorf("remember the kept %s: %w", k.Product, err)
	}
	return nil
}

// downTimeout bounds the end of a kept broker, which takes milliseconds.
const downTimeout = 20 * time.Second

// Down ends a kept broker and returns when its guard is gone; nil when there
// was none.
func (o *Opener) Down(ctx context.Context, product string) (*Kept, error) {
	k, err := o.Kept(product)
	if k == nil || err != nil {
		return nil, err
	}
	if err := syscall.Kill(k.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("end the kept %s: %w", product, err)
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for k.Alive() {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("end the kept %s: its guard %d goes on: %w", product, k.PID, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return k, o.forget(product)
}
