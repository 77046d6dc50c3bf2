package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	Dir      string    `json:"dir,omitempty"`
	Started  time.Time `json:"started"`
	PID      int       `json:"pid,omitempty"` // the guard's
	Start    string    `json:"start,omitempty"`

	// Of a container: its ID, its engine's address, its image.
	Container string `json:"container,omitempty"`
	Engine    string `json:"engine,omitempty"`
	Image     string `json:"image,omitempty"`
}

// guarded reports whether the guard still runs.
func (k *Kept) guarded() bool { return brokers.ProcessStart(k.PID) == k.Start && k.Start != "" }

// Shown is the address without a password.
func (k *Kept) Shown() string {
	a, err := brokers.ParseAddress(k.Address)
	if err != nil {
		return "?"
	}
	return a.String()
}

// Log is what a kept broker has written so far: the end of it for a container,
// all for a process.
func (o *Opener) Log(ctx context.Context, k *Kept) (io.ReadCloser, error) {
	if k.Container != "" {
		return o.containerLog(ctx, k)
	}
	f, err := os.Open(filepath.Join(k.Dir, logFile))
	if err != nil {
		return nil, fmt.Errorf("read the broker's log: %w", err)
	}
	return f, nil
}

func (o *Opener) keptFile(product string) string {
	return filepath.Join(o.State, "kept", product+".json")
}

// Kept returns the broker that is kept for a product, or nil. The record of one
// that has ended is removed.
func (o *Opener) Kept(ctx context.Context, product string) (*Kept, error) {
	k, err := o.readKept(product)
	if k == nil || err != nil {
		return nil, err
	}
	alive := k.guarded()
	if k.Container != "" {
		if alive, err = o.boxedRuns(ctx, k); err != nil {
			return nil, fmt.Errorf("look for a kept %s: %w (remove %s if nothing is kept)", product, err, o.keptFile(product))
		}
	}
	if !alive {
		return nil, o.forget(product)
	}
	return k, nil
}

// keeps reports whether a container is the one that is kept for a product.
func (o *Opener) keeps(id, product string) bool {
	k, err := o.readKept(product)
	return err != nil || k != nil && k.Container == id // in doubt it stays
}

// readKept reads the record of a kept broker, which may have ended.
func (o *Opener) readKept(product string) (*Kept, error) {
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
	origin := brokers.Origin{Product: d.Name(), Provider: k.Provider, Version: k.Version, Image: k.Image, Address: at, Adopted: true}
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
	if k, err := o.Kept(ctx, product); k != nil || err != nil {
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
	if err := p.missing(ctx, o, product); err != nil && !errors.Is(err, errNotPulled) {
		return nil, false, fmt.Errorf("start a %s %s: %w", want, product, err)
	}
	run, err := p.start(ctx, o, d)
	if err != nil {
		return nil, false, err
	}
	return o.keep(ctx, run)
}

// Keep lets a broker go on that Open has started for a run; nil for one that it
// has adopted. Of two of one product the first stays, with started false.
func (o *Opener) Keep(ctx context.Context, c brokers.Control) (k *Kept, started bool, err error) {
	run, ok := c.(running)
	if !ok {
		return nil, false, nil
	}
	select {
	case <-run.Died():
		return nil, false, errors.Join(fmt.Errorf("keep the %s: it has ended", run.Origin().Product), run.Release())
	default:
		return o.keep(ctx, run)
	}
}

func (o *Opener) keep(ctx context.Context, run running) (k *Kept, started bool, err error) {
	record, origin := run.record(), run.Origin()
	k = &record
	k.Product, k.Provider, k.Version, k.Address, k.Started = origin.Product, origin.Provider, origin.Version, origin.Address.Secret(), time.Now().UTC()
	if err := o.saveKept(k); err != nil {
		err = errors.Join(err, run.Release())
		if other, _ := o.Kept(ctx, k.Product); other != nil && errors.Is(err, fs.ErrExist) {
			return other, false, nil // another one was up first
		}
		return nil, false, err
	}
	// Killed before this line, the guard or the reaper ends its broker and the record is stale.
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
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
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
	k, err := o.Kept(ctx, product)
	if k == nil || err != nil {
		return nil, err
	}
	if k.Container != "" {
		if err := o.downContainer(ctx, k); err != nil {
			return nil, err
		}
		return k, o.forget(product)
	}
	if err := syscall.Kill(k.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("end the kept %s: %w", product, err)
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for k.guarded() {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("end the kept %s: its guard %d goes on: %w", product, k.PID, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return k, o.forget(product)
}
