package compose

import (
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

// brokerDir makes a folder for one broker's data.
func (o *Opener) brokerDir(product string) (string, error) {
	parent := filepath.Join(o.State, "brokers")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the broker: %w", err)
	}
	dir, err := os.MkdirTemp(parent, product+"-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the broker: %w", err)
	}
	return dir, nil
}

// failedStart ends what was started and keeps the reason.
func failedStart(p *process, err error) error { return errors.Join(err, p.Release()) }

// unguarded is the age from which a folder without a guard counts as left
// behind; a guard writes its record within milliseconds.
const unguarded = time.Minute

// Sweep ends brokers whose guard was killed and removes their folders.
func (o *Opener) Sweep() error {
	parent := filepath.Join(o.State, "brokers")
	dirs, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for brokers without a guard: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, sweepOne(filepath.Join(parent, dir.Name())))
	}
	return errors.Join(errs...)
}

func sweepOne(dir string) error {
	var g guardRecord
	b, err := os.ReadFile(filepath.Join(dir, guardFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st, err := os.Stat(dir)
		if err != nil || time.Since(st.ModTime()) < unguarded {
			return nil
		}
		return os.RemoveAll(dir)
	case err != nil:
		return fmt.Errorf("look for brokers without a guard: %w", err)
	case json.Unmarshal(b, &g) != nil:
		return nil // it is being written
	}
	if brokers.ProcessStart(g.PID) == g.Start {
		return nil // guarded
	}
	if g.Group > 1 && brokers.ProcessStart(g.Group) == g.GroupStart && g.GroupStart != "" {
		if err := syscall.Kill(-g.Group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end a broker without a guard: %w", err)
		}
	}
	return os.RemoveAll(dir)
}
