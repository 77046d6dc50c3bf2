package gate_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"mqlab/gate"
)

// TestOpenGate: without a gate in the environment nothing waits.
func TestOpenGate(t *testing.T) {
	t.Setenv(gate.EnvAddress, "")
	t.Setenv(gate.EnvKey, "left over")
	dialled, err := gate.Dial(t.Context(), "consumer", func(error) { t.Error("an open gate was lost") })
	if err != nil {
		t.Fatal(err)
	}
	if _, there := os.LookupEnv(gate.EnvKey); there {
		t.Error("the secret is still in the environment")
	}
	for name, c := range map[string]*gate.Client{"dialled": dialled, "zero": {}} {
		for _, cp := range gate.Checkpoints() {
			if c.Stops(cp) {
				t.Errorf("%s: %s stops", name, cp)
			}
		}
		if do, err := c.Wait(t.Context(), c.Next(gate.BeforeAck, "m1", "")); do != gate.Pass || err != nil {
			t.Errorf("%s: %s, %v", name, do, err)
		}
		if c.Finishing() != nil {
			t.Errorf("%s: somebody could ask for a finish", name)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretLeavesTheEnvironment(t *testing.T) {
	p := expect(listen(t), "consumer")
	if len(p.key()) < 20 {
		t.Errorf("a secret of %d characters can be guessed", len(p.key()))
	}
	dial(t, p)
	for _, kv := range os.Environ() {
		if strings.Contains(kv, p.key()) {
			t.Errorf("the secret is still in %s", strings.SplitN(kv, "=", 2)[0])
		}
	}
}

// TestOnTheWire is the protocol of the package comment, to the letter.
func TestOnTheWire(t *testing.T) {
	p := expect(listen(t), "consumer-run1", gate.AfterDelivery, gate.BeforeAck)
	s := connect(t, p)
	s.say(hello("consumer-run1", p.key()))
	if got, want := s.hears(), `{"welcome":{"stop":["after-delivery","before-ack"]}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.say(`{"arrive":{"n":7,"checkpoint":"before-ack","message":"m1","key":"order-1001"}}` + "\n")
	want := gate.Arrival{N: 7, Checkpoint: gate.BeforeAck, Message: "m1", Key: "order-1001"}
	if got := next(t, "the arrival", p.came); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := errors.Join(p.Decide(7, gate.Pass), p.Finish()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`{"decide":{"n":7,"do":"pass"}}`, `{"do":"finish"}`} {
		if got := s.hears(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestRefused: nobody is let in, and the expected one still is, unless its
// secret has been used.
func TestRefused(t *testing.T) {
	tests := []struct {
		name  string
		says  func(key string) string
		burnt bool // the secret was right and is worthless now
	}{
		{"wrong key", func(string) string { return hello("consumer", "AAAAAAAAAAAAAAAAAAAAAAAAAA") }, false},
		{"no key", func(string) string { return hello("consumer", "") }, false},
		{"part of the key", func(key string) string { return hello("consumer", key[1:]) }, false},
		{"wrong step", func(key string) string { return hello("producer", key) }, true},
		{"garbage", func(string) string { return "GET / HTTP/1.1\r\n\r\n" }, false},
		{"empty line", func(string) string { return "\n" }, false},
		{"null", func(string) string { return "null\n" }, false},
		{"arrival first", func(string) string { return `{"arrive":{"n":1,"checkpoint":"before-ack","message":"m1"}}` + "\n" }, false},
		{"too long", func(key string) string {
			return strings.Replace(hello("consumer", key), "{", strings.Repeat(" ", 64<<10)+"{", 1)
		}, false},
		{"endless", func(string) string { return strings.Repeat("x", 1<<20) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := expect(listen(t), "consumer")
			s := connect(t, p)
			s.say(tt.says(p.key()))
			if got := s.hears(); got != "" {
				t.Errorf("was told %s", got)
			}
			s = connect(t, p)
			s.say(hello("consumer", p.key()))
			if got := s.hears(); (got == "") != tt.burnt {
				t.Errorf("the expected one was told %q", got)
			}
			if len(p.came) != 0 {
				t.Error("an arrival came through")
			}
		})
	}
}

func TestKeyIsGoodForOneConnection(t *testing.T) {
	p := expect(listen(t), "consumer")
	dial(t, p)
	p.set(t)
	_, err := gate.Dial(t.Context(), "consumer", nil)
	if err == nil {
		t.Fatal("the secret worked twice")
	}
	if strings.Contains(err.Error(), p.key()) {
		t.Error("the secret stands in the error")
	}
	if len(p.gone) != 0 {
		t.Error("the second one has pushed the first out")
	}
}

// TestForget: a process that ended without a hello leaves no open door, and
// was never there to go.
func TestForget(t *testing.T) {
	server := listen(t)
	p, other := expect(server, "consumer"), expect(server, "consumer")
	server.Forget(p.Guest)
	server.Forget(p.Guest)
	s := connect(t, p)
	s.say(hello("consumer", p.key()))
	if got := s.hears(); got != "" {
		t.Errorf("a forgotten guest was told %s", got)
	}
	if len(p.gone) != 0 {
		t.Error("one that never came has gone")
	}
	dial(t, other)
}

func TestDialErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer := func(line string) func(*testing.T) string {
		return func(t *testing.T) string {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			t.Cleanup(func() { _ = ln.Close(); <-done })
			go func() { // ends with the listener, or with the client's hello
				defer close(done)
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1000))
				_, _ = c.Write([]byte(line))
				_ = c.Close()
			}()
			return "tcp:" + ln.Addr().String()
		}
	}
	fixed := func(s string) func(*testing.T) string { return func(*testing.T) string { return s } }
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]func(*testing.T) string{
		"no scheme":       fixed("127.0.0.1:1"),
		"no port":         fixed("tcp:127.0.0.1"),
		"nobody listens":  fixed("tcp:" + ln.Addr().String()),
		"no answer":       answer(""),
		"garbage":         answer("HTTP/1.1 400 Bad Request\r\n"),
		"another message": answer(`{"do":"finish"}` + "\n"),
		"endless":         answer(strings.Repeat("x", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(gate.EnvAddress, address(t))
			t.Setenv(gate.EnvKey, "top-secret")
			c, err := gate.Dial(t.Context(), "consumer", func(error) { t.Error("lost") })
			if err == nil {
				t.Fatal("it was let in", c)
			}
			if strings.Contains(err.Error(), "top-secret") {
				t.Error("the secret stands in the error")
			}
		})
	}
}

// TestDialEndsWithItsContext when a gate takes the connection and says nothing.
func TestDialEndsWithItsContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody else
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // nothing depends on it
	t.Setenv(gate.EnvAddress, "tcp:"+ln.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := gate.Dial(ctx, "consumer", nil)
		failed <- err
	}()
	cancel()
	if err := next(t, "the end of Dial", failed); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
