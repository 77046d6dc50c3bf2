package pulsar_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"mqlab/brokers"
)

// relay passes bytes on to a broker, whose own address it hides. Unlike the
// suite's proxy it can be cut and go on, and it can fall silent.
type relay struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	silent chan struct{} // closed at the end of a silence; nil if there is none
}

func newRelay(t *testing.T, at brokers.Address) (*relay, brokers.Address) {
	t.Helper()
	u := at.URL()
	r := &relay{target: u.Host}
	for { // the address is replaced in answers, so it has to be as long
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if r.ln = ln; len(ln.Addr().String()) == len(r.target) {
			break
		}
		ln.Close() //nolint:errcheck // it was never used
	}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		r.ln.Close() //nolint:errcheck // nothing depends on it
		r.speak()
		r.cut()
		r.wg.Wait()
	})
	u.Host = r.ln.Addr().String()
	through, err := brokers.ParseAddress(u.String())
	if err != nil {
		t.Fatal(err)
	}
	return r, through
}

func (r *relay) accept() {
	for {
		near, err := r.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.target)
		if err != nil {
			near.Close() //nolint:errcheck // the client sees the end
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, near, far)
		r.mu.Unlock()
		r.wg.Go(func() { r.pass(near, far) })
		r.wg.Go(func() { r.pass(far, near) })
	}
}

func (r *relay) pass(to io.WriteCloser, from io.ReadCloser) {
	defer to.Close()   //nolint:errcheck // the end of one side is the end of both
	defer from.Close() //nolint:errcheck // as above
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		r.mu.Lock()
		silent := r.silent
		r.mu.Unlock()
		if silent != nil {
			<-silent
		}
		if err != nil {
			return
		}
		if _, err := to.Write(bytes.ReplaceAll(b[:n], []byte(r.target), []byte(r.ln.Addr().String()))); err != nil {
			return
		}
	}
}

// cut breaks every connection and admits new ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close() //nolint:errcheck // it may be closed already
	}
	r.conns = nil
}

// hush lets nothing through any more, new connections included.
func (r *relay) hush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = make(chan struct{})
}

func (r *relay) speak() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent != nil {
		close(r.silent)
		r.silent = nil
	}
}
