package pulsar_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqlab/brokers"
	"mqlab/brokers/pulsar"
	"mqlab/brokers/pulsar/embedded"
)

// stage is a broker with a topic of its own.
type stage struct {
	*testing.T
	ctx context.Context
	at  brokers.Address
	d   brokers.Destination
}

// onEach runs a test on the stand-in and, if one is named, on the real broker.
func onEach(t *testing.T, f func(*stage)) {
	t.Helper()
	s, err := embedded.Open(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it never fails
	urls := map[string]string{"embedded": s.URL(), "real": os.Getenv(realBroker)}
	for name, url := range urls {
		if url == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			at, err := brokers.ParseAddress(url)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			st := &stage{t, ctx, at, brokers.Destination{Topic: "semantics", Suffix: strings.ToLower(rand.Text()[:10])}}
			st.must(pulsar.Driver{}.Prepare(ctx, at, st.d))
			defer func() { st.must(pulsar.Driver{}.Remove(context.WithoutCancel(ctx), at, st.d)) }()
			f(st)
		})
	}
}

func (st *stage) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}

func (st *stage) consumer(at brokers.Address, kind, name string) brokers.Consumer {
	st.Helper()
	c, err := pulsar.Driver{}.OpenConsumer(st.ctx, at, st.d, brokers.ConsumerOptions{Subscription: kind, Consumer: name})
	st.must(err)
	st.Cleanup(func() { st.must(c.Close(context.WithoutCancel(st.ctx))) })
	return c
}

func (st *stage) send(ids ...string) {
	st.Helper()
	p, err := pulsar.Driver{}.OpenProducer(st.ctx, st.at, st.d, brokers.ProducerOptions{})
	st.must(err)
	for _, id := range ids {
		key, _, _ := strings.Cut(id, "-")
		r, err := p.Send(st.ctx, brokers.Message{ID: id, Key: key, Body: []byte("{}")})
		st.must(err)
		if len(r.Fields) != 1 || r.Fields[0].Key != "brokerMessageId" || strings.Count(r.Fields[0].Value, ":") != 2 {
			st.Errorf("receipt %+v", r)
		}
	}
	st.must(p.Close(st.ctx))
}

// receive is the next delivery, shown as ID/attempt.
func (st *stage) receive(c brokers.Consumer) (brokers.Delivery, string) {
	st.Helper()
	d, err := c.Receive(st.ctx)
	st.must(err)
	return d, fmt.Sprintf("%s/%d", d.Message().ID, d.Marks().Attempt)
}

// settled receives n messages and acknowledges them.
func (st *stage) settled(c brokers.Consumer, n int) (got []string) {
	st.Helper()
	for range n {
		d, name := st.receive(c)
		st.must(d.Ack(st.ctx))
		got = append(got, name)
	}
	return got
}

func (st *stage) want(what string, got any, want ...string) {
	st.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		st.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// await asks for the state until it is as wanted.
func (st *stage) await(what string, is func(brokers.State) bool) {
	st.Helper()
	i, err := pulsar.Driver{}.OpenInspector(st.ctx, st.at)
	st.must(err)
	defer i.Close() //nolint:errcheck // it never fails
	for {
		s, err := i.State(st.ctx, st.d)
		st.must(err)
		if is(s) {
			return
		}
		if st.ctx.Err() != nil {
			st.Fatalf("waited for %s, it is %+v", what, s)
		}
	}
}

func (st *stage) left(n int64) {
	st.Helper()
	st.await(fmt.Sprint(n, " left"), func(s brokers.State) bool { return s.Left == n })
}

func (st *stage) idle() {
	st.Helper()
	st.await("an idle topic", func(s brokers.State) bool { return s.Idle })
}

// On a shared subscription a nack counts, message by message; the count ends
// with the last consumer.
func TestNackCounts(t *testing.T) {
	for _, kind := range []string{"shared", "key-shared"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(st *stage) {
				st.send("a-1")
				c := st.consumer(st.at, kind, "c-1")
				for _, want := range []string{"a-1/1", "a-1/2", "a-1/3"} {
					d, got := st.receive(c)
					if got != want {
						st.Fatalf("got %s, want %s", got, want)
					}
					st.must(d.Nack(st.ctx, true))
				}
				_, got := st.receive(c)
				if got != "a-1/4" {
					st.Errorf("got %s", got)
				}
				st.must(c.Close(st.ctx))
				st.idle()
				st.want("after the last consumer", st.settled(st.consumer(st.at, kind, "c-2"), 1), "a-1/1")
				st.left(0)
			})
		})
	}
}

