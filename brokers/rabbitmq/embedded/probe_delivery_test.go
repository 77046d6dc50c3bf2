package embedded_test

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func deliverySections() []section {
	return []section{
		{"what the server says it can do", capabilities},
		{"confirms and mandatory", confirms},
		{"prefetch, the next one comes with the ack", prefetch},
		{"connection closed, connection cut, channel closed", redelivery},
		{"consumer cancelled only", cancelOnly},
		{"nack, reject, multiple, tag 0", nacks},
		{"get", gets},
		{"recover", recovers},
		{"qos changes", qosChanges},
		{"in turn", inTurn},
		{"queue deleted under a consumer, purge", cancelledByServer},
		{"auto-delete, exclusive, server-named", lifetimes},
		{"ten thousand messages", tenThousand},
		{"a consumer falls silent", silent},
	}
}

func capabilities(p *probe) {
	all, _ := p.c.Properties["capabilities"].(amqp.Table)
	for _, c := range []string{"publisher_confirms", "basic.nack", "consumer_cancel_notify", "authentication_failure_close", "per_consumer_qos"} {
		p.say("%s=%v", c, all[c])
	}
	p.say("channel_max=%d frame_max=%d heartbeat=%v", p.c.Config.ChannelMax, p.c.Config.FrameSize, p.c.Config.Heartbeat)
}

func confirms(p *probe) {
	p.queue("a", nil)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Confirm(false))
	for i := range 3 {
		dc, err := ch.PublishWithDeferredConfirm("", name("a"), false, false, amqp.Publishing{MessageId: fmt.Sprint("m", i)})
		p.must(err)
		p.say("confirm tag=%d acked=%v", dc.DeliveryTag, p.confirmed(dc))
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	dc, err := ch.PublishWithDeferredConfirm("", name("nowhere"), true, false, amqp.Publishing{MessageId: "lost", Body: []byte("b")})
	p.must(err)
	r := <-returns
	p.say("returned %d %s id=%s exchange=%q key=%s body=%s, confirm tag=%d acked=%v", r.ReplyCode, r.ReplyText, r.MessageId, r.Exchange,
		strings.TrimPrefix(r.RoutingKey, prefix), r.Body, dc.DeliveryTag, p.confirmed(dc))
	dc, err = ch.PublishWithDeferredConfirm("", name("a"), true, false, amqp.Publishing{MessageId: "m3"})
	p.must(err)
	p.say("mandatory and routed: acked=%v returned=%d", p.confirmed(dc), len(returns))
	dc, err = ch.PublishWithDeferredConfirm("", name("nowhere"), false, false, amqp.Publishing{MessageId: "dropped"})
	p.must(err)
	p.say("unroutable, not mandatory: acked=%v returned=%d", p.confirmed(dc), len(returns))
	p.counts("after four", "a", 4, 0)
}

func prefetch(p *probe) {
	p.queue("a", nil)
	p.fill("a", 4)
	c, ch := p.client()
	p.must(ch.Qos(2, 0, false))
	ds := p.consume(ch, "a", "c1")
	first := p.next(ds)
	p.next(ds)
	p.counts("two held", "a", 2, 1)
	p.must(first.Ack(false))
	p.next(ds)
	p.counts("one acked", "a", 1, 1)
	p.must(c.Close())
	p.counts("connection closed", "a", 3, 0)
	for range 3 {
		p.get("a", true)
	}
}

func redelivery(p *probe) {
	p.queue("cut", nil)
	p.fill("cut", 3)
	ch, raw, done := p.cuttable(0)
	p.must(ch.Qos(1, 0, false))
	ds := p.consume(ch, "cut", "c1")
	p.must(p.next(ds).Ack(false))
	p.next(ds)
	p.must(raw.Close())
	p.counts("cut", "cut", 2, 0)
	done()
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(1, 0, false))
	ds = p.consume(ch, "cut", "c2")
	p.next(ds)
	p.must(ch.Close())
	p.counts("channel closed", "cut", 2, 0)
	ch = p.channel(c)
	ds = p.consume(ch, "cut", "c3")
	p.next(ds)
	p.next(ds)
	p.say("ack of an unknown tag: %s", p.fault(ch, func() error { return ch.Ack(77, false) }))
	p.counts("channel closed by an error", "cut", 2, 0)
	p.get("cut", true)
	p.get("cut", true)
}

