package compose

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mqlab/brokers"
)

//go:embed rabbitmq
var templates embed.FS

// native is the real broker as a plain child process with its own ports and
// data.
type native struct{}

const (
	// nativeTimeout bounds one start; an idle machine needs about three seconds.
	nativeTimeout = 60 * time.Second
	// nativeTries is how often a start is tried when another process took a
	// port between its choosing and its binding.
	nativeTries = 3
)

func (native) missing(product string) error {
	if product != "rabbitmq" {
		return fmt.Errorf("%w for %s", ErrMissing, product)
	}
	_, err := rabbitmqServer()
	if err == nil {
		_, err = epmd()
	}
	return err
}

// rabbitmqServer finds the real start script: of RABBITMQ_HOME, else of the
// Debian package, whose command on the PATH is a wrapper that changes the user.
func rabbitmqServer() (string, error) {
	if home := os.Getenv("RABBITMQ_HOME"); home != "" {
		path := filepath.Join(home, "sbin", "rabbitmq-server")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: RABBITMQ_HOME is set, but there is no %s", ErrMissing, path)
		}
		return path, nil
	}
	const debian = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	if path, err := exec.LookPath("rabbitmq-server"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: no rabbitmq-server is installed (apt-get install --no-install-recommends rabbitmq-server, or set RABBITMQ_HOME)", ErrMissing)
}

func epmd() (string, error) {
	path, err := exec.LookPath("epmd")
	if err != nil {
		return "", fmt.Errorf("%w: no epmd is on the PATH; it comes with Erlang", ErrMissing)
	}
	return path, nil
}

func (native) start(ctx context.Context, o *Opener, d brokers.Driver) (*process, error) {
	var err error
	for range nativeTries {
		var p *process
		if p, err = startRabbitMQ(ctx, o, d); err == nil {
			return p, nil
		}
		if !strings.Contains(err.Error(), "eaddrinuse") {
			break
		}
	}
	return nil, err
}

// rabbitmqPorts are one node's own: messages, management, distribution, epmd.
type rabbitmqPorts struct{ amqp, admin, dist, epmd int }

func startRabbitMQ(ctx context.Context, o *Opener, d brokers.Driver) (*process, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	dir, err := o.brokerDir(d.Name())
	if err != nil {
		return nil, err
	}
	spec, at, err := rabbitmqSpec(dir, rabbitmqPorts{ports[0], ports[1], ports[2], ports[3]})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, err := o.startGuarded(spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	var version string
	err = p.await(ctx, func(ctx context.Context) (err error) {
		if err := listens(ctx, ports[0], ports[1]); err != nil {
			return err
		}
		version, err = brokers.Try(ctx, d, at)
		return err
	})
	if err != nil {
		return nil, failedStart(p, fmt.Errorf("start the native rabbitmq: %w", err))
	}
	p.origin = brokers.Origin{Product: d.Name(), Provider: Native, Version: version, Address: at}
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

func rabbitmqSpec(dir string, ports rabbitmqPorts) (guardSpec, brokers.Address, error) {
	server, err := rabbitmqServer()
	if err != nil {
		return guardSpec{}, brokers.Address{}, err
	}
	names, err := epmd()
	if err != nil {
		return guardSpec{}, brokers.Address{}, err
	}
	values := map[string]string{"AMQP_PORT": strconv.Itoa(ports.amqp), "ADMIN_PORT": strconv.Itoa(ports.admin)}
	for _, name := range []string{"rabbitmq.conf", "enabled_plugins"} {
		b, err := templates.ReadFile("rabbitmq/" + name)
		if err != nil {
			return guardSpec{}, brokers.Address{}, fmt.Errorf("configure rabbitmq: %w", err)
		}
		text := os.Expand(string(b), func(k string) string { return values[k] })
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return guardSpec{}, brokers.Address{}, fmt.Errorf("configure rabbitmq: %w", err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8",
		fmt.Sprintf("RABBITMQ_NODENAME=mqlab%d@localhost", ports.amqp), // unique on this machine while it runs
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(ports.dist),
		"ERL_EPMD_PORT=" + strconv.Itoa(ports.epmd), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"), "RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		// The default, none, makes a start two to three times as long here.
		"RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD=short", "RABBITMQ_ALLOW_INPUT=1", "RABBITMQ_LOG=-color",
		// quorum_tick_interval bounds the age of a quorum queue's numbers, in ms.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +A 4 -kernel inet_dist_use_interface {127,0,0,1} -rabbit quorum_tick_interval 200"}
	at, err := brokers.ParseAddress(fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/?management=http%%3A%%2F%%2F127.0.0.1%%3A%d", ports.amqp, ports.admin))
	// epmd in the foreground and in the broker's group: started by the broker it
	// would be a daemon that outlives it.
	commands := [][]string{{names, "-port", strconv.Itoa(ports.epmd), "-address", "127.0.0.1"}, {server, "-noinput"}}
	return guardSpec{Dir: dir, Env: env, Commands: commands}, at, err
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
