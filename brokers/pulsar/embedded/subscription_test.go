package embedded

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill sends n messages, on a producer of their own.
func (r *raw) fill(n int) {
	r.Helper()
	r.send(cmdProducer, producerBody(99, 99), nil)
	r.next()
	for k := range n {
		r.send(cmdSend, body(nil).number(1, 99).number(2, uint64(k)), message(meta().text(6, fmt.Sprint("k", k%3))))
		if c := r.next(); c.kind != cmdSendReceipt {
			r.Fatalf("got %+v", c)
		}
	}
}

// subscribe opens a consumer and asks for so many messages.
func (r *raw) subscribe(id uint64, k kind, permits uint64) {
	r.Helper()
	r.send(cmdSubscribe, subscribeBody(id, id, k).text(6, fmt.Sprint("c-", id)), nil)
	for c := r.next(); c.kind != cmdSuccess; c = r.next() {
		if c.kind != cmdActiveConsumer {
			r.Fatalf("got %+v %s", c, c.f.text(3))
		}
	}
	r.send(cmdFlow, body(nil).number(1, id).number(2, permits), nil)
}

// messages reads n of them, as consumer:entry/redeliveries.
func (r *raw) messages(n int) (got []string) {
	r.Helper()
	for len(got) < n {
		c := r.next()
		if c.kind != cmdMessage {
			continue
		}
		id, err := decode(c.f.blob(2))
		if err != nil {
			r.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d:%d/%d", c.f.number(1, 0), id.number(2, 0), c.f.number(3, 0)))
	}
	return got
}

func (r *raw) ack(id uint64, cumulative uint64, entries ...uint64) (refused uint64) {
	r.Helper()
	b := body(nil).number(1, id).number(2, cumulative)
	for _, e := range entries {
		b = b.blob(3, body(nil).number(1, 1).number(2, e))
	}
	r.send(cmdAck, b.number(8, 7), nil)
	for {
		if c := r.next(); c.kind == cmdAckResponse {
			return c.f.number(4, 0)
		}
	}
}

func (r *raw) want(what string, got []string, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (r *raw) backlog(n int) {
	r.Helper()
	if _, stats := r.ask(http.MethodGet, "persistent/public/default/t/stats"); !strings.Contains(stats, fmt.Sprintf(`"msgBacklog":%d,`, n)) {
		r.Errorf("the backlog is not %d: %s", n, stats)
	}
}

func TestPermits(t *testing.T) {
	r := enter(t)
	r.subscribe(1, exclusive, 2)
	r.fill2(4)
	r.want("two permits", r.messages(2), "1:0/0", "1:1/0")
	r.send(cmdFlow, body(nil).number(1, 1).number(2, 1), nil)
	r.want("one more", r.messages(1), "1:2/0")
	r.backlog(4)
}

// fill2 fills from another connection, so that messages and receipts don't mix.
func (r *raw) fill2(n int) {
	r.Helper()
	o := dial(r.T, r.s)
	o.send(cmdConnect, body(nil).text(1, "test"), nil)
	o.next()
	o.fill(n)
}

func TestCumulativeAck(t *testing.T) {
	r := enter(t)
	r.fill(5)
	r.subscribe(1, exclusive, 5)
	r.messages(5)
	if code := r.ack(1, 1, 2); code != 0 {
		t.Errorf("refused: %d", code)
	}
	r.backlog(2)
	r.send(cmdRedeliver, body(nil).number(1, 1), nil)
	r.send(cmdFlow, body(nil).number(1, 1).number(2, 5), nil)
	r.want("after a redeliver", r.messages(2), "1:3/0", "1:4/0")
}

func TestCumulativeAckOnShared(t *testing.T) {
	r := enter(t)
	r.fill(2)
	r.subscribe(1, shared, 2)
	r.messages(2)
	if code := r.ack(1, 1, 1); code != codeNotAllowed {
		t.Errorf("got %d", code)
	}
	r.backlog(2)
}

func TestRedeliver(t *testing.T) {
	r := enter(t)
	r.fill(3)
	r.subscribe(1, shared, 3)
	r.messages(3)
	r.send(cmdFlow, body(nil).number(1, 1).number(2, 9), nil)
	r.send(cmdRedeliver, body(nil).number(1, 1).blob(2, body(nil).number(1, 1).number(2, 1)), nil)
	r.want("one", r.messages(1), "1:1/1")
	r.send(cmdRedeliver, body(nil).number(1, 1), nil)
	r.want("all", r.messages(3), "1:0/1", "1:1/2", "1:2/1")
	// What another consumer gets because the first one left is not counted.
	r.subscribe(2, shared, 9)
	r.send(cmdCloseConsumer, body(nil).number(1, 1).number(2, 5), nil)
	r.want("after its end", r.messages(3), "2:0/1", "2:1/2", "2:2/1")
	r.send(cmdCloseConsumer, body(nil).number(1, 2).number(2, 6), nil)
	r.subscribe(3, shared, 9)
	r.want("after the last one's end", r.messages(3), "3:0/0", "3:1/0", "3:2/0")
}

func TestSubscriptionTypes(t *testing.T) {
	r := enter(t)
	r.subscribe(1, exclusive, 1)
	r.send(cmdSubscribe, subscribeBody(2, 2, exclusive), nil)
	r.refused("a second exclusive one", 2, codeConsumerBusy)
	r.send(cmdSubscribe, subscribeBody(3, 3, shared), nil)
	r.refused("another type", 3, codeConsumerBusy)
	r.send(cmdSubscribe, subscribeBody(1, 4, exclusive), nil)
	r.refused("the same id", 4, codeConsumerBusy)
	r.send(cmdCloseConsumer, body(nil).number(1, 1).number(2, 5), nil)
	r.next()
	r.subscribe(3, shared, 1)
}

func TestUnsubscribe(t *testing.T) {
	r := enter(t)
	r.fill(1)
	r.subscribe(1, shared, 0)
	r.subscribe(2, shared, 0)
	r.send(cmdUnsubscribe, body(nil).number(1, 1).number(2, 8), nil)
	r.refused("with another consumer", 8, codeMetadata)
	r.send(cmdCloseConsumer, body(nil).number(1, 2).number(2, 9), nil)
	r.next()
	r.send(cmdUnsubscribe, body(nil).number(1, 1).number(2, 10), nil)
	if c := r.next(); c.kind != cmdSuccess {
		t.Errorf("got %+v", c)
	}
	if _, names := r.ask(http.MethodGet, "persistent/public/default/t/subscriptions"); strings.TrimSpace(names) != "[]" {
		t.Errorf("left is %s", names)
	}
}

// TestTrim: what everybody has acknowledged is forgotten, the numbers go on.
func TestTrim(t *testing.T) {
	r := enter(t)
	const n = 3 * trimAt
	r.subscribe(1, exclusive, n)
	r.fill2(n)
	r.messages(n)
	if code := r.ack(1, 1, n-1); code != 0 {
		t.Errorf("refused: %d", code)
	}
	r.s.b.mu.Lock()
	kept := len(r.s.b.topics["t"].entries)
	r.s.b.mu.Unlock()
	if kept > trimAt {
		t.Errorf("%d entries are kept", kept)
	}
	r.backlog(0)
	r.send(cmdFlow, body(nil).number(1, 1).number(2, 1), nil)
	r.fill2(1)
	r.want("the next", r.messages(1), fmt.Sprintf("1:%d/0", n))
}
