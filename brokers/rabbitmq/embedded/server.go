package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	product     = "mqlab embedded"
	version     = "1.0.0"
	imitates    = "3.10.8" // the RabbitMQ whose behaviour is meant
	nodeName    = "mqlab@localhost"
	defaultAddr = "127.0.0.1:0"
)

// Options configure a Server; the zero value is ready to use.
type Options struct {
	// AMQPAddr and AdminAddr are the addresses to listen on, 127.0.0.1:0 if
	// empty. They must be loopback addresses.
	AMQPAddr, AdminAddr string
	// User and Password are the only login, guest and guest if empty.
	User, Password string
	// Log gets a line for each connection and each error; nil means silence.
	Log io.Writer
}

// Server is a running stand-in for RabbitMQ.
type Server struct {
	b              *broker
	user, password string
	log            *log.Logger
	amqp, admin    net.Listener
	http           *http.Server
	stop           context.CancelFunc
	running        sync.WaitGroup // every goroutine of the server
	once           sync.Once
}

// Open starts the server. It runs until Close is called or ctx ends.
func Open(ctx context.Context, o Options) (*Server, error) {
	amqp, err := listen(ctx, o.AMQPAddr)
	if err != nil {
		return nil, err
	}
	admin, err := listen(ctx, o.AdminAddr)
	if err != nil {
		_ = amqp.Close()
		return nil, err
	}
	s := &Server{
		user:  cmp.Or(o.User, "guest"),
		amqp:  amqp,
		admin: admin,
		log:   log.New(io.Discard, "", log.LstdFlags|log.Lmicroseconds),
	}
	s.password = cmp.Or(o.Password, "guest")
	if o.Log != nil {
		s.log.SetOutput(o.Log)
	}
	s.b = newBroker(s.log)
	s.start(ctx)
	return s, nil
}

// listen refuses any address that another machine could reach: there is one
// well known password.
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

func (s *Server) start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.http = s.newAdmin()
	s.running.Go(func() { s.b.reap(ctx) })
	s.running.Go(s.accept)
	s.running.Go(func() { _ = s.http.Serve(s.admin) }) // ends with ErrServerClosed
	s.running.Go(func() {
		<-ctx.Done()
		s.cut()
	})
}

// URL is the address for clients. Its query carries the management address.
func (s *Server) URL() string {
	u := url.URL{
		Scheme:   "amqp",
		User:     url.UserPassword(s.user, s.password),
		Host:     s.amqp.Addr().String(),
		Path:     "/",
		RawQuery: url.Values{"management": {"http://" + s.admin.Addr().String()}}.Encode(),
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
	s.once.Do(func() {
		_ = s.amqp.Close()
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
		nc, err := s.amqp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Printf("amqp accept: %v", err)
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
	s.running.Go(c.serve)
}
