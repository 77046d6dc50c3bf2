package gate_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqlab/gate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a wait for something that must come.
const patience = 10 * time.Second

// next is the next value of a channel; a test that waits for ever says nothing.
func next[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// party is a guest with what the runner is told about it.
type party struct {
	*gate.Guest
	env  []string
	came chan gate.Arrival
	gone chan struct{} // one place for each call, and one to notice a second
}

func listen(t testing.TB) *gate.Server {
	t.Helper()
	s, err := gate.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func expect(s *gate.Server, step string, stop ...gate.Checkpoint) *party {
	p := &party{came: make(chan gate.Arrival, 100), gone: make(chan struct{}, 2)}
	p.Guest = &gate.Guest{Step: step, Stop: stop,
		Came: func(a gate.Arrival) { p.came <- a }, Gone: func() { p.gone <- struct{}{} }}
	p.env = s.Expect(p.Guest)
	return p
}

// set puts a guest's environment into this process.
func (p *party) set(t testing.TB) {
	t.Helper()
	for _, kv := range p.env {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
}

// address and key are what the environment says.
func (p *party) address() string { return strings.TrimPrefix(p.env[0], gate.EnvAddress+"=tcp:") }
func (p *party) key() string     { return strings.TrimPrefix(p.env[1], gate.EnvKey+"=") }

// role is a client with what it is told when the gate breaks.
type role struct {
	*gate.Client
	lost chan error
	n    atomic.Int32 // how often it was told
}

func dial(t testing.TB, p *party) *role {
	t.Helper()
	p.set(t)
	r := &role{lost: make(chan error, 2)}
	var err error
	r.Client, err = gate.Dial(t.Context(), p.Step, func(err error) { r.n.Add(1); r.lost <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // its error is that of a broken gate
	return r
}

// verdict is what Wait returned.
type verdict struct {
	do  gate.Decision
	err error
}

// arrive goes to a checkpoint and stands there in a goroutine.
func (r *role) arrive(ctx context.Context, cp gate.Checkpoint, message string) (gate.Arrival, <-chan verdict) {
	a := r.Next(cp, message, "order-"+message)
	ch := make(chan verdict, 1)
	go func() { // ends with the decision or the gate
		do, err := r.Wait(ctx, a)
		ch <- verdict{do, err}
	}()
	return a, ch
}

// stranger speaks the protocol by hand.
type stranger struct {
	t     testing.TB
	conn  net.Conn
	lines *bufio.Scanner
}

func connect(t testing.TB, p *party) *stranger {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &stranger{t, conn, bufio.NewScanner(conn)}
}

// say writes as it is; a peer that has hung up is no failure.
func (s *stranger) say(text string) { _, _ = s.conn.Write([]byte(text)) }

// hears reads one line, or "" at the end.
func (s *stranger) hears() string {
	s.t.Helper()
	if s.lines.Scan() {
		return s.lines.Text()
	}
	return ""
}

func hello(step, key string) string {
	return `{"hello":{"step":"` + step + `","pid":1,"key":"` + key + `"}}` + "\n"
}

func TestCheckpoints(t *testing.T) {
	seen := map[gate.Checkpoint]bool{}
	for _, cp := range gate.Checkpoints() {
		got, err := gate.ParseCheckpoint(string(cp))
		if err != nil || got != cp || seen[cp] {
			t.Errorf("%s: %s, %v, seen %t", cp, got, err, seen[cp])
		}
		seen[cp] = true
	}
	if cp, err := gate.ParseCheckpoint("before-offset-commit"); cp != gate.BeforeAck || err != nil {
		t.Errorf("before-offset-commit: %s, %v", cp, err)
	}
	for _, s := range []string{"", "BEFORE-ACK", "before-ack ", "never"} {
		if _, err := gate.ParseCheckpoint(s); err == nil {
			t.Errorf("%q is a checkpoint", s)
		}
	}
}

// BenchmarkCheckpoint is one arrival that is passed.
func BenchmarkCheckpoint(b *testing.B) {
	s := listen(b)
	p := expect(s, "consumer", gate.BeforeAck)
	p.Came = func(a gate.Arrival) {
		if err := p.Decide(a.N, gate.Pass); err != nil {
			b.Error(err)
		}
	}
	r := dial(b, p)
	for b.Loop() {
		if do, err := r.Wait(b.Context(), r.Next(gate.BeforeAck, "m1", "order-1001")); do != gate.Pass || err != nil {
			b.Fatal(do, err)
		}
	}
}
