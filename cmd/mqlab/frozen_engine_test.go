package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// frozenEngine stands between mqlab and the real engine and can stop to pass
// anything on.
type frozenEngine struct {
	engine string // the real one's socket
	ice    chan struct{}
	once   sync.Once
}

// newFrozen listens in the place of the real engine.
func newFrozen(t *testing.T) (e *frozenEngine, host string) {
	t.Helper()
	engine, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok {
		engine = "/var/run/docker.sock"
	}
	e = &frozenEngine{engine: engine, ice: make(chan struct{})}
	l, host := listenOn(t)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		l.Close() //nolint:errcheck // it goes with the process
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.pass(ctx, c) })
		}
	})
	return e, host
}

// freeze is for good.
func (e *frozenEngine) freeze() { e.once.Do(func() { close(e.ice) }) }

// pass copies both ways until one side ends.
func (e *frozenEngine) pass(ctx context.Context, c net.Conn) {
	var d net.Dialer
	up, err := d.DialContext(ctx, "unix", e.engine)
	if err != nil {
		c.Close() //nolint:errcheck // there is nothing to pass on
		return
	}
	stop := context.AfterFunc(ctx, func() {
		c.Close()  //nolint:errcheck // it ends the copying
		up.Close() //nolint:errcheck // as above
	})
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{up, c}, {c, up}} {
		both.Go(func() {
			io.Copy(&cold{ctx, e, way[0]}, way[1])                //nolint:errcheck // its end is enough
			way[0].(interface{ CloseWrite() error }).CloseWrite() //nolint:errcheck,forcetypeassert // as above
		})
	}
	both.Wait()
	c.Close()  //nolint:errcheck // nothing more comes
	up.Close() //nolint:errcheck // as above
}

// cold writes until it freezes.
type cold struct {
	ctx context.Context
	e   *frozenEngine
	w   io.Writer
}

func (c *cold) Write(b []byte) (int, error) {
	select {
	case <-c.e.ice:
		<-c.ctx.Done()
		return 0, errors.New("frozen")
	default:
		return c.w.Write(b)
	}
}

// TestEngineFreezes: what has begun goes on, and the end is bounded though the
// engine answers no order; that it did not is said. The reaper removes the rest.
func TestEngineFreezes(t *testing.T) {
	t.Parallel()
	withEngine(t)
	e, host := newFrozen(t)
	m := newMqlab(t)
	p, out := m.with(t, "DOCKER_HOST="+host, "TESTCONTAINERS_DOCKER_SOCKET_OVERRIDE="+e.engine).start("run", "kafka/basic", "--broker", "container")
	within(t, time.Minute, "a lab runs", func() bool {
		runs, err := filepath.Glob(m.dir + "/runs/kafka/*/*")
		return err == nil && len(runs) > 0
	})
	e.freeze()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }() // ends with mqlab
	select {
	case <-ended: //nolint:errcheck // its code is looked at
	case <-time.After(2 * time.Minute):
		kill(t, p)
		t.Fatal("mqlab waits for the engine for ever")
	}
	if code := p.ProcessState.ExitCode(); code != 0 || !strings.Contains(out.String(), "kafka/basic  broker: container ") || !strings.Contains(out.String(), "mqlab: remove the container ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	within(t, reaped, "everything is gone", func() bool { return m.engineLists() == "" })
}
