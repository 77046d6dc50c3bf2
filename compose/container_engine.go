package compose

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"mqlab/brokers"
)

// engine is a container engine that has answered.
type engine struct {
	cli     *client.Client
	session string // marks what this process has made
	prefix  string // before the names of images of the public hub
	reaper  *reaper
	stuck   atomic.Bool // it has left an order without an answer
}

// engines remembers the engine of an Opener once it has answered.
type engines struct {
	mu     sync.Mutex
	found  *engine
	silent error // of one that was given time enough and did not answer
}

const envEngine = "DOCKER_HOST"

// engine finds the engine of this machine, within ctx.
func (o *Opener) engine(ctx context.Context) (*engine, error) {
	o.engines.mu.Lock()
	defer o.engines.mu.Unlock()
	if o.engines.found != nil {
		return o.engines.found, nil
	}
	if o.engines.silent != nil {
		return nil, o.engines.silent
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, engineNamed)
	defer cancel()
	tclog.SetDefault(tclog.NewNoopLogger()) // it would write to standard error
	cli, err := connectEngine(ctx, os.Getenv(envEngine))
	if err != nil {
		if time.Since(start) > 2*engineAuto {
			o.engines.silent = err
		}
		return nil, err
	}
	cfg := testcontainers.ReadConfig().Config
	e := &engine{cli: cli, session: strings.ToLower(rand.Text()), prefix: cfg.HubImageNamePrefix}
	e.reaper = &reaper{disabled: cfg.RyukDisabled, privileged: cfg.RyukPrivileged}
	o.engines.found = e
	return e, nil
}

// connectEngine connects to the engine at host, or to the one that
// testcontainers finds: of a context, the usual socket, a rootless one.
func connectEngine(ctx context.Context, host string) (*client.Client, error) {
	if err := local(host); err != nil {
		return nil, err
	}
	var cli *client.Client
	var err error
	if host != "" {
		cli, err = client.New(client.FromEnv, client.WithHost(host))
	} else {
		var found *testcontainers.DockerClient
		if found, err = testcontainers.NewDockerClientWithOpts(ctx); err == nil {
			cli = found.Client
		}
	}
	if err == nil {
		if err = local(cli.DaemonHost()); err != nil {
			return nil, err
		}
		host = cli.DaemonHost()
		var p client.PingResult
		if p, err = cli.Ping(ctx, client.PingOptions{}); err == nil && p.APIVersion != "" && versions.LessThan(p.APIVersion, client.MinAPIVersion) {
			return nil, fmt.Errorf("the container engine at %s is too old: its API is %s, mqlab needs %s at least (Docker 19.03)", host, p.APIVersion, client.MinAPIVersion)
		}
	}
	switch {
	case err == nil:
		return cli, nil
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied"):
		return nil, fmt.Errorf("the container engine at %s may not be used by this user (add it to the group of the socket, or set %s to a rootless engine)", where(host), envEngine)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no container engine answered in time at %s: %w (%s says where it is)", where(host), context.Cause(ctx), envEngine)
	}
	return nil, fmt.Errorf("no container engine answers at %s (start one, or set %s): %s", where(host), envEngine, strings.ReplaceAll(err.Error(), "\n", "; "))
}

func where(host string) string {
	if host == "" {
		return "the usual places"
	}
	return host
}

// local refuses an engine on another machine: brokers are published on the
// loopback interface of theirs.
func local(host string) error {
	u, err := url.Parse(host)
	if err != nil {
		return fmt.Errorf("%s is not an address: %q", envEngine, host)
	}
	switch {
	case host == "", u.Scheme == "unix", u.Scheme == "npipe", u.Hostname() == "localhost", strings.HasPrefix(u.Hostname(), "127."), u.Hostname() == "::1":
		return nil
	}
	return fmt.Errorf("the container engine at %s is on another machine, where brokers could not be reached; use one of this machine, or start a broker there (compose/*/compose.yml) and name its URL", host)
}

// The labels of everything that mqlab makes on an engine.
const (
	labelState   = "mqlab.state"   // the state folder, for listings
	labelSession = "mqlab.session" // what the reaper removes when mqlab is gone
	labelOwner   = "mqlab.owner"   // host, process and its start, for the sweep
	labelProduct = "mqlab.product"
)

func (o *Opener) labels(e *engine, product string) map[string]string {
	return map[string]string{labelState: o.State, labelSession: e.session, labelOwner: owner(), labelProduct: product}
}

// owner names this process in a way that no later one has.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s %d %s %s", host, os.Getpid(), brokers.ProcessStart(os.Getpid()), pidNamespace())
}

// pidNamespace tells apart mqlabs in containers that share a host's name.
func pidNamespace() string {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "?"
	}
	return ns
}

// sweep removes the containers of this state folder whose mqlab was killed
// where no reaper did it.
func (e *engine) sweep(ctx context.Context, o *Opener) error {
	var found client.ContainerListResult
	err := e.order(ctx, func(ctx context.Context) (err error) {
		found, err = e.cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", labelState+"="+o.State)})
		return err
	})
	if err != nil {
		return fmt.Errorf("look for containers of killed runs: %w", err)
	}
	var errs []error
	for _, c := range found.Items {
		if abandoned(c.Labels[labelOwner]) && !o.keeps(c.ID, c.Labels[labelProduct]) {
			errs = append(errs, e.remove(c.ID))
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether an owner on this host is gone. Of the processes of
// another host or namespace nothing is known.
func abandoned(owner string) bool {
	host, err := os.Hostname()
	if err != nil {
		return false
	}
	var at, start, ns string
	var pid int
	if _, err := fmt.Sscan(owner, &at, &pid, &start, &ns); err != nil || at != host || ns != pidNamespace() {
		return false
	}
	return brokers.ProcessStart(pid) != start
}

// Close lets go of the engine, if one was used. Brokers are released before.
func (o *Opener) Close() error {
	o.engines.mu.Lock()
	defer o.engines.mu.Unlock()
	e := o.engines.found
	if e == nil {
		return nil
	}
	o.engines.found = nil
	return errors.Join(e.reaper.close(e), e.cli.Close())
}
