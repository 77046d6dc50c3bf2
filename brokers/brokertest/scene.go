package brokertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mqlab/brokers"
)

const (
	// caseTimeout ends a case that hangs.
	caseTimeout = 30 * time.Second
	// closeTimeout bounds the tidying up after a case.
	closeTimeout = 10 * time.Second
	// pollEvery is the pause between two looks at something that is awaited.
	pollEvery = 5 * time.Millisecond
)

// scene is one case at work: a destination of its own, and what a case does
// with it. What is opened here is closed when the case ends.
type scene struct {
	*testing.T
	s    Subject
	ctx  context.Context
	dest brokers.Destination
}

func newScene(t *testing.T, s Subject, timeout time.Duration) *scene {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	sc := &scene{T: t, s: s, ctx: ctx, dest: s.Destination}
	sc.dest.Suffix = strings.ToLower(rand.Text()[:10])
	return sc
}

// say writes a line of the transcript.
func (sc *scene) say(format string, args ...any) {
	sc.Helper()
	if _, err := fmt.Fprintf(sc.s.Transcript, format+"\n", args...); err != nil {
		sc.Fatal(err)
	}
}

// skip ends the case, and says why in the transcript too.
func (sc *scene) skip(reason string) {
	sc.Helper()
	sc.say("skipped: %s", reason)
	sc.Skip(reason)
}

// need skips the case when the driver does not know one of the figures.
func (sc *scene) need(figures ...string) {
	sc.Helper()
	for _, f := range figures {
		if !slices.Contains(sc.s.Driver.Figures(), f) {
			sc.skip("the driver has no figure " + f)
		}
	}
}

// must ends the case at an error.
func (sc *scene) must(err error) {
	sc.Helper()
	if err != nil {
		sc.Fatal(err)
	}
}

// want ends the case when err is not of the wanted kind.
func (sc *scene) want(what string, err, kind error) {
	sc.Helper()
	if !errors.Is(err, kind) {
		sc.Fatalf("%s: got error %v, want one that is %q", what, err, kind)
	}
}

// wantUnless is want, for what a product by its habit answers with success.
func (sc *scene) wantUnless(habit bool, what string, err, kind error) {
	sc.Helper()
	if habit {
		sc.must(err)
		return
	}
	sc.want(what, err, kind)
}

// afterwards runs f when the case is over; the case's own context has ended
// by then.
func (sc *scene) afterwards(what string, f func(context.Context) error) {
	sc.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.ctx), closeTimeout)
		defer cancel()
		if err := f(ctx); err != nil {
			sc.Errorf("%s: %v", what, err)
		}
	})
}

// prepare makes the destination and removes it afterwards.
func (sc *scene) prepare() {
	sc.Helper()
	sc.must(sc.s.Driver.Check(sc.dest))
	sc.must(sc.s.Driver.Prepare(sc.ctx, sc.s.Address, sc.dest))
	sc.afterwards("remove", func(ctx context.Context) error {
		return sc.s.Driver.Remove(ctx, sc.s.Address, sc.dest)
	})
}

func (sc *scene) producer() brokers.Producer {
	sc.Helper()
	return sc.producerAt(sc.s.Address)
}

func (sc *scene) producerAt(at brokers.Address) brokers.Producer {
	sc.Helper()
	p, err := sc.s.Driver.OpenProducer(sc.ctx, at, sc.dest, brokers.ProducerOptions{ClientName: "mqlab test producer"})
	sc.must(err)
	sc.afterwards("close the producer", p.Close)
	return p
}

func (sc *scene) consumer(name string, prefetch int) brokers.Consumer {
	sc.Helper()
	return sc.consumerAt(sc.s.Address, name, prefetch)
}

func (sc *scene) consumerAt(at brokers.Address, name string, prefetch int) brokers.Consumer {
	sc.Helper()
	c, err := sc.s.Driver.OpenConsumer(sc.ctx, at, sc.dest, sc.consumerOptions(name, prefetch))
	sc.must(err)
	sc.afterwards("close consumer "+name, c.Close)
	return c
}

func (sc *scene) consumerOptions(name string, prefetch int) brokers.ConsumerOptions {
	o := sc.s.Consumer
	o.ClientName, o.Consumer, o.Prefetch = "mqlab test consumer", name, prefetch
	return o
}

