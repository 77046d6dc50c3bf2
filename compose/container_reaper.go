package compose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	box "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"mqlab/brokers"
)

// reaper is a container that removes what this process has made when the
// connection to it ends, in whatever way: testcontainers' Ryuk, or ours that
// speaks the same. It is not started through testcontainers, whose own cannot
// have another image and serves every process of one shell.
type reaper struct {
	disabled, privileged bool

	mu   sync.Mutex
	id   string
	conn net.Conn
}

// envReaper names another image of the reaper.
const envReaper = "MQLAB_IMAGE_RYUK"

const (
	reaperPort = "8080/tcp"
	// reaperTimeout bounds its start, which takes half a second.
	reaperTimeout = 30 * time.Second
	// Ryuk's own values, a minute and ten seconds, would leave more for longer.
	reaperFirst, reaperAgain = "10s", "5s"
)

// connect starts the reaper, once.
func (r *reaper) connect(ctx context.Context, o *Opener, e *engine) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id != "" {
		return nil
	}
	if err := e.sweep(ctx, o); err != nil {
		return err
	}
	if r.disabled {
		o.note("the reaper is disabled (TESTCONTAINERS_RYUK_DISABLED): when mqlab is killed, its containers stay until the next run in one")
		r.id = "none"
		return nil
	}
	if err := r.start(ctx, o, e); err != nil {
		return errors.Join(fmt.Errorf("start the reaper: %w%s", err, insideHelp()), r.end(e))
	}
	return nil
}

func (r *reaper) start(ctx context.Context, o *Opener, e *engine) error {
	host, err := publishedAt()
	if err != nil {
		return err
	}
	ref := os.Getenv(envReaper)
	if ref == "" {
		ref = testcontainers.ReaperDefaultImage //nolint:staticcheck // the name outside of its internal packages
	}
	ref = e.prefixed(ref)
	if _, err := e.image(ctx, o, envReaper, ref); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reaperTimeout)
	defer cancel()
	labels := o.labels(e, "reaper")
	delete(labels, labelSession) // it would remove itself
	port := network.MustParsePort(reaperPort)
	lasting := context.WithoutCancel(ctx) // as for a broker
	opts := client.ContainerCreateOptions{
		Config: &box.Config{Image: ref, Labels: labels, ExposedPorts: network.PortSet{port: {}},
			Env: []string{"RYUK_CONNECTION_TIMEOUT=" + reaperFirst, "RYUK_RECONNECTION_TIMEOUT=" + reaperAgain}},
		HostConfig: &box.HostConfig{AutoRemove: true, Privileged: r.privileged, Binds: []string{e.socket() + ":/var/run/docker.sock"},
			PortBindings: network.PortMap{port: {{HostIP: netip.MustParseAddr(host)}}}},
	}
	if err := e.order(lasting, func(ctx context.Context) error {
		made, err := e.cli.ContainerCreate(ctx, opts)
		r.id = made.ID
		return err
	}); err != nil {
		return err
	}
	if err := e.order(lasting, func(ctx context.Context) error {
		_, err := e.cli.ContainerStart(ctx, r.id, client.ContainerStartOptions{})
		return err
	}); err != nil {
		return err
	}
	return r.register(ctx, e, host, port)
}

// socket is where the engine's socket lies on its own machine.
func (e *engine) socket() string {
	if s := os.Getenv("TESTCONTAINERS_DOCKER_SOCKET_OVERRIDE"); s != "" {
		return s
	}
	if s, ok := strings.CutPrefix(e.cli.DaemonHost(), "unix://"); ok {
		return s
	}
	return "/var/run/docker.sock"
}

// register tells the reaper what to remove, as soon as it listens.
func (r *reaper) register(ctx context.Context, e *engine, host string, port network.Port) error {
	found, err := e.cli.ContainerInspect(ctx, r.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	bound := found.Container.NetworkSettings.Ports[port]
	if len(bound) == 0 {
		return fmt.Errorf("it has no port; its last lines: %s", brokers.LastWords(e.log(r.id)))
	}
	var last error
	for {
		if last = r.handshake(ctx, net.JoinHostPort(host, bound[0].HostPort), e.session); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer on port %s (%s names another image): %w; its last lines: %s", bound[0].HostPort, envReaper, last, brokers.LastWords(e.log(r.id)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *reaper) handshake(ctx context.Context, at, session string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return err
	}
	if err = c.SetDeadline(time.Now().Add(5 * time.Second)); err == nil {
		_, err = fmt.Fprintf(c, "label=%s=%s\n", labelSession, session)
	}
	if err == nil {
		var answer string
		if answer, err = bufio.NewReader(c).ReadString('\n'); err == nil && answer != "ACK\n" {
			err = fmt.Errorf("it answered %q", answer)
		}
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	r.conn = c // stays open until this process ends
	return nil
}

// close ends the reaper, which has nothing left to do.
func (r *reaper) close(e *engine) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end(e)
}

func (r *reaper) end(e *engine) error {
	id, conn := r.id, r.conn
	r.id, r.conn = "", nil
	if id == "" || id == "none" {
		return nil
	}
	err := e.remove(id) // first, so that it removes nothing
	if conn != nil {
		err = errors.Join(err, conn.Close())
	}
	return err
}
