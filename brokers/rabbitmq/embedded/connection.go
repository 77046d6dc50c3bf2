package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	handshakeTimeout = 10 * time.Second
	closeTimeout     = 3 * time.Second // for the answer to our connection.close
	lingerTimeout    = time.Second     // for the last frames to be written and read
	maxChannels      = 2047            // RabbitMQ's default
	heartbeatSeconds = 60              // suggested; the client decides
)

// The stages of a connection; they only go forward.
const (
	stageStarting = iota // connection.start is sent
	stageTuning          // logged in, connection.tune is sent
	stageOpening         // tuned
	stageRunning         // open
	stageEnding          // we sent connection.close and wait for the answer
)

// conn is a client's connection. Two goroutines own it: the reader, which also
// runs the client's methods, and the writer. What the comments do not call the
// reader's own is under the broker's lock.
type conn struct {
	b    *broker
	s    *Server
	nc   net.Conn
	name string
	out  *outbox

	frames   *frameReader       // reader
	stage    int                // reader
	silence  time.Duration      // reader: how long the client may say nothing, 0 for ever
	deadline time.Time          // reader: what is set on the socket
	beat     chan time.Duration // tells the writer the heartbeat's interval, once

	user         string // set before the connection is open, then constant
	properties   table
	cancelNotify bool
	failureClose bool
	frameMax     int
	channelMax   int
	heartbeat    time.Duration

	forced   atomic.Bool // closed from outside: the deadline is not for the reader to move
	opened   bool        // it may be listed
	ending   bool        // its channels are shut
	dirty    bool        // see broker.dirty
	since    time.Time
	channels map[uint16]*channel // only the reader changes it, so the reader may look without the lock
	owned    map[*queue]struct{} // exclusive queues
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		b: s.b, s: s, nc: nc, out: newOutbox(), frameMax: frameMinSize, since: time.Now(),
		name:     fmt.Sprintf("%s -> %s", nc.RemoteAddr(), nc.LocalAddr()),
		channels: map[uint16]*channel{}, owned: map[*queue]struct{}{},
		beat: make(chan time.Duration, 1), silence: handshakeTimeout,
	}
	c.frames = newFrameReader(c)
	return c
}

func (c *conn) logf(format string, args ...any) {
	c.s.log.Printf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// serve is the reader: it returns when the connection is over and all that the
// client held is back in its queues.
func (c *conn) serve() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	err := c.read()
	c.teardown()
	c.logf("closed: %v", err)
	c.hangUp(written)
	c.b.mu.Lock()
	delete(c.b.conns, c) // until now Close could cut it
	c.b.mu.Unlock()
}

// read handles frames until the connection is over; the error says why.
func (c *conn) read() error {
	if err := c.greet(); err != nil {
		return err
	}
	for {
		c.out.room()
		f, err := c.frames.next()
		if err == nil {
			err = c.frame(f)
		}
		if err != nil {
			if done := c.fail(err); done != nil {
				return done
			}
		}
	}
}

// Read is how the frame reader gets octets. Before it waits for more, what the
// client was answered goes out.
func (c *conn) Read(p []byte) (int, error) {
	if resume, more, err := c.out.drain(c.nc, true); err != nil {
		return 0, err
	} else if resume {
		c.resume()
	} else if more {
		c.out.signal()
	}
	if err := c.setDeadline(); err != nil {
		return 0, err
	}
	return c.nc.Read(p)
}

// setDeadline moves the end of the allowed silence, but not at each read: that
// costs more than the eighth of precision is worth.
func (c *conn) setDeadline() error {
	if c.silence == 0 || c.forced.Load() {
		return nil
	}
	now := time.Now()
	if c.stage == stageEnding && !c.deadline.IsZero() || c.deadline.Sub(now) > c.silence {
		return nil
	}
	c.deadline = now.Add(c.silence + c.silence/8)
	if err := c.nc.SetDeadline(c.deadline); err != nil || !c.forced.Load() {
		return err
	}
	return c.nc.SetDeadline(now.Add(closeTimeout))
}

// errDone ends a connection without a further frame.
var errDone = errors.New("by the client")

// fail answers an error with connection.close and returns nil if the client's
// answer is to be waited for.
func (c *conn) fail(err error) error {
	var e *amqpError
	if !errors.As(err, &e) {
		return err
	}
	if c.stage == stageEnding {
		return err // not again
	}
	c.logf("error: %v", e)
	_ = c.b.do(c, func() error {
		c.end(e)
		return nil
	})
	if e.desync {
		return e
	}
	c.stage, c.silence, c.deadline = stageEnding, closeTimeout, time.Time{}
	return nil
}

// end shuts the channels and says why. RabbitMQ too does it in this order.
func (c *conn) end(e *amqpError) {
	if c.ending {
		return
	}
	c.shut()
	c.out.add(func(out []byte) []byte { return appendMethod(out, 0, connectionClose, e.append) })
	c.b.touch(c)
}

