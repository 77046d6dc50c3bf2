package compose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"mqlab/brokers"
)

// container is the real broker in a container of an engine on this machine, as
// its compose.yml describes it.
type container struct{}

// engineAuto bounds the question whether there is an engine when nobody asked
// for one; engineNamed when somebody did.
const engineAuto, engineNamed = 500 * time.Millisecond, 5 * time.Second

// errNotPulled says that the engine has not got an image yet.
var errNotPulled = errors.New("the image is not there")

// imageVariable is the variable that names another image for a product.
func imageVariable(product string) string { return "MQLAB_IMAGE_" + strings.ToUpper(product) }

// containerAddress forms the broker's address out of the variables of its compose.yml.
func containerAddress(product string, v variables) (brokers.Address, error) {
	at := v["MQLAB_HOST"] + ":" + v["MQLAB_PORT"]
	admin := "http%3A%2F%2F" + v["MQLAB_HOST"] + "%3A" + v["MQLAB_ADMIN_PORT"]
	switch product {
	case "rabbitmq":
		return brokers.ParseAddress("amqp://guest:guest@" + at + "/?management=" + admin)
	case "pulsar":
		return brokers.ParseAddress("pulsar://" + at + "?admin=" + admin)
	}
	return brokers.ParseAddress(product + "://" + at)
}

// containerVariables chooses what a compose.yml leaves open. The ports are
// chosen here and not by the engine: a broker has to know the one under which
// it is found, and it must stay the same over a restart.
func containerVariables() (variables, error) {
	host, err := publishedAt()
	if err != nil {
		return nil, err
	}
	for {
		ports, err := freePorts(2)
		if err != nil {
			return nil, err
		}
		if d := ports[0] - ports[1]; d < -2 || d > 2 { // inside, RocketMQ takes the neighbours too
			second := strconv.Itoa(ports[1])
			return variables{"MQLAB_HOST": host, "MQLAB_PORT": strconv.Itoa(ports[0]), "MQLAB_ADMIN_PORT": second, "MQLAB_BROKER_PORT": second}, nil
		}
	}
}

// envHost is testcontainers' variable for where published ports are found.
const envHost = "TESTCONTAINERS_HOST_OVERRIDE"

// publishedAt is the address on which ports are published and found.
func publishedAt() (string, error) {
	host := os.Getenv(envHost)
	if host == "" || host == "localhost" {
		return "127.0.0.1", nil
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() {
		return "", fmt.Errorf("%s is %q: want the IPv4 address under which the engine's ports are found from here", envHost, host)
	}
	return host, nil
}

// insideHelp is what helps where mqlab runs in a container itself and the
// engine does not.
func insideHelp() string {
	if os.Getenv(envHost) == "" && exists("/.dockerenv") {
		return fmt.Sprintf(" (mqlab runs in a container: if the engine does not, set %s to the address under which the engine's ports are found, often the gateway)", envHost)
	}
	return ""
}

func (container) missing(ctx context.Context, o *Opener, product string) error {
	e, err := o.engine(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	c, err := composeOf(product, variables{})
	if err != nil {
		return err
	}
	ref := e.prefixed(c.Image)
	if _, err := e.look(ctx, ref); errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w: %s (mqlab broker install %s --broker container pulls it; without a registry: scripts/images.sh)", ErrMissing, errNotPulled, ref, product)
	} else if err != nil {
		return fmt.Errorf("%w: look for the image %s: %w", ErrMissing, ref, err)
	}
	return nil
}

// start brings a broker up; a port that was taken in the meantime is chosen
// again.
func (container) start(ctx context.Context, o *Opener, d brokers.Driver) (running, error) {
	e, err := o.engine(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %s in a container: %w", d.Name(), err)
	}
	for range nativeTries {
		var b *boxed
		if b, err = e.run(ctx, o, d); err == nil {
			return b, nil
		}
		if !portTaken(err) {
			break
		}
	}
	help := ""
	if full(err) && !strings.Contains(err.Error(), spaceHelp) { // of a pull it is said already
		help = spaceHelp
	}
	return nil, fmt.Errorf("start %s in a container: %w%s", d.Name(), err, help)
}

// run starts one container and waits until a message goes through.
func (e *engine) run(ctx context.Context, o *Opener, d brokers.Driver) (*boxed, error) {
	v, err := containerVariables()
	if err != nil {
		return nil, err
	}
	c, err := composeOf(d.Name(), v)
	if err != nil {
		return nil, err
	}
	at, err := containerAddress(d.Name(), v)
	if err != nil {
		return nil, err
	}
	image, err := e.image(ctx, o, imageVariable(d.Name()), e.prefixed(c.Image))
	if err != nil {
		return nil, err
	}
	if err := e.reaper.connect(ctx, o, e); err != nil {
		return nil, err
	}
	b := &boxed{engine: e, died: make(chan struct{})}
	b.origin = brokers.Origin{Product: d.Name(), Provider: Container, Image: image, Address: at}
	b.ready = func(ctx context.Context) (string, error) {
		if err := nudgeContainer(ctx, d.Name(), v); err != nil {
			return "", err
		}
		return brokers.Try(ctx, d, at)
	}
	if b.id, err = e.create(ctx, c, d.Name(), o.labels(e, d.Name())); err != nil {
		return nil, err
	}
	if err := b.begin(ctx); err != nil {
		return nil, errors.Join(err, b.Release())
	}
	if b.origin.Version, err = b.awaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w%s", err, insideHelp()), b.Release())
	}
	return b, nil
}

