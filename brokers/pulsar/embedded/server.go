package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	version     = "1.0.0"
	imitates    = "4.2.4" // the Pulsar whose behaviour is meant
	defaultAddr = "127.0.0.1:0"
	// keepAlive is the pause between two pings; a client that says nothing for
	// twice as long is taken for dead.
	keepAlive = 2 * time.Second
)

// Options configure a Server; the zero value is ready to use.
type Options struct {
	// Addr and AdminAddr are the addresses to listen on, 127.0.0.1:0 if empty.
	// They must be loopback addresses.
	Addr, AdminAddr string
	// Token is what a client has to know; empty lets everybody in.
	Token string
}

// Server is a running stand-in for Pulsar.
type Server struct {
	b             *broker
	token         string
	binary, admin net.Listener
	http          *http.Server
	stop          context.CancelFunc
	running       sync.WaitGroup // every goroutine of the server
	once          sync.Once
}

// Open starts the server. It runs until Close is called or ctx ends.
func Open(ctx context.Context, o Options) (*Server, error) {
	binary, err := listen(ctx, o.Addr)
	if err != nil {
		return nil, err
	}
	admin, err := listen(ctx, o.AdminAddr)
	if err != nil {
		_ = binary.Close()
		return nil, err
	}
	s := &Server{b: newBroker(binary.Addr().String()), token: o.Token, binary: binary, admin: admin}
	ctx, s.stop = context.WithCancel(ctx)
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(s.accept)
	s.running.Go(func() { _ = s.http.Serve(s.admin) }) // ends with ErrServerClosed
	s.running.Go(func() {
		<-ctx.Done()
		s.cut()
	})
	return s, nil
}

// listen refuses any address that another machine could reach.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	addr = cmp.Or(addr, defaultAddr)
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("embedded: %s is not a loopback address", addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", tcp.String())
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return ln, nil
}

// URL is the address for clients. Its query carries the admin address.
func (s *Server) URL() string {
	u := url.URL{Scheme: "pulsar", Host: s.binary.Addr().String(),
		RawQuery: url.Values{"admin": {"http://" + s.admin.Addr().String()}}.Encode()}
	if s.token != "" {
		u.User = url.UserPassword("", s.token)
	}
	return u.String()
}

// Close cuts all connections and waits until nothing of the server runs any
// more. It may be called more than once, and never fails.
func (s *Server) Close() error {
	s.stop()
	s.running.Wait()
	return nil
}

// cut ends what waits for the network; every reader then cleans up by itself.
func (s *Server) cut() {
	s.once.Do(func() {
		_ = s.binary.Close()
		_ = s.http.Close()
		s.b.mu.Lock()
		defer s.b.mu.Unlock()
		s.b.closed = true
		for c := range s.b.conns {
			_ = c.nc.Close()
		}
	})
}

func (s *Server) accept() {
	for {
		nc, err := s.binary.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of file descriptors: do not spin
			continue
		}
		s.take(nc)
	}
}

// take starts a connection, unless the server has been closed meanwhile.
func (s *Server) take(nc net.Conn) {
	c := newConn(s.b, nc, s.token)
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.closed {
		_ = nc.Close()
		return
	}
	s.b.conns[c] = struct{}{}
	s.running.Go(c.serve)
}
