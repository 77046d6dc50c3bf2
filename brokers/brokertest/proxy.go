package brokertest

import (
	"io"
	"net"
	"sync"
	"testing"

	"mqlab/brokers"
)

// cut is the subject's way to cut a connection, or a proxy.
func (sc *scene) cut() (through brokers.Address, cut func()) {
	sc.Helper()
	if sc.s.Cut != nil {
		return sc.s.Cut(sc.T, sc.s.Address)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	sc.must(err)
	p := &proxy{ln: ln, target: sc.s.Address.URL().Host}
	p.wg.Go(p.accept)
	sc.Cleanup(p.close)
	return moved(sc.T, sc.s.Address, ln.Addr().String()), p.close
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
	wg     sync.WaitGroup

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
		p.wg.Go(func() { pass(near, far) })
		p.wg.Go(func() { pass(far, near) })
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

// pass copies one direction; the end of one direction is the end of both.
func pass(to, from net.Conn) {
	io.Copy(to, from) //nolint:errcheck // it ends with an error or with EOF
	to.Close()        //nolint:errcheck // as above
	from.Close()      //nolint:errcheck // as above
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