// nudgeContainer asks RocketMQ's broker to register at once, as for a process.
func nudgeContainer(ctx context.Context, product string, v variables) error {
	port, err := strconv.Atoi(v["MQLAB_BROKER_PORT"])
	if product != "rocketmq" || v["MQLAB_HOST"] != "127.0.0.1" || err != nil {
		return nil
	}
	return register(ctx, port)
}

// create makes a container with the files that its compose.yml mounts. The
// files are copied, so that it does not matter where the engine sees them.
func (e *engine) create(ctx context.Context, c *service, product string, labels map[string]string) (string, error) {
	opts, err := c.options(labels)
	if err != nil {
		return "", err
	}
	opts.Config.Image = e.prefixed(c.Image)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	// An engine goes on when its caller is gone, so that it would be lost.
	ctx = context.WithoutCancel(ctx)
	var made client.ContainerCreateResult
	err = e.order(ctx, func(ctx context.Context) (err error) {
		made, err = e.cli.ContainerCreate(ctx, opts)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create a container of %s: %w", opts.Config.Image, err)
	}
	files, err := c.files(product)
	if err == nil {
		err = e.order(ctx, func(ctx context.Context) error {
			_, err := e.cli.CopyToContainer(ctx, made.ID, client.CopyToContainerOptions{DestinationPath: "/", Content: files})
			return err
		})
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("copy the configuration of %s into its container: %w", product, err), e.remove(made.ID))
	}
	return made.ID, nil
}

// remove ends a container and removes it with its anonymous volumes; one that
// is gone already is none.
func (e *engine) remove(id string) error {
	err := e.order(context.Background(), func(ctx context.Context) error {
		_, err := e.cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsConflict(err) { // somebody else removes it now
			r := e.cli.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: "removed"})
			select {
			case <-r.Result:
				return nil
			case err = <-r.Error:
			}
		}
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the container %.12s: %w", id, err)
	}
	return nil
}

// log is what logs gives, or why it gives nothing.
func (e *engine) log(id string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), engineNamed)
	defer cancel()
	b, err := e.logs(ctx, id)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// logs is the end of what a container has written, both streams as they came.
func (e *engine) logs(ctx context.Context, id string) ([]byte, error) {
	r, err := e.cli.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "10000"})
	if err != nil {
		return nil, fmt.Errorf("read the log of the container %.12s: %w", id, err)
	}
	defer r.Close() //nolint:errcheck // it is only read
	b, err := joinStreams(r)
	return b[max(0, len(b)-maxLog):], err
}
