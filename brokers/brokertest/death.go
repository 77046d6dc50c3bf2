package brokertest

import (
	"os"
	"syscall"
	"time"

	"mqlab/brokers"
)

func deathCases() []testCase {
	return []testCase{
		{name: "acked-then-exit-137", run: ackedThenExit},
		{name: "redelivery-after-exit-137", run: redelivery(exitBeforeAck, nil)},
		{name: "redelivery-after-sigkill", run: redelivery(waitForSignal, os.Kill)},
		{name: "redelivery-after-sigterm", run: redelivery(waitForSignal, syscall.SIGTERM)},
		{name: "redelivery-after-close", run: redeliveryAfterClose},
		{name: "redelivery-after-cut", run: redeliveryAfterCut},
		{name: "ack-after-cut", run: ackAfterCut},
		{name: "send-after-cut", run: sendAfterCut},
		{name: "kept-over-a-kill-of-the-broker", run: keptOverKill, timeout: 2 * time.Minute, needs: []brokers.Capability{brokers.Durable}},
	}
}

// ackedThenExit: the process is gone in the instant in which Ack returned, and
// no library has had time to send anything.
func ackedThenExit(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2")
	ch := sc.child(exitAfterAck)
	sc.say("run 1 received %s", ch.received)
	sc.say("run 1 acked it and ended: %s", ch.end(nil))
	sc.idle(i)
	sc.left(i, 1)
	d := sc.receive(sc.consumer("c", 1), "m2")
	// A broker may have pushed it to the dying process already.
	sc.say("run 2 received %s", show(d))
	sc.ack(d)
	sc.left(i, 0)
}

// redelivery is a consumer process that dies with a delivery in its hands.
func redelivery(name string, sig os.Signal) func(*scene) {
	return func(sc *scene) {
		sc.prepare()
		sc.send(sc.producer(), "m1", "m2")
		ch := sc.child(name)
		sc.say("run 1 received %s", ch.received)
		sc.say("run 1 ended: %s", ch.end(sig))
		sc.again()
	}
}

// again takes m1 once more and m2 for the first time.
func (sc *scene) again() {
	sc.Helper()
	i := sc.inspector()
	sc.idle(i)
	sc.left(i, 2)
	c := sc.consumer("c", 1)
	d := sc.receive(c, "m1")
	sc.say("run 2 received %s", show(d))
	sc.marked(d, sc.s.Marks.Again)
	sc.ack(d)
	d = sc.receive(c, "m2")
	sc.say("run 2 received %s", show(d))
	sc.marked(d, sc.s.Marks.First)
	sc.ack(d)
	sc.left(i, 0)
}

func redeliveryAfterClose(sc *scene) {
	sc.prepare()
	sc.send(sc.producer(), "m1", "m2")
	c := sc.consumer("c", 1)
	sc.say("run 1 received %s", show(sc.receive(c, "m1")))
	sc.must(c.Close(sc.ctx))
	sc.say("run 1 closed without an ack")
	sc.again()
}

func redeliveryAfterCut(sc *scene) {
	sc.prepare()
	through, cut := sc.cut()
	sc.send(sc.producer(), "m1", "m2")
	c := sc.consumerAt(through, "c", 1)
	sc.say("run 1 received %s", show(sc.receive(c, "m1")))
	cut()
	_, err := c.Receive(sc.ctx)
	for n := int64(0); err == nil && n < sc.s.Habits.Ahead; n++ { // what the client had taken already
		_, err = c.Receive(sc.ctx)
	}
	sc.want("receive after the cut", err, brokers.ErrConnectionLost)
	sc.say("run 1 was cut off: %s", class(err))
	sc.again()
}

// ackAfterCut: the message is somebody else's by now, so the ack must not
// look as if it had worked.
func ackAfterCut(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	through, cut := sc.cut()
	sc.send(sc.producer(), "m1")
	late := sc.receive(sc.consumerAt(through, "c", 1), "m1")
	cut()
	err := late.Ack(sc.ctx)
	sc.wantUnless(sc.s.Habits.LateAckTaken, "ack after the cut", err, brokers.ErrAckRefused)
	sc.say("ack after the cut: %s", class(err))
	sc.idle(i)
	sc.left(i, 1)
	other := sc.receive(sc.consumer("c", 1), "m1")
	err = late.Ack(sc.ctx)
	sc.wantUnless(sc.s.Habits.LateAckTaken, "ack after the takeover", err, brokers.ErrAckRefused)
	sc.left(i, 1)
	sc.say("ack after another consumer took it: %s, left 1", class(err))
	sc.ack(other)
	sc.left(i, 0)
}

func sendAfterCut(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	through, cut := sc.cut()
	p := sc.producerAt(through)
	sc.send(p, "m1")
	cut()
	_, err := p.Send(sc.ctx, message("m2"))
	sc.want("send after the cut", err, brokers.ErrConnectionLost)
	sc.left(i, 1)
	sc.say("send after the cut: %s, left 1", class(err))
}

func keptOverKill(sc *scene) {
	if sc.s.Restart == nil {
		sc.skip("this broker cannot be killed from here")
	}
	sc.prepare()
	sc.send(sc.producer(), "m1", "m2", "m3")
	sc.must(sc.s.Restart(sc.ctx))
	i := sc.inspector()
	sc.left(i, 3)
	c := sc.consumer("c", 1)
	for _, id := range []string{"m1", "m2", "m3"} {
		d := sc.receive(c, id)
		sc.say("after the restart: %s", show(d))
		sc.ack(d)
	}
	sc.left(i, 0)
}
