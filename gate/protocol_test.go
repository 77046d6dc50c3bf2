package gate

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newServer is a server without a listener; its connections are pipes.
func newServer() *Server { return &Server{guests: map[string]*Guest{}, conns: map[net.Conn]bool{}} }

// TestSilence: one that says nothing is shown out, and one that has said hello
// may be silent for as long as it likes. The clock is not the real one.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		start := time.Now()
		near, far := net.Pipe()
		go s.serve(far)
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
		if took := time.Since(start); took != helloTimeout {
			t.Errorf("it took %v, want %v", took, helloTimeout)
		}

		var came, gone atomic.Int32
		s.guests["secret"] = &Guest{Step: "consumer", held: map[int]bool{},
			Came: func(Arrival) { came.Add(1) }, Gone: func() { gone.Add(1) }}
		near, far = net.Pipe()
		go s.serve(far)
		say := func(line string) {
			if _, err := near.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		say(`{"hello":{"step":"consumer","key":"secret"}}`)
		if _, err := near.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		say(`{"arrive":{"n":1,"checkpoint":"before-ack"}}`)
		time.Sleep(24 * time.Hour)
		if came.Load() != 1 || gone.Load() != 0 {
			t.Errorf("%d arrivals, gone %d times", came.Load(), gone.Load())
		}
		near.Close() //nolint:errcheck // a pipe
		synctest.Wait()
		if gone.Load() != 1 {
			t.Errorf("gone %d times", gone.Load())
		}
	})
}

// FuzzServe feeds the server's reader with anything; KEY stands for the
// secret. Nobody gets an arrival through without it, whoever was welcomed goes
// once, and the reader always ends.
func FuzzServe(f *testing.F) {
	const greeting = `{"hello":{"step":"consumer","pid":1,"key":"KEY"}}` + "\n"
	for _, s := range []string{
		"", "\n", "null\n", "{}\n", greeting, greeting + greeting,
		greeting + `{"arrive":{"n":1,"checkpoint":"before-ack","message":"m1"}}` + "\n",
		greeting + `{"arrive":{"n":-1}}` + "\n" + `{"arrive":{}}`,
		greeting + `{"arrive":null,"do":"finish"}` + "\n",
		greeting + "{\"arrive\":{\"n\":1e99}}\n\xff\x00",
		`{"hello":{"step":"consumer","key":"wrong"}}` + "\n" + `{"arrive":{"n":1}}` + "\n",
		strings.Repeat("[", 10_000) + "\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		const secret = "THE-SECRET"
		said = bytes.ReplaceAll(said, []byte("KEY"), []byte(secret))
		came, gone := 0, 0
		s := newServer()
		g := &Guest{Step: "consumer", held: map[int]bool{}, Came: func(Arrival) { came++ }, Gone: func() { gone++ }}
		s.guests[secret] = g
		near, far := net.Pipe()
		var wg sync.WaitGroup
		var heard []byte
		wg.Go(func() { s.serve(far) })
		wg.Go(func() { heard, _ = io.ReadAll(near) })
		near.Write(said) //nolint:errcheck // the server may hang up at any byte
		near.Close()     //nolint:errcheck // a pipe
		wg.Wait()
		if gone > 1 || came > bytes.Count(said, []byte("\n"))+1 {
			t.Errorf("%d arrivals, gone %d times", came, gone)
		}
		if came+gone+len(heard) > 0 && !decodes(said, secret) {
			t.Errorf("let in without the secret: %d arrivals, gone %d times, heard %q", came, gone, heard)
		}
		if gone > 0 && (s.redeem(secret) != nil || g.conn != nil) {
			t.Error("the secret is still good, or the guest still there")
		}
	})
}

// decodes reports whether the secret stands in the text. JSON may spell a
// letter as an escape, in which case it cannot be told from here.
func decodes(said []byte, secret string) bool {
	return bytes.Contains(said, []byte(secret)) || bytes.Contains(said, []byte(`\u`))
}
