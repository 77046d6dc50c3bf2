package labs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mqlab/brokers"
)

// leftover is the record of a run that goes on: what the next run has to remove
// from the broker if this one is killed. It holds no secret.
type leftover struct {
	Run         string              `json:"run"`
	PID         int                 `json:"pid"`
	Start       string              `json:"start"` // of the process, so that a reused pid is not taken for it
	Product     string              `json:"product"`
	Address     string              `json:"address"` // without the password
	Destination brokers.Destination `json:"destination"`
	Group       string              `json:"group,omitempty"` // who reads it
}

// remember writes the record of a run on a broker that outlives it; forget
// removes it.
func (r *Runner) remember(l *Lab, id string, d brokers.Destination) (forget func() error, err error) {
	if !r.Control.Origin().Adopted {
		return func() error { return nil }, nil
	}
	rec := leftover{Run: id, PID: os.Getpid(), Start: brokers.ProcessStart(os.Getpid()), Product: l.Product,
		Address: r.Control.Origin().Address.String(), Destination: d, Group: d.Group}
	b, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("remember the run: %w", err)
	}
	dir := filepath.Join(r.State, "runs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("remember the run: %w", err)
	}
	path := filepath.Join(dir, id+".json")
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("remember the run: %w", err), remove(path+".new"))
	}
	if err := os.Rename(path+".new", path); err != nil { // whole or not at all: a torn record could never be swept
		return nil, fmt.Errorf("remember the run: %w", err)
	}
	return func() error { return remove(path) }, nil
}

// remove deletes a file; one that is gone is fine, another run may have swept it.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lives reports whether the process of the run is still there. Where the system
// could not say when it began, its pid has to do.
func (l leftover) lives() bool {
	began := brokers.ProcessStart(l.PID)
	return began != "" && (began == l.Start || l.Start == "")
}

// Sweep removes from the broker what killed runs have left on it and returns
// how many there were.
func (r *Runner) Sweep(ctx context.Context) (int, error) {
	files, err := leftovers(r.State)
	if err != nil {
		return 0, err
	}
	swept := 0
	var errs []error
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its run has just ended
		}
		var rec leftover
		if err == nil {
			err = json.Unmarshal(b, &rec)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read the record of a killed run, %s: %w", f, err))
			continue
		}
		o := r.Control.Origin()
		if rec.Product != o.Product || rec.Address != o.Address.String() || rec.lives() {
			continue
		}
		rec.Destination.Suffix, rec.Destination.Group = rec.Run, rec.Group
		if err := r.Driver.Remove(ctx, o.Address, rec.Destination); err != nil {
			errs = append(errs, fmt.Errorf("remove what the killed run %s left: %w", rec.Run, err))
			continue
		}
		errs = append(errs, remove(f))
		swept++
	}
	return swept, errors.Join(errs...)
}

// leftovers lists the records of runs, living ones included.
func leftovers(state string) ([]string, error) {
	dir := filepath.Join(state, "runs")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for killed runs: %w", err)
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// Forget removes the records of killed runs on a broker that is gone, with all
// that they had left there. The address is one without its password.
func Forget(state, address string) error {
	files, err := leftovers(state)
	errs := []error{err}
	for _, f := range files {
		b, err := os.ReadFile(f)
		var rec leftover
		if err != nil || json.Unmarshal(b, &rec) != nil {
			continue // Sweep reports it
		}
		if rec.Address == address && !rec.lives() {
			errs = append(errs, remove(f))
		}
	}
	return errors.Join(errs...)
}
