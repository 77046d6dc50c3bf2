package gate

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// helloTimeout bounds how long an unknown connection may stay silent.
const helloTimeout = 5 * time.Second

// Server is the runner's side: it admits the processes it expects and hands
// their arrivals on. Close it when the run is over; every role then ends.
type Server struct {
	ln     net.Listener
	mu     sync.Mutex
	guests map[string]*Guest // by secret, until the one connection has come
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

// Listen opens the gate on a free port of 127.0.0.1.
func Listen(ctx context.Context) (*Server, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the gate: %w", err)
	}
	s := &Server{ln: ln, guests: map[string]*Guest{}, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	return s, nil
}

// Guest is one expected process. Its callbacks are called from one goroutine.
type Guest struct {
	Step string
	Stop []Checkpoint  // where the process has to wait
	Came func(Arrival) // a process got to a checkpoint
	Gone func()        // its connection ended; called once, only after a hello

	mu   sync.Mutex
	conn net.Conn
	held map[int]bool // arrivals without a decision
}

// Expect makes a secret for one process and returns the environment it needs.
func (s *Server) Expect(g *Guest) (env []string) {
	key := rand.Text()
	g.held = map[int]bool{}
	s.mu.Lock()
	s.guests[key] = g
	s.mu.Unlock()
	return []string{EnvAddress + "=tcp:" + s.ln.Addr().String(), EnvKey + "=" + key}
}

// Forget stops expecting a process that ended without a hello.
func (s *Server) Forget(g *Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, x := range s.guests {
		if x == g {
			delete(s.guests, k)
		}
	}
}

// Close ends the gate: every connected process loses it and must end.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close() //nolint:errcheck // ending it is the point
	}
	s.mu.Unlock()
	err := s.ln.Close()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			c.Close() //nolint:errcheck // nothing was said yet
			continue
		}
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		c.Close() //nolint:errcheck // the peer is gone or refused
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxLine)
	g := s.greet(c, lines)
	if g == nil {
		return
	}
	defer func() {
		g.mu.Lock()
		g.conn = nil
		g.mu.Unlock()
		g.Gone()
	}()
	for lines.Scan() {
		var w wire
		if json.Unmarshal(lines.Bytes(), &w) != nil || w.Arrive == nil {
			return // not our protocol: the role loses its gate and ends
		}
		g.mu.Lock()
		g.held[w.Arrive.N] = true
		g.mu.Unlock()
		g.Came(*w.Arrive)
	}
}

// greet reads the hello and returns whose it is, or nil.
func (s *Server) greet(c net.Conn, lines *bufio.Scanner) *Guest {
	if c.SetReadDeadline(time.Now().Add(helloTimeout)) != nil || !lines.Scan() {
		return nil
	}
	var w wire
	if json.Unmarshal(lines.Bytes(), &w) != nil || w.Hello == nil {
		return nil
	}
	g := s.redeem(w.Hello.Key)
	if g == nil || g.Step != w.Hello.Step || c.SetReadDeadline(time.Time{}) != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if send(c, wire{Welcome: &welcome{Stop: g.Stop}}) != nil {
		return nil
	}
	g.conn = c
	return g
}

// redeem finds the guest of a secret and makes the secret worthless.
func (s *Server) redeem(key string) *Guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Guest
	var secret string
	for k, g := range s.guests {
		if subtle.ConstantTimeCompare([]byte(k), []byte(key)) == 1 {
			found, secret = g, k
		}
	}
	delete(s.guests, secret)
	return found
}

// Decide answers an arrival. An arrival is answered once; an answer that no
// longer finds the process is an error.
func (g *Guest) Decide(n int, do Decision) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return fmt.Errorf("decide arrival %d of %s: the process has left the gate", n, g.Step)
	}
	if !g.held[n] {
		return fmt.Errorf("decide arrival %d of %s: it is not waiting", n, g.Step)
	}
	delete(g.held, n)
	if err := send(g.conn, wire{Decide: &decide{N: n, Do: do}}); err != nil {
		return fmt.Errorf("decide arrival %d of %s: %w", n, g.Step, err)
	}
	return nil
}

// Cut asks the process to break its connections to everybody but the gate.
func (g *Guest) Cut() error { return g.tell(doCut) }

// Finish asks the process to end in order after what it has in hand.
func (g *Guest) Finish() error { return g.tell(doFinish) }

func (g *Guest) tell(do string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return fmt.Errorf("%s %s: the process has left the gate", do, g.Step)
	}
	if err := send(g.conn, wire{Do: do}); err != nil {
		return fmt.Errorf("%s %s: %w", do, g.Step, err)
	}
	return nil
}

// send writes one line; a stopped peer must not stop the runner.
func send(c net.Conn, w wire) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}
