package brokertest

import (
	"errors"

	"mqlab/brokers"
)

func stateCases() []testCase {
	return []testCase{
		{name: "state", run: life},
		{name: "missing-destination", run: missing},
		{name: "prepare", run: prepare},
	}
}

// life looks at the broker's numbers through the life of three messages.
func life(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	look := func(what string, left int64, idle bool) {
		sc.Helper()
		// A push and the end of a client are the broker's own acts.
		st := sc.await(i, what, func(st brokers.State) bool {
			return st.Left == left && st.Idle == idle && sc.handedOut(st, idle)
		})
		if st.Took <= 0 {
			sc.Errorf("%s: the answer took %v", what, st.Took)
		}
		sc.say("%s: %s", what, sc.figures(st))
	}
	look("prepared", 0, true)
	p := sc.producer()
	look("a producer is open", 0, true)
	sc.send(p, "m1", "m2", "m3")
	look("three confirmed", 3, true)
	c := sc.consumer("c", 1)
	d := sc.receive(c, "m1")
	look("m1 in hand", 3, false)
	sc.ack(d)
	d = sc.receive(c, "m2")
	look("m1 acked, m2 in hand", 2, false)
	sc.must(d.Nack(sc.ctx, false))
	sc.receive(c, "m3")
	look("m2 dropped, m3 in hand", 1, false)
	sc.must(c.Close(sc.ctx))
	look("consumer closed", 1, true)
	c = sc.consumer("c", 1)
	sc.ack(sc.receive(c, "m3"))
	look("m3 acked", 0, false)
	sc.must(c.Close(sc.ctx))
	look("consumer closed", 0, true)
}

// handedOut reports whether as much is handed out as a consumer with prefetch 1
// takes in the end, if the driver has that number.
func (sc *scene) handedOut(st brokers.State, idle bool) bool {
	n, h := st.Figures["unacknowledged"], sc.s.Habits
	if n == nil {
		return true
	}
	if idle || h.Uncounted {
		return *n == 0
	}
	return *n == min(st.Left, 1+h.Ahead)
}

func missing(sc *scene) {
	check := func(what string, err error) {
		sc.Helper()
		sc.want(what, err, brokers.ErrNotFound)
		if !errors.Is(err, brokers.ErrRefused) {
			sc.Errorf("%s: %v is not ErrRefused too", what, err)
		}
		sc.say("%s: %s", what, class(err))
	}
	_, err := sc.s.Driver.OpenProducer(sc.ctx, sc.s.Address, sc.dest, brokers.ProducerOptions{})
	check("producer", err)
	_, err = sc.s.Driver.OpenConsumer(sc.ctx, sc.s.Address, sc.dest, sc.consumerOptions("c", 1))
	check("consumer", err)
	i := sc.inspector()
	_, err = i.State(sc.ctx, sc.dest)
	check("state", err)
	sc.must(sc.s.Driver.Remove(sc.ctx, sc.s.Address, sc.dest))
	sc.say("remove: no error")
	sc.prepare()
	sc.left(i, 0) // the refusal has not hurt the inspector
	sc.must(sc.s.Driver.Remove(sc.ctx, sc.s.Address, sc.dest))
	_, err = i.State(sc.ctx, sc.dest)
	check("state after remove", err)
}

func prepare(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1")
	sc.must(sc.s.Driver.Prepare(sc.ctx, sc.s.Address, sc.dest))
	sc.left(i, 1)
	sc.say("the same again: no error, left 1")
	if sc.s.Other.Name() == "" {
		sc.skip("the subject names no other settings")
	}
	other := sc.s.Other
	other.Suffix = sc.dest.Suffix
	sc.must(sc.s.Driver.Check(other))
	err := sc.s.Driver.Prepare(sc.ctx, sc.s.Address, other)
	sc.want("prepare with other settings", err, brokers.ErrRefused)
	sc.left(i, 1)
	sc.say("with other settings: %s, left 1", class(err))
}