func (sc *scene) inspector() brokers.Inspector {
	sc.Helper()
	i, err := sc.s.Driver.OpenInspector(sc.ctx, sc.s.Address)
	sc.must(err)
	sc.afterwards("close the inspector", func(context.Context) error { return i.Close() })
	return i
}

// message is a message whose every field says whose it is.
func message(id string) brokers.Message {
	return brokers.Message{ID: id, Key: "order-" + id, Type: "OrderCreated",
		CorrelationID: "correlation-" + id, TraceID: "trace-" + id, Body: []byte(`{"messageId":"` + id + `"}`)}
}

func (sc *scene) send(p brokers.Producer, ids ...string) {
	sc.Helper()
	for _, id := range ids {
		_, err := p.Send(sc.ctx, message(id))
		sc.must(err)
	}
}

// receive takes the next delivery and ends the case if it is not this message.
func (sc *scene) receive(c brokers.Consumer, id string) brokers.Delivery {
	sc.Helper()
	d, err := c.Receive(sc.ctx)
	sc.must(err)
	if d.Message().ID != id {
		sc.Fatalf("received %s, want %s", show(d), id)
	}
	return d
}

func (sc *scene) ack(d brokers.Delivery) {
	sc.Helper()
	sc.must(d.Ack(sc.ctx))
}

// show is a delivery as the transcript names it.
func show(d brokers.Delivery) string {
	m := d.Marks()
	return fmt.Sprintf("%s redelivered=%s attempt=%d", d.Message().ID, m.Redelivered, m.Attempt)
}

// marked compares a delivery's marks with those that are declared.
func (sc *scene) marked(d brokers.Delivery, want brokers.Marks) {
	sc.Helper()
	if got := d.Marks(); got.Redelivered != want.Redelivered || got.Attempt != want.Attempt {
		sc.Errorf("got %s, declared is redelivered=%s attempt=%d", show(d), want.Redelivered, want.Attempt)
	}
}

// state is the answer to one question, without a second try: State is fresh.
func (sc *scene) state(i brokers.Inspector) brokers.State {
	sc.Helper()
	st, err := i.State(sc.ctx, sc.dest)
	sc.must(err)
	return st
}

// left ends the case when the broker still owes another number of messages.
func (sc *scene) left(i brokers.Inspector, want int64) {
	sc.Helper()
	if st := sc.state(i); st.Left != want {
		sc.Fatalf("left is %d, want %d: %s", st.Left, want, sc.figures(st))
	}
}

// await asks for the state until it is as wanted. It is for what a broker does
// on its own account: pushing a message, noticing that a client is gone.
func (sc *scene) await(i brokers.Inspector, what string, is func(brokers.State) bool) brokers.State {
	sc.Helper()
	ctx, cancel := context.WithTimeout(sc.ctx, closeTimeout)
	defer cancel()
	for {
		st, err := i.State(sc.ctx, sc.dest)
		sc.must(err)
		if is(st) {
			return st
		}
		select {
		case <-ctx.Done():
			sc.Fatalf("waited for %s, the state is %s", what, sc.figures(st))
		case <-time.After(pollEvery):
		}
	}
}

// idle waits until the broker has noticed that no consumer is there any more.
func (sc *scene) idle(i brokers.Inspector) {
	sc.Helper()
	sc.await(i, "an idle destination", func(st brokers.State) bool { return st.Idle })
}

// figures is a state as the transcript shows it, in the driver's order.
func (sc *scene) figures(st brokers.State) string {
	var b strings.Builder
	for _, name := range sc.s.Driver.Figures() {
		if v := st.Figures[name]; v == nil {
			fmt.Fprintf(&b, "%s=none ", name)
		} else {
			fmt.Fprintf(&b, "%s=%d ", name, *v)
		}
	}
	fmt.Fprintf(&b, "left=%d idle=%t", st.Left, st.Idle)
	return b.String()
}

// class is an error as the transcript names it: by its kind in the contract.
func class(err error) string {
	kinds := []struct {
		kind error
		name string
	}{
		{brokers.ErrAckRefused, "acknowledgement refused"}, {brokers.ErrNotFound, "not found"},
		{brokers.ErrRefused, "refused"}, {brokers.ErrConnectionLost, "connection lost"}, {brokers.ErrClosed, "closed"},
		{context.Canceled, "context canceled"}, {context.DeadlineExceeded, "context deadline exceeded"},
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	if err == nil {
		return "no error"
	}
	return "an error of no kind"
}
