package brokertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/goleak"

	"mqlab/brokers"
)

func endCases() []testCase {
	return []testCase{
		{name: "close", run: closing},
		{name: "cancel", run: cancelling},
		{name: "cancel-while-receiving", run: cancelWhileReceiving},
		{name: "receive-and-context", run: receiveAndContext},
		{name: "ten-consumers", run: tenConsumers},
		{name: "goroutines", run: goroutines},
	}
}

// answer is what a Receive returned in another goroutine.
type answer struct {
	d   brokers.Delivery
	err error
}

// receiving starts a Receive. The question for the state that follows makes it
// all but certain that it waits by the time the caller goes on; it is right
// either way.
func (sc *scene) receiving(ctx context.Context, c brokers.Consumer, i brokers.Inspector) <-chan answer {
	sc.Helper()
	ch := make(chan answer, 1)
	go func() { // ends with Receive, which the case ends
		d, err := c.Receive(ctx)
		ch <- answer{d, err}
	}()
	sc.state(i)
	return ch
}

func closing(sc *scene) {
	sc.prepare()
	i, p, c := sc.inspector(), sc.producer(), sc.consumer("c", 1)
	waiting := sc.receiving(sc.ctx, c, i)
	sc.must(c.Close(sc.ctx))
	a := <-waiting
	sc.want("a waiting receive", a.err, brokers.ErrClosed)
	sc.say("a receive that waits while the consumer is closed: %s", class(a.err))
	_, err := c.Receive(sc.ctx)
	sc.want("receive after close", err, brokers.ErrClosed)
	sc.say("a receive afterwards: %s", class(err))
	sc.must(c.Close(sc.ctx))
	sc.must(p.Close(sc.ctx))
	sc.must(p.Close(sc.ctx))
	if _, err := p.Send(sc.ctx, message("m1")); err == nil {
		sc.Error("a closed producer has sent a message")
	}
	sc.left(i, 0)
	sc.must(i.Close())
	sc.must(i.Close())
	sc.say("a second close: no error")
}

// cancelling has two more messages in the client's buffer, which the caller
// has never seen and must not see now.
func cancelling(sc *scene) {
	sc.prepare()
	i := sc.inspector()
	sc.send(sc.producer(), "m1", "m2", "m3")
	c := sc.consumer("c", 3)
	d := sc.receive(c, "m1")
	sc.must(c.Cancel(sc.ctx))
	_, err := c.Receive(sc.ctx)
	sc.want("receive after cancel", err, brokers.ErrClosed)
	sc.say("m1 in hand, a receive after cancel: %s", class(err))
	sc.left(i, 3)
	sc.ack(d)
	sc.left(i, 2)
	sc.say("the ack of m1 was taken, left 2")
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	c = sc.consumer("c", 1)
	for _, id := range []string{"m2", "m3"} {
		d := sc.receive(c, id)
		sc.say("another consumer received %s", d.Message().ID)
		sc.ack(d)
	}
	sc.left(i, 0)
}

func cancelWhileReceiving(sc *scene) {
	sc.prepare()
	i, p, c := sc.inspector(), sc.producer(), sc.consumer("c", 1)
	waiting := sc.receiving(sc.ctx, c, i)
	sc.must(c.Cancel(sc.ctx))
	a := <-waiting
	sc.want("a waiting receive", a.err, brokers.ErrClosed)
	sc.say("a receive that waits while the consumer is cancelled: %s", class(a.err))
	sc.send(p, "m1")
	_, err := c.Receive(sc.ctx)
	sc.want("receive after cancel", err, brokers.ErrClosed)
	sc.must(c.Close(sc.ctx))
	sc.idle(i)
	sc.left(i, 1)
	sc.say("a message that came later was not taken")
}

func receiveAndContext(sc *scene) {
	sc.prepare()
	i, p, c := sc.inspector(), sc.producer(), sc.consumer("c", 1)
	ctx, cancel := context.WithCancel(sc.ctx)
	waiting := sc.receiving(ctx, c, i)
	cancel()
	a := <-waiting
	sc.want("a waiting receive", a.err, context.Canceled)
	sc.say("a receive whose context ends: %s", class(a.err))
	sc.send(p, "m1")
	sc.ack(sc.receive(c, "m1"))
	sc.left(i, 0)
	sc.say("the consumer goes on")
}

// tenConsumers shares a hundred messages. Who gets how many is the broker's
// affair.
func tenConsumers(sc *scene) {
	const n, hands = 100, 10
	sc.prepare()
	i, p := sc.inspector(), sc.producer()
	ctx, cancel := context.WithCancel(sc.ctx)
	defer cancel()
	got := make(chan string)
	var wg sync.WaitGroup
	for k := range hands {
		c := sc.consumer(fmt.Sprint("c-", k), 1)
		wg.Go(func() { sc.consume(ctx, c, got) })
	}
	wg.Go(func() {
		for k := range n {
			// Not ctx: the last message may be consumed before its confirm is here.
			if _, err := p.Send(sc.ctx, message(fmt.Sprint("m", k))); err != nil {
				sc.Error(err)
				cancel()
			}
		}
	})
	times := map[string]int{}
	for total := 0; total < n; total++ {
		select {
		case id := <-got:
			times[id]++
		case <-ctx.Done():
			sc.Fatalf("after %d messages: %v", total, ctx.Err())
		}
	}
	cancel()
	wg.Wait()
	sc.left(i, 0)
	sc.say("%d consumers took %d messages, %d different ones", hands, n, len(times))
	if len(times) != n {
		sc.Errorf("times by message: %v", times)
	}
}

// consume acknowledges what comes until the context ends.
func (sc *scene) consume(ctx context.Context, c brokers.Consumer, got chan<- string) {
	for {
		d, err := c.Receive(ctx)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err == nil {
			err = d.Ack(sc.ctx)
		}
		if err != nil {
			sc.Error(err)
			return
		}
		select {
		case got <- d.Message().ID:
		case <-ctx.Done():
			sc.Errorf("%s is one too many", d.Message().ID)
			return
		}
	}
}

// goroutines opens everything, leaves messages in buffers and one connection
// cut, and closes. Run looks after every case; this one looks by itself, for
// those who search for the name.
func goroutines(sc *scene) {
	sc.prepare()
	through, cut := sc.cut()
	before := goleak.IgnoreCurrent()
	i, err := sc.s.Driver.OpenInspector(sc.ctx, sc.s.Address)
	sc.must(err)
	p, err := sc.s.Driver.OpenProducer(sc.ctx, sc.s.Address, sc.dest, brokers.ProducerOptions{})
	sc.must(err)
	sc.send(p, "m1", "m2", "m3", "m4")
	lost, err := sc.s.Driver.OpenConsumer(sc.ctx, through, sc.dest, sc.consumerOptions("lost", 2))
	sc.must(err)
	sc.receive(lost, "m1")
	c, err := sc.s.Driver.OpenConsumer(sc.ctx, sc.s.Address, sc.dest, sc.consumerOptions("c", 2))
	sc.must(err)
	if sc.s.Habits.OneReader {
		cut() // or c would wait for ever
		sc.receive(c, "m1")
	} else {
		sc.receive(c, "m3")
		cut()
	}
	sc.must(errors.Join(lost.Close(sc.ctx), c.Close(sc.ctx), p.Close(sc.ctx), i.Close()))
	if err := goleak.Find(append([]goleak.Option{before}, sc.s.Leaks...)...); err != nil {
		sc.Error(err)
	}
	sc.say("nothing goes on after everything is closed")
}