func cancelOnly(p *probe) {
	p.queue("a", nil)
	p.fill("a", 2)
	c, ch := p.client()
	p.must(ch.Qos(1, 0, false))
	d := p.next(p.consume(ch, "a", "c1"))
	p.must(ch.Cancel("c1", false))
	p.counts("cancelled, one still held", "a", 1, 0)
	p.must(d.Ack(false))
	p.counts("and acked", "a", 1, 0)
	p.next(p.consume(ch, "a", "c2"))
	p.must(ch.Cancel("c2", false))
	p.must(ch.Cancel("unknown", false))
	p.counts("held again", "a", 0, 0)
	p.must(c.Close())
	p.counts("closed", "a", 1, 0)
}

func nacks(p *probe) {
	p.queue("b", nil)
	p.queue("a", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("b")})
	p.fill("a", 5)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(3, 0, false))
	ds := p.consume(ch, "a", "c1")
	p.next(ds)
	second := p.next(ds)
	p.next(ds)
	p.must(second.Nack(true, true))
	p.say("first two given back")
	p.next(ds)
	p.next(ds)
	p.counts("three held", "a", 2, 1)
	p.must(ch.Nack(0, true, true))
	p.say("all given back")
	p.next(ds)
	d := p.next(ds)
	third := p.next(ds)
	p.must(d.Reject(true))
	p.say("the middle one given back")
	d = p.next(ds)
	p.must(d.Ack(false))
	p.next(ds)
	p.must(third.Nack(true, false))
	p.say("two die")
	p.next(ds)
	p.must(ch.Ack(0, true))
	p.counts("all settled", "a", 0, 1)
	p.counts("dead", "b", 2, 0)
	p.get("b", true)
	p.get("b", true)
	p.must(ch.Ack(0, true))
	p.say("ack of all when there is none is no error: %v", ch.Qos(3, 0, false))
}

func gets(p *probe) {
	p.queue("a", nil)
	_, ok, err := p.ch.Get(name("a"), false)
	p.say("empty: %v %v", ok, err)
	p.fill("a", 3)
	d := p.get("a", false)
	p.counts("one held", "a", 2, 0)
	p.must(d.Nack(false, true))
	p.counts("given back", "a", 3, 0)
	d = p.get("a", false)
	p.must(d.Reject(false))
	p.get("a", true)
	d = p.get("a", false)
	p.must(d.Ack(false))
	p.counts("all gone", "a", 0, 0)
}

func recovers(p *probe) {
	p.queue("a", nil)
	p.fill("a", 2)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(2, 0, false))
	ds := p.consume(ch, "a", "c1")
	p.next(ds)
	p.next(ds)
	p.must(ch.Recover(true)) //nolint:staticcheck // deprecated for users; the server still has to answer it
	p.next(ds)
	p.must(p.next(ds).Ack(true))
	p.counts("settled", "a", 0, 1)
}

func qosChanges(p *probe) {
	p.queue("a", nil)
	p.fill("a", 7)
	c, ch := p.client()
	p.must(ch.Qos(1, 0, false))
	one := p.consume(ch, "a", "one")
	p.next(one)
	p.must(ch.Qos(3, 0, false))
	three := p.consume(ch, "a", "three")
	for range 3 {
		p.next(three)
	}
	p.counts("a prefetch is for consumers to come", "a", 3, 2)
	p.must(c.Close())
	p.counts("closed", "a", 7, 0)
	c, ch = p.client()
	p.must(ch.Qos(2, 0, true))
	one = p.consume(ch, "a", "one")
	p.consume(ch, "a", "two")
	p.next(one)
	p.next(one)
	p.counts("two for the whole channel", "a", 5, 2)
	p.must(ch.Ack(0, true))
	p.counts("two more", "a", 3, 2)
	p.must(ch.Qos(0, 0, true))
	p.counts("no limit", "a", 0, 2)
	p.must(c.Close())
	p.counts("closed", "a", 5, 0)
}

func inTurn(p *probe) {
	p.queue("a", nil)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	one, two := p.consume(ch, "a", "one"), p.consume(ch, "a", "two")
	p.fill("a", 4)
	p.next(one)
	p.next(two)
	p.next(one)
	p.next(two)
	p.must(ch.Ack(0, true))
	p.counts("settled", "a", 0, 2)
}

func cancelledByServer(p *probe) {
	p.queue("a", nil)
	p.fill("a", 3)
	n, err := p.ch.QueuePurge(name("a"), false)
	p.say("purged %d %v", n, err)
	p.fill("a", 2)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(1, 0, false))
	cancelled := ch.NotifyCancel(make(chan string, 1))
	ds := p.consume(ch, "a", "c1")
	d := p.next(ds)
	n, err = p.ch.QueuePurge(name("a"), false)
	p.say("purged %d %v with one held", n, err)
	p.fill("a", 1)
	n, err = p.ch.QueueDelete(name("a"), false, false, false)
	p.say("deleted with %d %v, cancelled %s", n, err, <-cancelled)
	p.next(ds)
	p.must(d.Ack(false))
	p.say("the ack of a message whose queue is gone is no error: %v", ch.Qos(1, 0, false))
	n, err = p.ch.QueueDelete(name("a"), false, false, false)
	p.say("deleted again: %d %v", n, err)
}

