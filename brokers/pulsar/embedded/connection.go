package embedded

import (
	"bufio"
	"crypto/subtle"
	"net"
	"sync"
	"time"
)

// conn is a client's connection. Its reader also runs the client's commands,
// under the broker's lock.
type conn struct {
	b     *broker
	nc    net.Conn
	token string
	out   *outbox

	producers map[uint64]*producer // under the broker's lock, as the next
	consumers map[uint64]*consumer
}

func newConn(b *broker, nc net.Conn, token string) *conn {
	return &conn{b: b, nc: nc, token: token, out: newOutbox(),
		producers: map[uint64]*producer{}, consumers: map[uint64]*consumer{}}
}

// serve is the reader: it returns when the connection is over and what the
// client held is back in its subscriptions.
func (c *conn) serve() {
	var own sync.WaitGroup
	done := make(chan struct{})
	own.Go(func() { c.out.drain(c.nc); _ = c.nc.Close() })
	own.Go(func() { c.ping(done) })
	c.read()
	c.b.mu.Lock()
	c.leave()
	c.b.mu.Unlock()
	c.out.close()
	close(done)
	// A client that does not read its last frames must not hold up the end.
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	own.Wait()
	c.b.mu.Lock()
	delete(c.b.conns, c) // until now the server's Close could cut it
	c.b.mu.Unlock()
}

// leave gives back all that the client held.
func (c *conn) leave() {
	for _, p := range c.producers {
		p.leave()
	}
	for _, co := range c.consumers {
		co.leave()
	}
}

// read handles commands until the connection is over.
func (c *conn) read() {
	r := bufio.NewReaderSize(c.nc, 64<<10)
	for greeted := false; ; {
		c.out.room()
		_ = c.nc.SetReadDeadline(time.Now().Add(2 * keepAlive)) // fails only if it is closed already
		cmd, err := readCommand(r)
		if err != nil {
			return
		}
		if !greeted {
			if greeted = c.greet(cmd); !greeted {
				return
			}
			continue
		}
		c.b.mu.Lock()
		ok := c.handle(cmd)
		c.b.mu.Unlock()
		if !ok {
			return
		}
	}
}

// greet answers the first command.
func (c *conn) greet(cmd command) bool {
	if cmd.kind != cmdConnect {
		return false
	}
	if c.token != "" && (cmd.f.text(5) != "token" || subtle.ConstantTimeCompare(cmd.f.blob(3), []byte(c.token)) == 0) {
		c.fail(^uint64(0), refuse(codeAuthentication, "Unable to authenticate"))
		return false
	}
	c.out.add(cmdConnected, body(nil).text(1, "mqlab embedded, imitates "+imitates).
		number(2, cmd.f.number(4, 0)).number(3, maxMessage), nil)
	return true
}

// ping asks a client that may have died.
func (c *conn) ping(done <-chan struct{}) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			c.out.add(cmdPing, nil, nil)
		}
	}
}

// fail answers a request with CommandError.
func (c *conn) fail(request uint64, r *refusal) {
	c.out.add(cmdError, body(nil).number(1, request).number(2, r.code).text(3, r.text), nil)
}

// succeed answers a request with CommandSuccess.
func (c *conn) succeed(request uint64) { c.out.add(cmdSuccess, body(nil).number(1, request), nil) }
