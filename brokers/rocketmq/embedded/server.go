package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"sync"
	"time"
)

const (
	version     = "1.0.0"
	defaultAddr = "127.0.0.1:0"
)

// Options configure a Server; the zero value is ready to use.
type Options struct {
	// Addr is the address to listen on, 127.0.0.1:0 if empty. It must be a
	// loopback address.
	Addr string
	// AccessKey and SecretKey are the only credentials; without them requests
	// need none.
	AccessKey, SecretKey string
	// Log gets a line for each connection and each refusal; nil means silence.
	Log io.Writer
}

// Server is a running stand-in for a name server and a broker.
type Server struct {
	b       *broker
	o       Options
	ln      net.Listener
	log     *log.Logger
	stop    context.CancelFunc
	running sync.WaitGroup // every goroutine of the server
}

// Open starts the server. It runs until Close is called or ctx ends.
func Open(ctx context.Context, o Options) (*Server, error) {
	addr, err := net.ResolveTCPAddr("tcp", cmp.Or(o.Addr, defaultAddr))
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("embedded: %s is not a loopback address", o.Addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s := &Server{o: o, ln: ln, log: log.New(io.Discard, "", log.LstdFlags|log.Lmicroseconds)}
	if o.Log != nil {
		s.log.SetOutput(o.Log)
	}
	s.b = newBroker(ln.Addr().(*net.TCPAddr))
	ctx, s.stop = context.WithCancel(ctx)
	s.running.Go(s.accept)
	s.running.Go(func() { s.b.keepTime(ctx) })
	s.running.Go(func() {
		<-ctx.Done()
		s.cut()
	})
	return s, nil
}

// URL is the address for clients.
func (s *Server) URL() string {
	u := url.URL{Scheme: "rocketmq", Host: s.ln.Addr().String()}
	if s.o.AccessKey != "" {
		u.User = url.UserPassword(s.o.AccessKey, s.o.SecretKey)
	}
	return u.String()
}

// Close cuts all connections and waits until nothing of the server runs any
// more. It may be called more than once.
func (s *Server) Close() error {
	s.stop()
	s.running.Wait()
	return nil
}

// cut ends what waits for the network; every reader then cleans up by itself.
func (s *Server) cut() {
	_ = s.ln.Close()
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.closed = true
	for c := range s.b.conns {
		c.close()
	}
}

func (s *Server) accept() {
	for {
		nc, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Printf("accept: %v", err)
			time.Sleep(10 * time.Millisecond) // out of file descriptors: do not spin
			continue
		}
		s.take(nc)
	}
}

// take starts a connection, unless the server has been closed meanwhile.
func (s *Server) take(nc net.Conn) {
	c := newConn(s, nc)
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.closed {
		_ = nc.Close()
		return
	}
	s.b.conns[c] = struct{}{}
	s.running.Go(c.read)
	s.running.Go(c.write)
}