func lifetimes(p *probe) {
	c, ch := p.client()
	_, err := ch.QueueDeclare(name("auto"), false, true, false, false, nil)
	p.must(err)
	p.counts("auto-delete without a consumer stays", "auto", 0, 0)
	p.consume(ch, "auto", "c1")
	p.counts("with one", "auto", 0, 1)
	p.must(ch.Cancel("c1", false))
	p.say("its last consumer cancelled: %s", p.vanished("auto"))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	p.must(err)
	p.say("server-named %s and %d more", q.Name[:8], len(q.Name)-8)
	_, err = ch.QueueDeclare(name("excl"), true, false, true, false, nil)
	p.must(err)
	p.must(ch.Confirm(false))
	sent, err := ch.PublishWithDeferredConfirm("", name("excl"), false, false, amqp.Publishing{})
	p.must(err)
	sent.Wait() // without it the message may still be on its way to the queue
	q, err = ch.QueueDeclare(name("excl"), true, false, true, false, nil)
	p.say("exclusive, declared again by its owner: %v %v", q.Messages, err)
	for _, try := range []struct {
		what string
		f    func(*amqp.Channel) error
	}{
		{"passive", func(ch *amqp.Channel) error {
			return second(ch.QueueDeclarePassive(name("excl"), true, false, true, false, nil))
		}},
		{"declare", func(ch *amqp.Channel) error {
			return second(ch.QueueDeclare(name("excl"), true, false, true, false, nil))
		}},
		{"consume", func(ch *amqp.Channel) error {
			return second(ch.Consume(name("excl"), "", false, false, false, false, nil))
		}},
		{"delete", func(ch *amqp.Channel) error { return second(ch.QueueDelete(name("excl"), false, false, false)) }},
	} {
		other := p.channel(p.c)
		p.say("%s by another: %s", try.what, p.fault(other, func() error { return try.f(other) }))
	}
	p.must(c.Close())
	p.say("its owner gone: %s", p.vanished("excl"))
}

func second[T any](_ T, err error) error { return err }

// vanished polls until the queue is gone.
func (p *probe) vanished(q string) string {
	p.t.Helper()
	for end := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		ch := p.channel(p.c)
		_, err := ch.QueueDeclarePassive(name(q), true, false, false, false, nil)
		if err != nil || time.Now().After(end) {
			return reason(err)
		}
		p.must(ch.Close())
	}
}

func tenThousand(p *probe) {
	const n = 10_000
	p.queue("many", nil)
	var last *amqp.DeferredConfirmation
	for i := range n {
		dc, err := p.ch.PublishWithDeferredConfirm("", name("many"), false, false, amqp.Publishing{MessageId: fmt.Sprint(i)})
		p.must(err)
		last = dc
	}
	p.confirmed(last)
	p.counts("published", "many", n, 0)
	c, ch := p.client()
	p.must(ch.Qos(100, 0, false))
	p.say("first half: %s", p.take(p.consume(ch, "many", "c1"), 0, n/2))
	p.must(c.Close())
	p.counts("closed", "many", n/2, 0)
	c, ch = p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(100, 0, false))
	p.say("second half: %s", p.take(p.consume(ch, "many", "c2"), n/2, n/2))
	p.counts("consumed", "many", 0, 1)
}

// take consumes messages that must come in order, acknowledging every fiftieth
// with all before it.
func (p *probe) take(ds <-chan amqp.Delivery, from, n int) string {
	p.t.Helper()
	redelivered, wrong := 0, 0
	for i := range n {
		d := <-ds
		if d.MessageId != fmt.Sprint(from+i) {
			wrong++
		}
		if d.Redelivered {
			redelivered++
		}
		if i%50 == 49 {
			p.must(d.Ack(true))
		}
	}
	return fmt.Sprintf("%d, out of order %d, redelivered %d", n, wrong, redelivered)
}

func silent(p *probe) {
	p.queue("frozen", nil)
	p.fill("frozen", 1)
	ch, raw, done := p.cuttable(time.Second)
	p.next(p.consume(ch, "frozen", "c1"))
	p.counts("held", "frozen", 0, 1)
	close(raw.frozen)
	p.counts("silent for more than two intervals of a second", "frozen", 1, 0)
	_ = raw.Close()
	done()
	p.get("frozen", true)
}
