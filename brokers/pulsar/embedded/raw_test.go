package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// raw is a client that can say anything.
type raw struct {
	*testing.T
	s  *Server
	nc net.Conn
}

func open(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dial connects without a greeting.
func dial(t *testing.T, s *Server) *raw {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &raw{t, s, nc}
}

// enter connects, on a server that has the topic t.
func enter(t *testing.T) *raw {
	t.Helper()
	s := open(t, Options{})
	r := dial(t, s)
	if status, _ := r.ask(http.MethodPut, "persistent/public/default/t"); status != http.StatusNoContent {
		t.Fatalf("make a topic: HTTP %d", status)
	}
	r.send(cmdConnect, body(nil).text(1, "test").number(4, 20), nil)
	if c := r.next(); c.kind != cmdConnected {
		t.Fatalf("connect: got command %d", c.kind)
	}
	return r
}

func (r *raw) send(kind int, b body, payload []byte) {
	r.Helper()
	if _, err := r.nc.Write(appendCommand(nil, kind, b, payload)); err != nil {
		r.Fatal(err)
	}
}

// next is the next command that is not a ping.
func (r *raw) next() command {
	r.Helper()
	for {
		c, err := readCommand(r.nc)
		if err != nil {
			r.Fatal(err)
		}
		if c.kind != cmdPing {
			return c
		}
	}
}

// ended waits for the server to hang up.
func (r *raw) ended() {
	r.Helper()
	for {
		_, err := readCommand(r.nc)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			r.Fatal("the connection is still there")
		}
		if err != nil {
			return
		}
	}
}

// refused reads an error of that code.
func (r *raw) refused(what string, request, code uint64) {
	r.Helper()
	c := r.next()
	if c.kind != cmdError || c.f.number(1, 0) != request || c.f.number(2, 0) != code {
		r.Errorf("%s: got command %d %v %q, want error %d", what, c.kind, c.f.numbers, c.f.text(3), code)
	}
}

// ask asks the admin API.
func (r *raw) ask(method, path string) (status int, answer string) {
	r.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), method, "http://"+r.s.admin.Addr().String()+"/admin/v2/"+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// message is a payload with its checksum; its body is x.
func message(meta body) []byte {
	m := binary.BigEndian.AppendUint32(nil, uint32(len(meta)))
	m = append(append(m, meta...), 'x')
	out := binary.BigEndian.AppendUint16(nil, checksumMagic)
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(m, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, m...)
}

// meta is the least that a message's metadata holds.
func meta() body { return body(nil).text(1, "p").number(2, 0).number(3, 1) }

const topicName = "persistent://public/default/t"

func subscribeBody(id, request uint64, k kind) body {
	return body(nil).text(1, topicName).text(2, "s").number(3, uint64(k)).number(4, id).number(5, request).number(13, 1)
}

func producerBody(id, request uint64) body {
	return body(nil).text(1, topicName).number(2, id).number(3, request)
}
