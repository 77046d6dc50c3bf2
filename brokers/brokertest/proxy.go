package brokertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"mqlab/brokers"
)

// Cut puts a proxy in front of the address's host. It is for a Subject whose
// broker tells its clients where to connect to: rewrite gets the broker's
// address and the proxy's, both host:port, and returns pairs of byte strings
// of equal length; in what the broker sends, the first is replaced by the
// second. Ports have the same number of digits.
func Cut(t *testing.T, at brokers.Address, rewrite func(broker, proxy string) [][2][]byte) (through brokers.Address, cut func()) {
	t.Helper()
	p, err := newProxy(at.URL().Host)
	if err != nil {
		t.Fatal(err)
	}
	if rewrite != nil {
		p.rewrite = rewrite(p.target, p.ln.Addr().String())
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return moved(t, at, p.ln.Addr().String()), p.close
}

// newProxy listens on a port whose number has as many digits as the target's.
func newProxy(target string) (*proxy, error) {
	var held []net.Listener
	defer func() {
		for _, ln := range held {
			ln.Close() //nolint:errcheck // they were never used
		}
	}()
	for range 50 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		if len(ln.Addr().String()) == len(target) {
			return &proxy{ln: ln, target: target}, nil
		}
		held = append(held, ln)
	}
	return nil, fmt.Errorf("no free port has as many digits as that of %s", target)
}

// cut is the subject's way to cut a connection, or a proxy.
func (sc *scene) cut() (through brokers.Address, cut func()) {
	sc.Helper()
	if sc.s.Cut != nil {
		return sc.s.Cut(sc.T, sc.s.Address)
	}
	return Cut(sc.T, sc.s.Address, nil)
}

// moved is the same address at another host and port.
func moved(t *testing.T, at brokers.Address, hostPort string) brokers.Address {
	t.Helper()
	u := at.URL()
	u.Host = hostPort
	a, err := brokers.ParseAddress(u.String())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// proxy passes bytes on until it is closed.
type proxy struct {
	ln     net.Listener
	target string
	// rewrite is what to replace in what the broker sends.
	rewrite [][2][]byte
	wg      sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func (p *proxy) accept() {
	for {
		near, err := p.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close() //nolint:errcheck // the client sees the end
			continue
		}
		if !p.keep(near, far) {
			return
		}
		p.wg.Go(func() { pass(rewriter{near, p.rewrite}, far); end(near, far) })
		p.wg.Go(func() { pass(far, near); end(near, far) })
	}
}

// keep remembers both ends, unless the cut was faster.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	if p.closed {
		p.end()
	}
	return !p.closed
}

// pass copies one direction until either side ends.
func pass(to io.Writer, from io.Reader) {
	io.Copy(to, from) //nolint:errcheck // it ends with an error or with EOF
}

// end closes both sides: the end of one direction is the end of both.
func end(conns ...net.Conn) {
	for _, c := range conns {
		c.Close() //nolint:errcheck // it may be closed already
	}
}

// rewriter replaces addresses in what the broker says. Each of the answers
// that hold one fits into a single read.
type rewriter struct {
	to    io.Writer
	pairs [][2][]byte
}

func (r rewriter) Write(b []byte) (int, error) {
	out := b
	for _, p := range r.pairs {
		out = bytes.ReplaceAll(out, p[0], p[1])
	}
	return r.to.Write(out)
}

// close cuts everything with a reset, as a network does that is gone: nobody
// gets to say goodbye. It is idempotent.
func (p *proxy) close() {
	p.ln.Close() //nolint:errcheck // a second close is an error
	p.mu.Lock()
	p.closed = true
	p.end()
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *proxy) end() {
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // it may be closed already
		}
		c.Close() //nolint:errcheck // as above
	}
}
