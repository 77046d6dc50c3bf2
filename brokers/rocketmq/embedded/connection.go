package embedded

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha1" // the protocol's own signature
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
)

// conn is a client's connection. Two goroutines own it, the reader, which also
// runs the requests in their order, and the writer.
type conn struct {
	s  *Server
	nc net.Conn

	mu     sync.Mutex
	out    []byte // frames that wait for the writer
	ended  bool
	signal chan struct{} // there is something to write, or the end
}

func newConn(s *Server, nc net.Conn) *conn {
	return &conn{s: s, nc: nc, signal: make(chan struct{}, 1)}
}

// read serves the client until its connection ends.
func (c *conn) read() {
	defer c.s.b.leave(c)
	defer c.close()
	r := bufio.NewReader(c.nc)
	for {
		q, err := readFrame(r)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.s.log.Printf("%v: %v", c.nc.RemoteAddr(), err)
			}
			return
		}
		if q.Flag&flagAnswer == 0 { // an answer is to a notification, which wants none
			c.serve(q)
		}
	}
}

// serve runs one request. An answer may come later, from the broker.
func (c *conn) serve(q *command) {
	a := c.s.o.admit(q)
	if a == nil {
		a = c.s.b.run(c, q)
	}
	if a == nil {
		return
	}
	if a.Code != codeSuccess && a.Remark != "" {
		c.s.log.Printf("%v: request %d: %d %s", c.nc.RemoteAddr(), q.Code, a.Code, a.Remark)
	}
	c.answer(q, a)
}

// answer sends an answer, unless the client wants none.
func (c *conn) answer(q, a *command) {
	if q.Flag&flagOneway != 0 {
		return
	}
	a.Opaque, a.Flag = q.Opaque, flagAnswer
	c.send(a)
}

// send leaves a frame to the writer.
func (c *conn) send(f *command) {
	f.Language, f.Version, f.Serialize = "JAVA", protocolVersion, "JSON"
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	var err error
	if c.out, err = appendFrame(c.out, f); err != nil {
		c.s.log.Printf("%v: %v", c.nc.RemoteAddr(), err)
	}
	c.wake()
}

func (c *conn) wake() {
	select {
	case c.signal <- struct{}{}:
	default: // it knows already
	}
}

// write sends what waits. The broker never waits for a slow client.
func (c *conn) write() {
	for range c.signal {
		c.mu.Lock()
		out, ended := c.out, c.ended
		c.out = nil
		c.mu.Unlock()
		if ended {
			return
		}
		if _, err := c.nc.Write(out); err != nil {
			c.close()
			return
		}
	}
}

// close ends both goroutines.
func (c *conn) close() {
	_ = c.nc.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.wake()
}

// admit checks a request's signature: HMAC-SHA1 over the values of all other
// fields in the order of their names, and the body. It returns the refusal.
func (o Options) admit(q *command) *command {
	if o.AccessKey == "" {
		return nil
	}
	mac := hmac.New(sha1.New, []byte(o.SecretKey))
	for _, name := range slices.Sorted(maps.Keys(q.Fields)) {
		if name != "Signature" {
			_, _ = io.WriteString(mac, q.Fields[name])
		}
	}
	_, _ = mac.Write(q.body)
	want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if q.text("AccessKey") != o.AccessKey || !hmac.Equal([]byte(q.text("Signature")), []byte(want)) {
		return bad(codeNoPermission, "the access key or the signature is wrong")
	}
	return nil
}
