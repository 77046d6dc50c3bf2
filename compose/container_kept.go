package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	box "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// engineOf connects to the engine that a kept container runs on, whatever the
// environment says now. The caller closes it.
func engineOf(ctx context.Context, k *Kept) (*engine, error) {
	ctx, cancel := context.WithTimeout(ctx, engineNamed)
	defer cancel()
	cli, err := connectEngine(ctx, k.Engine)
	if err != nil {
		return nil, err
	}
	return &engine{cli: cli}, nil
}

// boxedRuns asks the engine whether a kept container runs. One that has ended
// is removed: nobody else would.
func (o *Opener) boxedRuns(ctx context.Context, k *Kept) (bool, error) {
	e, err := engineOf(ctx, k)
	if err != nil {
		return false, err
	}
	defer e.cli.Close() //nolint:errcheck // nothing is left to say to it
	var c client.ContainerInspectResult
	err = e.order(ctx, func(ctx context.Context) (err error) {
		c, err = e.cli.ContainerInspect(ctx, k.Container, client.ContainerInspectOptions{})
		return err
	})
	switch {
	case errdefs.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at its container %.12s: %w", k.Container, err)
	case !c.Container.State.Running:
		return false, e.remove(k.Container)
	}
	return true, nil
}

// downContainer ends a kept container.
func (o *Opener) downContainer(ctx context.Context, k *Kept) error {
	e, err := engineOf(ctx, k)
	if err != nil {
		return fmt.Errorf("end the kept %s: %w", k.Product, err)
	}
	defer e.cli.Close() //nolint:errcheck // nothing is left to say to it
	if err := e.remove(k.Container); err != nil {
		return fmt.Errorf("end the kept %s: %w", k.Product, err)
	}
	return nil
}

func (o *Opener) containerLog(ctx context.Context, k *Kept) (io.ReadCloser, error) {
	e, err := engineOf(ctx, k)
	if err != nil {
		return nil, err
	}
	defer e.cli.Close() //nolint:errcheck // nothing is left to say to it
	var b []byte
	err = e.order(ctx, func(ctx context.Context) (err error) {
		b, err = e.logs(ctx, k.Container)
		return err
	})
	return io.NopCloser(bytes.NewReader(b)), err
}

// containerUsage asks the engine for one sample.
func (o *Opener) containerUsage(ctx context.Context, k *Kept) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, engineNamed)
	defer cancel()
	e, err := engineOf(ctx, k)
	if err != nil {
		return Usage{}, fmt.Errorf("look at the kept %s: %w", k.Product, err)
	}
	defer e.cli.Close() //nolint:errcheck // nothing is left to say to it
	u, err := e.usage(ctx, k.Container)
	if err != nil {
		return Usage{}, fmt.Errorf("look at the kept %s: %w", k.Product, err)
	}
	return u, nil
}

func (e *engine) usage(ctx context.Context, id string) (Usage, error) {
	c, err := e.cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return Usage{}, err
	}
	u := Usage{PID: c.Container.State.Pid}
	for _, bound := range c.Container.NetworkSettings.Ports {
		for _, b := range bound {
			n, err := strconv.ParseUint(b.HostPort, 10, 16)
			if err != nil {
				return Usage{}, fmt.Errorf("read the published port %q: %w", b.HostPort, err)
			}
			u.Ports = append(u.Ports, Port{uint32(n), !b.HostIP.IsLoopback()})
		}
	}
	s, err := e.cli.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return Usage{}, err
	}
	defer s.Body.Close() //nolint:errcheck // it is only read
	var stats box.StatsResponse
	if err := json.NewDecoder(s.Body).Decode(&stats); err != nil {
		return Usage{}, fmt.Errorf("read the container's numbers: %w", err)
	}
	// As `docker stats` counts: without what could be dropped at once.
	u.Memory = stats.MemoryStats.Usage - max(stats.MemoryStats.Stats["total_inactive_file"], stats.MemoryStats.Stats["inactive_file"])
	return u, nil
}

// ready says which image a container would be of.
func (o *Opener) ready(ctx context.Context, product string) string {
	c, err := composeOf(product, variables{})
	if err != nil {
		return err.Error()
	}
	e, err := o.engine(ctx)
	if err != nil {
		return err.Error()
	}
	start := time.Now()
	v, err := e.cli.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("ready (%s; engine %s answered in %d ms)", e.prefixed(c.Image), v.Version, time.Since(start).Milliseconds())
}
