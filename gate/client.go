package gate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// Client is the role's side of the gate. The zero value is an open gate: every
// checkpoint passes at once and nobody asks for a finish.
type Client struct {
	conn     net.Conn
	stop     map[Checkpoint]bool
	lost     func(error)
	finish   chan struct{}
	cut      chan struct{}
	finished sync.Once
	closing  chan struct{}
	closed   sync.Once
	done     chan struct{} // the reader has ended

	mu    sync.Mutex
	n     int
	waits map[int]chan Decision
}

// Dial connects to the gate that the environment names and removes the secret
// from the environment. Without one it returns an open gate. lost is called
// once, from the reader, when the gate breaks before Close: the process must
// then end with ExitGateLost.
func Dial(ctx context.Context, step string, lost func(error)) (*Client, error) {
	addr, key := os.Getenv(EnvAddress), os.Getenv(EnvKey)
	if err := os.Unsetenv(EnvKey); err != nil {
		return nil, fmt.Errorf("remove the gate's secret from the environment: %w", err)
	}
	if addr == "" {
		return &Client{}, nil
	}
	hostPort, ok := strings.CutPrefix(addr, "tcp:")
	if !ok {
		return nil, fmt.Errorf("connect to the gate: %s=%q is no tcp: address", EnvAddress, addr)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, fmt.Errorf("connect to the gate: %w", err)
	}
	c := &Client{conn: conn, lost: lost, finish: make(chan struct{}), cut: make(chan struct{}, 1), closing: make(chan struct{}),
		done: make(chan struct{}), waits: map[int]chan Decision{}}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // cutting it ends the greeting
	err = c.hello(step, key, lines)
	if !stop() {
		err = fmt.Errorf("greet the gate: %w", ctx.Err())
	}
	if err != nil {
		conn.Close() //nolint:errcheck // the error before it says more
		return nil, err
	}
	go c.read(lines) // ends with the connection; Close waits for it
	return c, nil
}

func (c *Client) hello(step, key string, lines *bufio.Scanner) error {
	if err := send(c.conn, wire{Hello: &hello{Step: step, PID: os.Getpid(), Key: key}}); err != nil {
		return fmt.Errorf("greet the gate: %w", err)
	}
	var w wire
	if !lines.Scan() {
		return fmt.Errorf("greet the gate: it did not welcome this process")
	}
	if err := json.Unmarshal(lines.Bytes(), &w); err != nil || w.Welcome == nil {
		return fmt.Errorf("greet the gate: unexpected answer")
	}
	c.stop = map[Checkpoint]bool{}
	for _, cp := range w.Welcome.Stop {
		c.stop[cp] = true
	}
	return nil
}

// read is the one reader for the client's whole life: a broken gate is noticed
// between checkpoints too.
func (c *Client) read(lines *bufio.Scanner) {
	defer close(c.done)
	for lines.Scan() {
		var w wire
		if json.Unmarshal(lines.Bytes(), &w) != nil {
			break
		}
		switch {
		case w.Decide != nil:
			c.mu.Lock()
			ch := c.waits[w.Decide.N]
			delete(c.waits, w.Decide.N)
			c.mu.Unlock()
			if ch != nil {
				ch <- w.Decide.Do
			}
		case w.Do == doFinish:
			c.finished.Do(func() { close(c.finish) })
		case w.Do == doCut:
			select {
			case c.cut <- struct{}{}:
			default: // two at once are one
			}
		}
	}
	select {
	case <-c.closing:
	default:
		c.lost(fmt.Errorf("the gate is gone"))
	}
}

// Stops reports whether this process has to wait at a checkpoint.
func (c *Client) Stops(cp Checkpoint) bool { return c.stop[cp] }

// Finishing is closed when the runner asks the process to end in order; on an
// open gate it is nil and never ready.
func (c *Client) Finishing() <-chan struct{} { return c.finish }

// Cutting yields once for each time that the runner asks the process to break
// its connections; on an open gate it is nil and never ready.
func (c *Client) Cutting() <-chan struct{} { return c.cut }

// Address is the gate's own, host:port, or empty on an open gate.
func (c *Client) Address() string {
	if c.conn == nil {
		return ""
	}
	return c.conn.RemoteAddr().String()
}

// Next numbers an arrival. The caller logs it as waiting before it calls Wait.
func (c *Client) Next(cp Checkpoint, message, key string) Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return Arrival{N: c.n, Checkpoint: cp, Message: message, Key: key}
}

// Wait sends the arrival and stands still until it is decided. There is no
// deadline: the connection is the lifeline.
func (c *Client) Wait(ctx context.Context, a Arrival) (Decision, error) {
	if c.conn == nil { // an open gate
		return Pass, nil
	}
	ch := make(chan Decision, 1)
	c.mu.Lock()
	c.waits[a.N] = ch
	err := send(c.conn, wire{Arrive: &a})
	c.mu.Unlock()
	if err != nil {
		return "", fmt.Errorf("arrive at %s: %w", a.Checkpoint, err)
	}
	select {
	case d := <-ch:
		return d, nil
	case <-c.done:
		return "", fmt.Errorf("wait at %s: the gate is gone", a.Checkpoint)
	case <-ctx.Done():
		return "", fmt.Errorf("wait at %s: %w", a.Checkpoint, ctx.Err())
	}
}

// Close leaves the gate in order. It is idempotent and waits for the reader.
func (c *Client) Close() error {
	if c.conn == nil {
		return nil
	}
	var err error
	c.closed.Do(func() {
		close(c.closing)
		err = c.conn.Close()
	})
	<-c.done
	return err
}
