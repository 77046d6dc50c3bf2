package compose

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mqlab/brokers"
)

//go:embed rabbitmq kafka rocketmq pulsar
var templates embed.FS

// native is the real broker as a plain child process with its own ports and
// data.
type native struct{}

const (
	// nativeTimeout bounds one start; an idle machine needs about three seconds.
	nativeTimeout = 90 * time.Second
	// nativeTries is how often a start is tried when another process took a
	// port between its choosing and its binding.
	nativeTries = 3
)

// recipe is how one product is started as a plain process.
type recipe interface {
	// missing says why the product cannot be started here, or nil.
	missing() error
	// node lays out a broker in a folder of its own: its configuration is
	// written, its ports are chosen.
	node(ctx context.Context, dir string) (*node, error)
}

// node is one broker that can be started.
type node struct {
	spec    guardSpec
	at      brokers.Address
	listens []int // ports on which it accepts connections before it is asked anything
	version string
	// nudge asks a broker that listens to get on with its start; nil: none does.
	nudge func(context.Context) error
}

// ready asks whether the broker listens, nudges it, and sends a message through.
func (n *node) ready(d brokers.Driver) func(context.Context) (version string, err error) {
	return func(ctx context.Context) (string, error) {
		err := listens(ctx, n.listens...)
		if err == nil && n.nudge != nil {
			err = n.nudge(ctx)
		}
		if err != nil {
			return "", err
		}
		return brokers.Try(ctx, d, n.at)
	}
}

// recipes are the products that can be started as plain processes.
func recipes() map[string]recipe {
	return map[string]recipe{"rabbitmq": rabbitmqRecipe{}, "kafka": kafkaBroker(), "rocketmq": rocketmqBroker(), "pulsar": pulsarBroker()}
}

func recipeOf(product string) (recipe, error) {
	if r, ok := recipes()[product]; ok {
		return r, nil
	}
	return nil, fmt.Errorf("%w for %s", ErrMissing, product)
}

func (native) missing(_ context.Context, _ *Opener, product string) error {
	r, err := recipeOf(product)
	if err != nil {
		return err
	}
	return r.missing()
}

func (native) start(ctx context.Context, o *Opener, d brokers.Driver) (running, error) {
	r, err := recipeOf(d.Name())
	if err != nil {
		return nil, err
	}
	for range nativeTries {
		var p *process
		if p, err = startNative(ctx, o, d, r); err == nil {
			return p, nil
		}
		if !portTaken(err) {
			break
		}
	}
	return nil, err
}

// portTaken looks for what the brokers say when they cannot bind a port: Erlang,
// Java's NIO, Netty.
func portTaken(err error) bool {
	return slices.ContainsFunc([]string{"eaddrinuse", "Address already in use", "already in use", "already allocated"}, func(s string) bool {
		return strings.Contains(err.Error(), s)
	})
}

func startNative(ctx context.Context, o *Opener, d brokers.Driver, r recipe) (*process, error) {
	dir, err := o.brokerDir(d.Name())
	if err != nil {
		return nil, err
	}
	n, err := r.node(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure %s: %w", d.Name(), err), os.RemoveAll(dir))
	}
	p, err := o.startGuarded(n.spec)
	if err != nil {
		return nil, err
	}
	p.ready = n.ready(d)
	version, err := p.awaitReady(ctx, nativeTimeout)
	if err != nil {
		return nil, failedStart(p, fmt.Errorf("start the native %s: %w", d.Name(), err))
	}
	if n.version != "" {
		version = n.version
	}
	p.origin = brokers.Origin{Product: d.Name(), Provider: Native, Version: version, Address: n.at, Lacks: []brokers.Capability{brokers.Network}}
	return p, nil
}

// listens reports whether something accepts connections on every port.
func listens(ctx context.Context, ports ...int) error {
	for _, port := range ports {
		var n net.Dialer
		c, err := n.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// configure writes the product's templates into a folder with ${NAME} replaced.
func configure(product, dir string, values map[string]string, names ...string) error {
	for _, name := range names {
		b, err := templates.ReadFile(product + "/" + name)
		if err != nil {
			return err
		}
		text := os.Expand(string(b), func(k string) string { return values[k] })
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// free reports whether nobody listens on a port of any interface now.
func free(port int) bool {
	ln, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // it does not wait
	return err == nil && ln.Close() == nil
}

// freePorts finds ports of 127.0.0.1 that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer ln.Close() //nolint:errcheck // held only so that the ports differ
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
