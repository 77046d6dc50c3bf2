package compose

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mqlab/brokers"
)

// embedded is mqlab's own stand-in, in a process of its own.
type embedded struct{}

func (embedded) missing(context.Context, *Opener, string) error { return nil }

// embeddedTimeout bounds the start of a stand-in, which takes milliseconds.
const embeddedTimeout = 10 * time.Second

func (embedded) start(ctx context.Context, o *Opener, d brokers.Driver) (running, error) {
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
	var at brokers.Address
	p.ready = func(ctx context.Context) (string, error) {
		b, err := os.ReadFile(announce)
		if err != nil {
			return "", err
		}
		if at, err = brokers.ParseAddress(strings.TrimSpace(string(b))); err != nil {
			return "", err
		}
		return "", listens(ctx, port(at)) // after a kill the file is older than the broker
	}
	if _, err := p.awaitReady(ctx, embeddedTimeout); err != nil {
		return nil, failedStart(p, fmt.Errorf("start the embedded %s: %w", d.Name(), err))
	}
	p.origin = brokers.Origin{Product: d.Name(), Provider: Embedded, Version: o.Version, Address: at,
		Lacks: append(o.Lacks(d.Name()), brokers.Network)}
	return p, nil
}

// port is that of an address of our own, which always has one.
func port(at brokers.Address) int {
	n, err := strconv.Atoi(at.URL().Port())
	if err != nil {
		return 0
	}
	return n
}
