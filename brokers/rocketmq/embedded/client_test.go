package embedded

import (
	"bytes"
	"encoding/json"
	"net"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a connection that speaks the protocol by hand.
type client struct {
	t      *testing.T
	nc     net.Conn
	s      *Server
	opaque int32
}

// connect starts a server of its own and connects to it.
func connect(t *testing.T, o Options) *client {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // it never fails
	return again(t, s)
}

// again is another connection to the same server.
func again(t *testing.T, s *Server) *client {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() }) //nolint:errcheck // it may be closed already
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, nc: nc, s: s}
}

func (c *client) send(q *command) {
	c.t.Helper()
	c.opaque++
	q.Opaque = c.opaque
	b, err := appendFrame(nil, q)
	if err == nil {
		_, err = c.nc.Write(b)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// next is the next frame from the server.
func (c *client) next() *command {
	c.t.Helper()
	a, err := readFrame(c.nc)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// call is the answer to a request; notifications before it are skipped.
func (c *client) call(q *command) *command {
	c.t.Helper()
	c.send(q)
	for {
		if a := c.next(); a.Flag&flagAnswer != 0 && a.Opaque == c.opaque {
			return a
		}
	}
}

// must is call for a request that has to succeed.
func (c *client) must(code int, body any, pairs ...any) *command {
	c.t.Helper()
	q := good(pairs...)
	q.Code = code
	if b, ok := body.([]byte); ok {
		q.body = b
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		q.body = b
	}
	a := c.call(q)
	if a.Code != codeSuccess {
		c.t.Fatalf("request %d: %d %s", code, a.Code, a.Remark)
	}
	return a
}

// prepare makes topic t with two queues and group g.
func (c *client) prepare() {
	c.t.Helper()
	c.must(17, nil, "topic", "t", "readQueueNums", 2, "writeQueueNums", 2, "perm", readWrite)
	c.must(200, map[string]any{"groupName": "g", "retryMaxTimes": 2})
}

func (c *client) produce(queue int, body string, pairs ...any) {
	c.t.Helper()
	c.must(10, []byte(body), append([]any{"topic", "t", "queueId", queue}, pairs...)...)
}

func (c *client) pull(topic, group string, queue, from int, pairs ...any) *command {
	c.t.Helper()
	q := good(append([]any{"topic", topic, "consumerGroup", group, "queueId", queue, "queueOffset", from,
		"maxMsgNums", 32, "sysFlag", pullSubscribes}, pairs...)...)
	q.Code = 11
	return c.call(q)
}

func has(t *testing.T, a *command, body string) {
	t.Helper()
	if a.Code != codeSuccess || !bytes.Contains(a.body, []byte(body)) {
		t.Errorf("code %d %s, the body lacks %q", a.Code, a.Remark, body)
	}
}
