package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	gops "github.com/shirou/gopsutil/v4/process"
)

// Usage is what a kept broker takes of the machine.
type Usage struct {
	PID    int    // of the broker itself, as this machine counts; 0: not known
	Memory uint64 // resident, of all its processes, in bytes
	Ports  []Port // on which it listens
}

// Port is one listening socket.
type Port struct {
	Number uint32
	Wide   bool // not on the loopback interface alone
}

// String marks a port that others can reach.
func (p Port) String() string {
	if p.Wide {
		return fmt.Sprintf("%d (all interfaces)", p.Number)
	}
	return fmt.Sprint(p.Number)
}

// Usage asks the system about the broker and every process below its guard, or
// the engine about its container.
func (o *Opener) Usage(ctx context.Context, k *Kept) (Usage, error) {
	if k.Container != "" {
		return o.containerUsage(ctx, k)
	}
	guard, err := gops.NewProcessWithContext(ctx, int32(k.PID))
	if err != nil {
		return Usage{}, fmt.Errorf("look at the kept %s: %w", k.Product, err)
	}
	var u Usage
	ports := map[uint32]bool{}
	err = below(ctx, guard, func(p *gops.Process) error {
		m, err := p.MemoryInfoWithContext(ctx)
		if err != nil {
			return err
		}
		if u.PID == 0 || m.RSS > u.Memory { // the largest one is the broker, the others are its helpers
			u.PID = int(p.Pid)
		}
		u.Memory += m.RSS
		conns, err := p.ConnectionsWithContext(ctx)
		if err != nil {
			return err
		}
		for _, c := range conns {
			if c.Status == "LISTEN" {
				wide := c.Laddr.IP != "127.0.0.1" && c.Laddr.IP != "::1" && c.Laddr.IP != "::ffff:127.0.0.1"
				ports[c.Laddr.Port] = ports[c.Laddr.Port] || wide
			}
		}
		return nil
	})
	if err != nil {
		return Usage{}, fmt.Errorf("look at the kept %s: %w", k.Product, err)
	}
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		u.Ports = append(u.Ports, Port{n, ports[n]})
	}
	return u, nil
}

// below visits every process that descends from one; those that have just
// ended are passed over.
func below(ctx context.Context, p *gops.Process, visit func(*gops.Process) error) error {
	children, err := p.ChildrenWithContext(ctx)
	if errors.Is(err, gops.ErrorNoChildren) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := errors.Join(visit(c), below(ctx, c, visit)); err != nil {
			if alive, _ := c.IsRunningWithContext(ctx); !alive {
				continue
			}
			return err
		}
	}
	return nil
}