// shut gives back all that the client held.
func (c *conn) shut() {
	c.ending = true
	for _, ch := range c.channels {
		ch.shut()
	}
	for q := range c.owned {
		c.b.deleteQueue(q)
	}
}

// force ends the connection from outside; a client that does not answer is cut.
func (c *conn) force(reason string) {
	c.end(failure(codeConnectionForced, "%s", reason))
	c.forced.Store(true)
	_ = c.nc.SetDeadline(time.Now().Add(closeTimeout)) // fails only if it is closed already
}

func (c *conn) teardown() {
	_ = c.b.do(c, func() error {
		if !c.ending {
			c.shut()
		}
		c.opened = false
		return nil
	})
}

// hangUp lets the last frames reach the client: a socket that is closed with
// unread input would reset the connection and take them away.
func (c *conn) hangUp(written <-chan struct{}) {
	_ = c.nc.SetDeadline(time.Now().Add(lingerTimeout))
	c.out.close()
	<-written
	if tcp, ok := c.nc.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.nc)
	}
	_ = c.nc.Close()
}

// write is the writer: it sends what others have put into the outbox, and the
// heartbeats.
func (c *conn) write() {
	beat := time.NewTicker(time.Hour)
	defer beat.Stop()
	beating := false
	for {
		closed := c.out.isClosed()
		resume, _, err := c.out.drain(c.nc, false)
		if resume {
			c.resume()
		}
		if err != nil {
			_ = c.nc.Close() // the reader notices
			return
		}
		if closed {
			return
		}
		select {
		case <-c.out.wake:
		case interval := <-c.beat:
			beating = true
			beat.Reset(interval)
		case <-beat.C:
			if beating {
				c.out.add(appendHeartbeat)
			}
		}
	}
}

// resume delivers again to a client that has caught up.
func (c *conn) resume() {
	_ = c.b.do(nil, func() error {
		for _, ch := range c.channels {
			ch.unparkAll()
		}
		return nil
	})
}

// frame hands a frame to the connection or to its channel.
func (c *conn) frame(f frame) error {
	switch {
	case c.stage == stageEnding:
		return c.whileEnding(f)
	case f.kind == frameHeartbeat && len(f.payload) == 0 && f.channel == 0:
		return nil
	case f.kind == frameHeartbeat && len(f.payload) == 0:
		return failure(codeUnexpectedFrame, "type %d, %s", f.kind, snippet(nil))
	case f.kind != frameMethod && f.kind != frameHeader && f.kind != frameBody:
		return failure(codeFrameError, "type %d, %s: unknown_frame", f.kind, snippet(f.payload))
	case f.channel == 0 && f.kind == frameMethod:
		return c.method(f.payload)
	case f.channel == 0 || c.stage != stageRunning:
		return failure(codeUnexpectedFrame, "type %d, %s", f.kind, snippet(f.payload))
	}
	ch := c.channels[f.channel]
	if ch == nil {
		return c.openChannel(f)
	}
	return ch.frame(f)
}

// whileEnding throws everything away but the end of the connection.
func (c *conn) whileEnding(f frame) error {
	if f.channel != 0 || f.kind != frameMethod {
		return nil
	}
	d := decoder{b: f.payload}
	switch method(d.uint32()) {
	case connectionCloseOk:
		return errDone
	case connectionClose: // crossed with ours
		c.send(connectionCloseOk, nil)
	}
	return nil
}

// openChannel takes the first frame for a channel that is not open.
func (c *conn) openChannel(f frame) error {
	if f.kind != frameMethod {
		return failure(codeUnexpectedFrame, "expected method frame, got non method frame instead")
	}
	d := &decoder{b: f.payload}
	m := method(d.uint32())
	if m != channelOpen {
		return asAMQP(failure(codeChannelError, "expected 'channel.open'"), m)
	}
	d.short()
	if err := d.finish(); err != nil {
		return asAMQP(err, m)
	}
	if len(c.channels) >= c.channelMax {
		return failure(codeNotAllowed, "number of channels opened (%d) has reached the negotiated channel_max (%d)",
			len(c.channels), c.channelMax)
	}
	return c.b.do(c, func() error {
		if c.ending {
			return nil
		}
		ch := newChannel(c, f.channel)
		c.channels[f.channel] = ch
		ch.send(channelOpenOk, func(out []byte) []byte { return appendLong(out, "") })
		return nil
	})
}

// forget removes a closed channel.
func (c *conn) forget(ch *channel) { delete(c.channels, ch.id) }

// send sends a method of the connection itself.
func (c *conn) send(m method, args func([]byte) []byte) {
	c.out.add(func(out []byte) []byte { return appendMethod(out, 0, m, args) })
}

// snippet shows the beginning of a payload as RabbitMQ's texts do.
func snippet(payload []byte) string {
	what := "all"
	if len(payload) > 16 {
		what, payload = "first 16", payload[:16]
	}
	var octets []string
	for _, b := range payload {
		octets = append(octets, strconv.Itoa(int(b)))
	}
	return fmt.Sprintf("%s octets = <<%s>>", what, strings.Join(octets, ","))
}
