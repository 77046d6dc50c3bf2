package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"mqlab/gate"
)

func TestOnlyNamedCheckpointsStop(t *testing.T) {
	stop := []gate.Checkpoint{gate.AfterDelivery, gate.BeforeAck}
	r := dial(t, expect(listen(t), "consumer", stop...))
	for _, cp := range gate.Checkpoints() {
		if r.Stops(cp) != slices.Contains(stop, cp) {
			t.Errorf("%s: stops is %t", cp, r.Stops(cp))
		}
	}
	r = dial(t, expect(listen(t), "consumer"))
	for _, cp := range gate.Checkpoints() {
		if r.Stops(cp) {
			t.Errorf("nothing was named, %s stops", cp)
		}
	}
}

func TestDecide(t *testing.T) {
	p := expect(listen(t), "consumer", gate.BeforeAck)
	r := dial(t, p)
	for n, do := range []gate.Decision{gate.Pass, gate.Halt, gate.Fail, gate.Pass} {
		a, answered := r.arrive(t.Context(), gate.BeforeAck, "m1")
		if got := next(t, "the arrival", p.came); got != a || a.N != n+1 || a.Key != "order-m1" {
			t.Errorf("%+v came, %+v was sent", got, a)
		}
		select {
		case v := <-answered:
			t.Errorf("it did not wait: %+v", v)
		default:
		}
		if err := p.Decide(a.N, do); err != nil {
			t.Fatal(err)
		}
		if v := next(t, "the decision", answered); v.do != do || v.err != nil {
			t.Errorf("%+v, want %s", v, do)
		}
		if err := p.Decide(a.N, do); err == nil {
			t.Error("it was decided twice")
		}
	}
	if err := p.Decide(99, gate.Pass); err == nil || !strings.Contains(err.Error(), "consumer") {
		t.Errorf("an arrival that never was: %v", err)
	}
}

// TestSeveralWait: one process, several workers, answers in any order.
func TestSeveralWait(t *testing.T) {
	const workers = 20
	p := expect(listen(t), "consumer", gate.AfterDelivery)
	r := dial(t, p)
	verdicts := map[int]<-chan verdict{}
	for range workers {
		a, ch := r.arrive(t.Context(), gate.AfterDelivery, "m")
		verdicts[a.N] = ch
	}
	var order []int
	for range workers {
		order = append(order, next(t, "an arrival", p.came).N)
	}
	slices.Reverse(order)
	for k, n := range order {
		do := gate.Pass
		if k%2 == 1 {
			do = gate.Fail
		}
		if err := p.Decide(n, do); err != nil {
			t.Fatal(err)
		}
		if v := next(t, "the decision", verdicts[n]); v.do != do || v.err != nil {
			t.Errorf("arrival %d: %+v, want %s", n, v, do)
		}
		for _, later := range order[k+1:] {
			if len(verdicts[later]) != 0 {
				t.Errorf("arrival %d was let through by the decision for %d", later, n)
			}
		}
	}
}

// TestTwoGuests do not hear each other's decisions.
func TestTwoGuests(t *testing.T) {
	s := listen(t)
	p1, p2 := expect(s, "run1", gate.BeforeAck), expect(s, "run2", gate.BeforeAck)
	r1, r2 := dial(t, p1), dial(t, p2)
	a1, v1 := r1.arrive(t.Context(), gate.BeforeAck, "m1")
	a2, v2 := r2.arrive(t.Context(), gate.BeforeAck, "m2")
	if got1, got2 := next(t, "run1", p1.came), next(t, "run2", p2.came); got1 != a1 || got2 != a2 {
		t.Fatalf("%+v and %+v", got1, got2)
	}
	if err := p1.Decide(a1.N, gate.Halt); err != nil {
		t.Fatal(err)
	}
	if v := next(t, "run1's decision", v1); v.do != gate.Halt {
		t.Error(v)
	}
	if len(v2) != 0 {
		t.Error("run2 was let through")
	}
	if err := r1.Close(); err != nil {
		t.Error(err)
	}
	next(t, "the end of run1", p1.gone)
	if err := p1.Decide(a1.N, gate.Pass); err == nil {
		t.Error("a process that has left got a decision")
	}
	if err := p2.Decide(a2.N, gate.Pass); err != nil {
		t.Error(err)
	}
	if v := next(t, "run2's decision", v2); v.do != gate.Pass {
		t.Error(v)
	}
}