// On exclusive and failover subscriptions a nack brings everything back that is
// not acknowledged, uncounted. What the library had buffered comes first.
func TestNackRewinds(t *testing.T) {
	for _, kind := range []string{"exclusive", "failover"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(st *stage) {
				st.send("a-1", "a-2")
				c := st.consumer(st.at, kind, "c-1")
				first, _ := st.receive(c)
				second, _ := st.receive(c)
				st.must(second.Nack(st.ctx, true))
				_, one := st.receive(c)
				_, two := st.receive(c)
				st.want("after a nack of a-2", []string{one, two}, "a-1/1", "a-2/1")
				st.must(first.Ack(st.ctx))
				st.must(second.Ack(st.ctx))
				st.left(0)
			})
		})
	}
}

// On a failover subscription one consumer gets everything, and when it goes the
// other one begins with what is not acknowledged. Which one is the first is the
// broker's affair.
func TestFailover(t *testing.T) {
	onEach(t, func(st *stage) {
		cs := []brokers.Consumer{st.consumer(st.at, "failover", "c-1"), st.consumer(st.at, "failover", "c-2")}
		st.send("a-1", "a-2", "a-3")
		type answer struct {
			n   int
			d   brokers.Delivery
			err error
		}
		got := make(chan answer, len(cs))
		for n, c := range cs {
			go func() { // the second one ends with the topic's messages
				d, err := c.Receive(st.ctx)
				got <- answer{n, d, err}
			}()
		}
		first := <-got
		st.must(first.err)
		st.must(first.d.Ack(st.ctx))
		if _, name := st.receive(cs[first.n]); name != "a-2/1" {
			st.Errorf("the first one got %s", name)
		}
		st.must(cs[first.n].Close(st.ctx))
		second := <-got
		st.must(second.err)
		if id := second.d.Message().ID; second.n == first.n || id != "a-2" {
			st.Errorf("consumer %d got %s", second.n, id)
		}
		st.must(second.d.Ack(st.ctx))
		st.want("the other one", st.settled(cs[second.n], 1), "a-3/1")
		st.left(0)
	})
}

// On a key-shared subscription a key's messages go to one consumer, in order.
func TestKeyShared(t *testing.T) {
	onEach(t, func(st *stage) {
		owner, last, got := map[string]string{}, map[string]string{}, make(chan [2]string)
		ctx, cancel := context.WithCancel(st.ctx)
		done := make(chan error, 2)
		for n := range 2 {
			c := st.consumer(st.at, "key-shared", fmt.Sprint("c-", n))
			go func() { // ends with ctx
				for {
					d, err := c.Receive(ctx)
					if err == nil {
						err = d.Ack(st.ctx)
					}
					if err != nil {
						done <- err
						return
					}
					got <- [2]string{fmt.Sprint(n), d.Message().ID}
				}
			}()
		}
		var ids []string
		for n := range 5 {
			for key := range 8 {
				ids = append(ids, fmt.Sprintf("k%d-%d", key, n))
			}
		}
		st.send(ids...)
		for range ids {
			g := <-got
			key, n, _ := strings.Cut(g[1], "-")
			if n <= last[key] {
				st.Errorf("%s came after %s", g[1], last[key])
			}
			last[key] = n
			if o, ok := owner[key]; ok && o != g[0] {
				st.Errorf("%s went to another consumer", g[1])
			}
			owner[key] = g[0]
		}
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				st.Error(err)
			}
		}
		st.left(0)
	})
}

// A consumer whose connection breaks comes back; an ack from before counts, as
// Pulsar takes it from anybody.
func TestComesBack(t *testing.T) {
	onEach(t, func(st *stage) {
		r, through := newRelay(st.T, st.at)
		st.send("a-1", "a-2")
		c := st.consumer(through, "shared", "c-1")
		d, _ := st.receive(c)
		r.cut()
		st.must(d.Ack(st.ctx))
		st.left(1)
		seen := map[string]bool{}
		for !seen["a-2/1"] { // a-1 comes again if the broker noticed before the ack
			d, name := st.receive(c)
			st.must(d.Ack(st.ctx))
			seen[name] = true
		}
		st.left(0)
	})
}

