package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"mqlab/brokers"
)

// boxed is a broker in a container.
type boxed struct {
	engine *engine
	id     string
	origin brokers.Origin
	ready  func(context.Context) (version string, err error)

	acting sync.Mutex
	died   chan struct{}
	once   sync.Once // closes died
	unwait func()    // ends the watching; nil while the broker is down on order
	apart  []string  // the networks that it was taken off
	last   []byte    // the log of a container that is gone
	gone   bool
}

// Origin says where the broker came from.
func (b *boxed) Origin() brokers.Origin { return b.origin }

// Died is closed when the container has ended without an order.
func (b *boxed) Died() <-chan struct{} { return b.died }

// Log is what the broker has written.
func (b *boxed) Log() []byte {
	b.acting.Lock()
	defer b.acting.Unlock()
	return b.log()
}

func (b *boxed) log() []byte {
	if b.gone {
		return b.last
	}
	return b.engine.log(b.id)
}

// joinStreams takes the two streams of a log apart and joins them again.
func joinStreams(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	_, err := stdcopy.StdCopy(&b, &b, r)
	return b.Bytes(), err
}

// begin starts the container and watches it from then on.
func (b *boxed) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := b.engine.order(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := b.engine.cli.ContainerStart(ctx, b.id, client.ContainerStartOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("start the container: %w", err)
	}
	b.watch()
	return nil
}

// watch closes died when the container ends before unwait is called.
func (b *boxed) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with unwait or with the container
		defer close(done)
		// Asked for here: an engine that is stuck does not even begin to answer.
		r := b.engine.cli.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: "not-running"})
		select {
		case <-r.Result:
		case <-r.Error: //nolint:errcheck // an engine that is gone has taken the broker with it
		}
		if ctx.Err() == nil {
			b.once.Do(func() { close(b.died) })
		}
	}()
	b.unwait = func() {
		cancel()
		<-done
	}
}

func (b *boxed) unwatch() {
	if b.unwait != nil {
		b.unwait()
	}
	b.unwait = nil
}

// awaitReady waits, bounded, until a message goes through.
func (b *boxed) awaitReady(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	for {
		if version, err = b.ready(ctx); err == nil {
			return version, nil
		}
		select {
		case <-b.died:
			return "", fmt.Errorf("the container ended while the broker was starting; its last lines: %s", brokers.LastWords(b.log()))
		case <-ctx.Done():
			return "", fmt.Errorf("the broker was not ready in time (%w): %w; its last lines: %s", ctx.Err(), err, brokers.LastWords(b.log()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Act does something to the container and returns when it is done: for a start
// when a message goes through.
func (b *boxed) Act(ctx context.Context, a brokers.Act) error {
	b.acting.Lock()
	defer b.acting.Unlock()
	if err := b.act(ctx, a); err != nil {
		return fmt.Errorf("%s the broker: %w", a, err)
	}
	return nil
}

func (b *boxed) act(ctx context.Context, a brokers.Act) (err error) {
	if down := b.unwait == nil; down != (a == brokers.Start) {
		return fmt.Errorf("it %s", map[bool]string{true: "is down", false: "runs"}[down])
	}
	if apart := len(b.apart) > 0; apart != (a == brokers.Connect) {
		return fmt.Errorf("it is %s the network", map[bool]string{true: "off", false: "on"}[apart])
	}
	cli := b.engine.cli
	switch a {
	case brokers.Pause:
		_, err = cli.ContainerPause(ctx, b.id, client.ContainerPauseOptions{})
	case brokers.Resume:
		_, err = cli.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{})
	case brokers.Disconnect:
		return b.disconnect(ctx)
	case brokers.Connect:
		return b.connect(ctx)
	case brokers.Kill:
		return b.end(ctx, 0)
	case brokers.Stop:
		return b.end(ctx, stopTimeout)
	case brokers.Restart:
		if err := b.end(ctx, stopTimeout); err != nil {
			return err
		}
		return b.again(ctx)
	case brokers.Start:
		return b.again(ctx)
	default:
		return errors.New("no container knows that order")
	}
	return err
}

// disconnect takes the container off its networks. With that the engine closes
// its published ports, and the connections that went through them.
func (b *boxed) disconnect(ctx context.Context) error {
	c, err := b.engine.cli.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	for name := range c.Container.NetworkSettings.Networks {
		if _, err := b.engine.cli.NetworkDisconnect(ctx, name, client.NetworkDisconnectOptions{Container: b.id, Force: true}); err != nil {
			return err
		}
		b.apart = append(b.apart, name)
	}
	return nil
}

// connect brings it back and makes sure that its ports are where they were: the
// broker tells its clients an address that cannot change.
func (b *boxed) connect(ctx context.Context) error {
	for len(b.apart) > 0 {
		if _, err := b.engine.cli.NetworkConnect(ctx, b.apart[0], client.NetworkConnectOptions{Container: b.id}); err != nil {
			return err
		}
		b.apart = b.apart[1:]
	}
	c, err := b.engine.cli.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	for inside, want := range c.Container.HostConfig.PortBindings {
		if got := c.Container.NetworkSettings.Ports[inside]; !slices.Equal(got, want) {
			return fmt.Errorf("its port %s was published at %v and is at %v now", inside, want, got)
		}
	}
	_, err = b.awaitReady(ctx)
	return err
}

func (b *boxed) again(ctx context.Context) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	_, err := b.awaitReady(ctx)
	return err
}

// end kills the container, or asks it to end and kills it after patience. What
// ends it on order is not its death.
func (b *boxed) end(ctx context.Context, patience time.Duration) error {
	select {
	case <-b.died:
		return fmt.Errorf("it has ended; its last lines: %s", brokers.LastWords(b.log()))
	default:
	}
	b.unwatch()
	ended := b.engine.cli.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: "not-running"})
	var err error
	if patience == 0 {
		_, err = b.engine.cli.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: "SIGKILL"})
	} else {
		seconds := int(patience.Seconds())
		_, err = b.engine.cli.ContainerStop(ctx, b.id, client.ContainerStopOptions{Timeout: &seconds})
	}
	if err != nil {
		return err
	}
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return err
	}
}

// Release removes the container and returns when nothing of it is left.
func (b *boxed) Release() error {
	b.acting.Lock()
	defer b.acting.Unlock()
	if b.gone {
		return nil
	}
	b.unwatch()
	b.last = b.log()
	b.gone = true
	b.once.Do(func() { close(b.died) })
	return b.engine.remove(b.id)
}

// record is what is remembered of a kept container.
func (b *boxed) record() Kept {
	return Kept{Container: b.id, Engine: b.engine.cli.DaemonHost(), Image: b.origin.Image}
}

// keep lets the container go on: the reaper ends before it can remove it.
func (b *boxed) keep() error {
	b.unwatch()
	return b.engine.reaper.close(b.engine)
}