func TestFinish(t *testing.T) {
	p := expect(listen(t), "consumer", gate.BeforeAck)
	if err := p.Finish(); err == nil {
		t.Error("one that has not come was asked to finish")
	}
	r := dial(t, p)
	a, answered := r.arrive(t.Context(), gate.BeforeAck, "m1")
	next(t, "the arrival", p.came)
	if err := errors.Join(p.Finish(), p.Finish()); err != nil {
		t.Fatal(err)
	}
	next(t, "the request to finish", r.Finishing())
	if len(answered) != 0 {
		t.Error("finish let the waiting one through")
	}
	if err := p.Decide(a.N, gate.Pass); err != nil {
		t.Error(err)
	}
	if v := next(t, "the decision", answered); v.do != gate.Pass {
		t.Error(v)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	next(t, "the end", p.gone)
	if err := p.Finish(); err == nil {
		t.Error("one that has left was asked to finish")
	}
}

// TestLost: the gate breaks while the role waits, and while it does not.
func TestLost(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		s := listen(t)
		p := expect(s, "consumer", gate.BeforeAck)
		r := dial(t, p)
		var answered <-chan verdict
		if waiting {
			_, answered = r.arrive(t.Context(), gate.BeforeAck, "m1")
			next(t, "the arrival", p.came)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		_ = next(t, "the loss", r.lost)
		if waiting {
			if v := next(t, "the end of the wait", answered); v.err == nil {
				t.Errorf("it went on with %q", v.do)
			}
		}
		next(t, "the end", p.gone)
		if _, err := r.Wait(t.Context(), r.Next(gate.BeforeAck, "m2", "")); err == nil {
			t.Error("a broken gate let one through")
		}
		_ = r.Close() // waits for the reader
		if n := r.n.Load(); n != 1 || len(p.gone) != 0 {
			t.Errorf("waiting %t: lost was called %d times, gone %d times more", waiting, n, len(p.gone))
		}
	}
}

// TestServerCloseEndsEveryone, those too who have not said hello.
func TestServerCloseEndsEveryone(t *testing.T) {
	s := listen(t)
	var roles []*role
	var last *party
	for range 5 {
		last = expect(s, "consumer")
		roles = append(roles, dial(t, last))
	}
	silent := connect(t, last)
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	for _, r := range roles {
		_ = next(t, "the loss", r.lost)
	}
	if got := silent.hears(); got != "" {
		t.Errorf("was told %s", got)
	}
}

// TestClientClose is no loss, and may come from several places.
func TestClientClose(t *testing.T) {
	p := expect(listen(t), "consumer", gate.BeforeAck)
	r := dial(t, p)
	_, answered := r.arrive(t.Context(), gate.BeforeAck, "m1")
	next(t, "the arrival", p.came)
	var closers sync.WaitGroup
	for range 10 {
		closers.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	if v := next(t, "the end of the wait", answered); v.err == nil {
		t.Errorf("it went on with %q", v.do)
	}
	next(t, "the end", p.gone)
	if n := r.n.Load(); n != 0 {
		t.Errorf("lost was called %d times", n)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p := expect(listen(t), "consumer", gate.BeforeAck)
	r := dial(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	a, answered := r.arrive(ctx, gate.BeforeAck, "m1")
	next(t, "the arrival", p.came)
	cancel()
	if v := next(t, "the end of the wait", answered); !errors.Is(v.err, context.Canceled) {
		t.Error(v)
	}
	// A decision that comes too late neither blocks nor reaches the next one.
	b, answered := r.arrive(t.Context(), gate.BeforeAck, "m2")
	next(t, "the arrival", p.came)
	if err := errors.Join(p.Decide(a.N, gate.Halt), p.Decide(b.N, gate.Pass)); err != nil {
		t.Fatal(err)
	}
	if v := next(t, "the decision", answered); v.do != gate.Pass {
		t.Error(v)
	}
}

// TestBrokenProtocol: who stops speaking it loses the gate.
func TestBrokenProtocol(t *testing.T) {
	for name, line := range map[string]string{
		"garbage":      "what?\n",
		"second hello": hello("consumer", "x"),
		"runner's":     `{"decide":{"n":1,"do":"pass"}}` + "\n",
		"too long":     `{"arrive":{"message":"` + strings.Repeat("x", 64<<10) + `"}}` + "\n",
		"number":       `{"arrive":{"n":"one"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := expect(listen(t), "consumer")
			s := connect(t, p)
			s.say(hello("consumer", p.key()))
			if s.hears() == "" {
				t.Fatal("no welcome")
			}
			s.say(line)
			if got := s.hears(); got != "" {
				t.Errorf("was told %s", got)
			}
			next(t, "the end", p.gone)
			if len(p.came) != 0 {
				t.Error("an arrival came through")
			}
		})
	}
}
