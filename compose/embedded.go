package compose

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mqlab/brokers"
)

// embedded is mqlab's own stand-in, in a process of its own.
type embedded struct{}

func (embedded) missing(string) error { return nil }

// embeddedTimeout bounds the start of a stand-in, which takes milliseconds.
const embeddedTimeout = 10 * time.Second

func (embedded) start(ctx context.Context, o *Opener, d brokers.Driver) (*process, error) {
	dir, err := o.brokerDir(d.Name())
	if err != nil {
		return nil, err
	}
	announce := filepath.Join(dir, "address")
	argv := append(append([]string(nil), o.Program...), "embedded", d.Name(), "--announce", announce, "--dir", filepath.Join(dir, "data"))
	p, err := o.startGuarded(guardSpec{Dir: dir, Commands: [][]string{argv}, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, embeddedTimeout)
	defer cancel()
	var at brokers.Address
	err = p.await(ctx, func(context.Context) error {
		b, err := os.ReadFile(announce)
		if err != nil {
			return err
		}
		at, err = brokers.ParseAddress(strings.TrimSpace(string(b)))
		return err
	})
	if err != nil {
		return nil, failedStart(p, fmt.Errorf("start the embedded %s: %w", d.Name(), err))
	}
	p.origin = brokers.Origin{Product: d.Name(), Provider: Embedded, Version: o.Version, Address: at,
		Lacks: o.Lacks(d.Name())}
	return p, nil
}