// A broker that falls silent is lost in a bounded time, and so is a call that
// waits for it.
func TestSilentBroker(t *testing.T) {
	onEach(t, func(st *stage) {
		r, through := newRelay(st.T, st.at)
		st.send("a-1")
		c := st.consumer(through, "exclusive", "c-1")
		d, _ := st.receive(c)
		r.hush()
		ctx, cancel := context.WithTimeout(st.ctx, 100*time.Millisecond)
		defer cancel()
		if err := d.Ack(ctx); !errors.Is(err, context.DeadlineExceeded) {
			st.Errorf("ack: %v", err)
		}
		start := time.Now()
		if _, err := c.Receive(st.ctx); !errors.Is(err, brokers.ErrConnectionLost) {
			st.Errorf("receive: %v", err)
		}
		took := time.Since(start)
		st.Logf("lost after %v", took)
		if took > 6*time.Second { // a busy machine doubles it
			st.Errorf("it took %v", took)
		}
		if err := d.Ack(st.ctx); !errors.Is(err, brokers.ErrAckRefused) || !errors.Is(err, brokers.ErrConnectionLost) {
			st.Errorf("ack: %v", err)
		}
	})
}

// A topic that is deleted under a consumer or a producer is not made again.
func TestDeletedTopicStaysDeleted(t *testing.T) {
	onEach(t, func(st *stage) {
		c := st.consumer(st.at, "exclusive", "c-1")
		p, err := pulsar.Driver{}.OpenProducer(st.ctx, st.at, st.d, brokers.ProducerOptions{})
		st.must(err)
		defer p.Close(st.ctx) //nolint:errcheck // it never fails
		st.must(pulsar.Driver{}.Remove(st.ctx, st.at, st.d))
		if _, err := c.Receive(st.ctx); !errors.Is(err, brokers.ErrNotFound) {
			st.Errorf("receive: %v", err)
		}
		if _, err := p.Send(st.ctx, brokers.Message{ID: "a-1"}); err == nil {
			st.Error("a message went to a topic that is gone")
		}
		i, err := pulsar.Driver{}.OpenInspector(st.ctx, st.at)
		st.must(err)
		if _, err := i.State(st.ctx, st.d); !errors.Is(err, brokers.ErrNotFound) {
			st.Errorf("state: %v", err)
		}
		st.must(i.Close())
	})
}

// A group that nobody has prepared begins with the first message.
func TestLateGroup(t *testing.T) {
	onEach(t, func(st *stage) {
		st.send("a-1")
		st.d.Group = "late"
		st.want("the late group", st.settled(st.consumer(st.at, "exclusive", "c-1"), 1), "a-1/1")
	})
}

// A message that is too large is refused, and the producer goes on.
func TestTooLarge(t *testing.T) {
	onEach(t, func(st *stage) {
		p, err := pulsar.Driver{}.OpenProducer(st.ctx, st.at, st.d, brokers.ProducerOptions{})
		st.must(err)
		defer p.Close(st.ctx) //nolint:errcheck // it never fails
		if _, err := p.Send(st.ctx, brokers.Message{ID: "large", Body: make([]byte, 6<<20)}); !errors.Is(err, brokers.ErrRefused) {
			st.Errorf("6 MiB: %v", err)
		}
		_, err = p.Send(st.ctx, brokers.Message{ID: "small", Body: []byte("{}")})
		st.must(err)
		st.left(1)
	})
}

// A call whose context has ended returns with that, and the next one works.
func TestEndedContext(t *testing.T) {
	onEach(t, func(st *stage) {
		ended, cancel := context.WithCancel(st.ctx)
		cancel()
		p, err := pulsar.Driver{}.OpenProducer(st.ctx, st.at, st.d, brokers.ProducerOptions{})
		st.must(err)
		defer p.Close(st.ctx) //nolint:errcheck // it never fails
		if _, err := p.Send(ended, brokers.Message{ID: "a-1"}); !errors.Is(err, context.Canceled) {
			st.Errorf("send: %v", err)
		}
		_, err = p.Send(st.ctx, brokers.Message{ID: "a-2", Body: []byte("{}")})
		st.must(err)
		c := st.consumer(st.at, "exclusive", "c-1")
		d, err := c.Receive(st.ctx)
		st.must(err)
		if err := d.Ack(ended); !errors.Is(err, context.Canceled) {
			st.Errorf("ack: %v", err)
		}
		st.must(d.Ack(st.ctx))
	})
}
