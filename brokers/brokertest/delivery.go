package brokertest

import (
	"fmt"

	"mqlab/brokers"
)

func deliveryCases() []testCase {
	return []testCase{
		{name: "confirm-means-stored", run: confirmMeansStored},
		{name: "order", run: order},
		{name: "ack-removes", run: ackRemoves},
		{name: "acked-never-again", run: ackedNeverAgain},
		{name: "marks", run: marks},
		{name: "nack-drops", run: nackDrops},
		{name: "double-ack", run: doubleAck},
		{name: "prefetch", run: prefetch},
	}
}

// confirmMeansStored asks once after every Send: the confirm is the promise.
func confirmMeansStored(sc *scene) {
	sc.prepare()
	i, p := sc.inspector(), sc.producer()
	for n := range int64(3) {
		sc.send(p, fmt.Sprint("m", n+1))
		sc.left(i, n+1)
		sc.say("%s %d, left %d", sc.s.Driver.SentWord(), n+1, n+1)
	}
}

func order(sc *scene) {
	const n = 50
	sc.prepare()
	p := sc.producer()
	for k := range n {
		sc.send(p, fmt.Sprint("m", k))
	}
	c := sc.consumer("c", 1)
	for k := range n {
		sc.ack(sc.receive(c, fmt.Sprint("m", k)))
	}
	sc.say("%d messages came in the order of their confirms", n)
}

// ackRemoves asks once after every Ack: it must not come back before the
// broker has taken it.
func ackRemoves(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2", "m3")
	c := sc.consumer("c", 1)
	for n := range int64(3) {
		d := sc.receive(c, fmt.Sprint("m", n+1))
		sc.left(i, 3-n)
		sc.ack(d)
		sc.left(i, 2-n)
		sc.say("acked %d, left %d", n+1, 2-n)
	}
}

func ackedNeverAgain(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2")
	c := sc.consumer("c", 1)
	sc.ack(sc.receive(c, "m1"))
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	d := sc.receive(sc.consumer("c", 1), "m2")
	sc.say("m1 was acked, next is %s", d.Message().ID)
	sc.ack(d)
	sc.left(i, 0)
}

// marks looks at one message, so that the order of what comes back, which is
// not the same on every broker, does not matter.
func marks(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1")
	c := sc.consumer("c-1", 1)
	d := sc.receive(c, "m1")
	sc.say("first: %s", show(d))
	sc.marked(d, sc.s.Marks.First)
	if d.Marks().Consumer != "c-1" {
		sc.Errorf("the delivery names consumer %q", d.Marks().Consumer)
	}
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	c = sc.consumer("c-2", 1)
	d = sc.receive(c, "m1")
	sc.say("after the end of its consumer: %s", show(d))
	sc.marked(d, sc.s.Marks.Again)
	sc.ack(d)

	sc.send(sc.producer(), "m2")
	d = sc.receive(c, "m2")
	sc.marked(d, sc.s.Marks.First)
	sc.must(d.Nack(sc.ctx, true))
	sc.left(i, 1)
	d = sc.receive(c, "m2")
	sc.say("after a nack: %s", show(d))
	sc.marked(d, sc.s.Marks.Nacked)
	sc.ack(d)
	sc.left(i, 0)
}

func nackDrops(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2")
	c := sc.consumer("c", 1)
	sc.must(sc.receive(c, "m1").Nack(sc.ctx, false))
	sc.left(i, 1)
	d := sc.receive(c, "m2")
	sc.say("m1 was dropped, next is %s", show(d))
	sc.ack(d)
	sc.left(i, 0)
}

// doubleAck: whatever a broker makes of the second one, it must not be taken
// for an ack of something else.
func doubleAck(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2")
	c := sc.consumer("c", 1)
	d := sc.receive(c, "m1")
	sc.ack(d)
	err := d.Ack(sc.ctx)
	sc.wantUnless(sc.s.Habits.SecondAckTaken, "the second ack", err, brokers.ErrAckRefused)
	sc.say("second ack: %s", class(err))
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	sc.left(i, 1)
	sc.ack(sc.receive(sc.consumer("c", 1), "m2"))
}

// prefetch reads from the broker's numbers how much was handed out: waiting
// for nothing to come would prove nothing.
func prefetch(sc *scene) {
	sc.need("ready", "unacknowledged")
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2", "m3", "m4")
	c := sc.consumer("c", 1)
	out := func(what string, want int64) {
		sc.Helper()
		st := sc.await(i, fmt.Sprint(want, " handed out"), func(st brokers.State) bool { return *st.Figures["unacknowledged"] == want })
		sc.say("%s: ready=%d unacknowledged=%d", what, *st.Figures["ready"], *st.Figures["unacknowledged"])
	}
	d := sc.receive(c, "m1")
	if n := *sc.state(i).Figures["unacknowledged"]; n != 1 {
		sc.Fatalf("%d handed out at prefetch 1", n)
	}
	out("prefetch 1, m1 in hand", 1)
	sc.ack(d)
	out("m1 acked", 1)
	d = sc.receive(c, "m2")
	sc.ack(d)
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	c = sc.consumer("c", 3)
	sc.receive(c, "m3")
	out("prefetch 3, m3 in hand", 2)
}
