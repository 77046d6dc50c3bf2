package embedded_test

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

func routingSections() []section {
	return []section{
		{"topic", topics},
		{"headers", headersExchange},
		{"fanout, direct, bindings", bindings},
		{"exchanges come and go", exchanges},
	}
}

func patterns() []string {
	return []string{"order.*.created", "audit.#", "#", "*", "*.*", "#.created", "order.#.created", "a.*.#", "", "#.#", "order.eu.created", "*.", "a..b"}
}

// patternNames are the queues of topics and headersExchange.
func patternNames() []string {
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprint("p", i))
	}
	return all
}

// drain lists the ids in a queue, in order.
func (p *probe) drain(q string) string {
	p.t.Helper()
	var ids []string
	for {
		d, ok, err := p.ch.Get(name(q), true)
		p.must(err)
		if !ok {
			return strings.Join(ids, " ")
		}
		ids = append(ids, d.MessageId)
	}
}

func topics(p *probe) {
	p.must(p.ch.ExchangeDeclare(name("topic"), "topic", true, false, false, false, nil))
	for i, pattern := range patterns() {
		q := patternNames()[i]
		p.queue(q, nil)
		p.must(p.ch.QueueBind(name(q), pattern, name("topic"), false, nil))
	}
	for _, key := range []string{"order.eu.created", "order.created", "order.eu.x.created", "audit", "audit.a.b", "x.audit", "", ".", "a..b", "a."} {
		p.publish(name("topic"), key, fmt.Sprintf("%q", key), nil)
	}
	for i, pattern := range patterns() {
		p.say("%q: %s", pattern, p.drain(patternNames()[i]))
	}
}

func headersExchange(p *probe) {
	p.must(p.ch.ExchangeDeclare(name("headers"), "headers", true, false, false, false, nil))
	wanted := []amqp.Table{
		{"x-match": "all", "type": "order", "v": int32(1)},
		{"x-match": "any", "type": "order", "v": int32(1)},
		{"type": "order"},
		{"x-match": "all", "type": nil},
		{},
		{"x-match": "any"},
		{"x-match": "all", "x-extra": "1", "type": "order"},
		{"x-match": "all-with-x", "x-extra": "1", "type": "order"},
		{"x-match": "any-with-x", "x-extra": "1"},
		{"x-match": "any", "x-extra": "1"},
		{"v": int64(1)},
		{"v": 1.0},
		{"v": "1"},
	}
	for i, args := range wanted {
		q := patternNames()[i]
		p.queue(q, nil)
		p.must(p.ch.QueueBind(name(q), "", name("headers"), false, args))
	}
	for id, h := range []amqp.Table{
		{"type": "order", "v": int32(1), "more": true},
		{"type": "order", "v": int32(2)},
		{"type": "other", "v": int64(1)},
		{"x-extra": "1"},
		{"type": "order", "x-extra": "1"},
		nil,
		{"v": int16(1)},
		{"v": "1"},
		{"type": []byte("order")},
	} {
		p.publish(name("headers"), "ignored", fmt.Sprint("h", id), func(m *amqp.Publishing) { m.Headers = h })
	}
	for i, args := range wanted {
		p.say("%v: %s", args, p.drain(patternNames()[i]))
	}
}

func bindings(p *probe) {
	p.must(p.ch.ExchangeDeclare(name("fanout"), "fanout", false, false, false, false, nil))
	p.must(p.ch.ExchangeDeclare(name("direct"), "direct", false, false, false, false, nil))
	p.queue("a", nil)
	p.queue("b", nil)
	p.must(p.ch.QueueBind(name("a"), "k1", name("fanout"), false, nil))
	p.must(p.ch.QueueBind(name("a"), "k2", name("fanout"), false, nil))
	p.must(p.ch.QueueBind(name("b"), "", name("fanout"), false, nil))
	p.publish(name("fanout"), "any", "f", nil)
	p.say("fanout: a=%s b=%s", p.drain("a"), p.drain("b"))
	for _, q := range []string{"a", "b"} {
		p.must(p.ch.QueueBind(name(q), "k", name("direct"), false, nil))
		p.must(p.ch.QueueBind(name(q), "k", name("direct"), false, nil))
	}
	p.publish(name("direct"), "k", "d1", nil)
	p.publish(name("direct"), "other", "d2", nil)
	p.must(p.ch.QueueUnbind(name("a"), "k", name("direct"), nil))
	p.publish(name("direct"), "k", "d3", nil)
	p.say("direct: a=%s b=%s", p.drain("a"), p.drain("b"))
	p.say("unbinding what is not bound: %v", p.ch.QueueUnbind(name("a"), "k", name("direct"), nil))
	p.say("or not there: %v %v", p.ch.QueueUnbind(name("nope"), "k", name("direct"), nil), p.ch.QueueUnbind(name("a"), "k", name("nope"), nil))
	p.must(p.ch.QueueBind(name("a"), "k", name("direct"), false, amqp.Table{"x": "1"}))
	p.must(p.ch.QueueUnbind(name("a"), "k", name("direct"), amqp.Table{"x": "2"}))
	p.publish(name("direct"), "k", "d4", nil)
	p.say("arguments belong to a binding: a=%s b=%s", p.drain("a"), p.drain("b"))
	p.queue("b", nil)
	p.publish(name("direct"), "k", "d5", nil)
	p.say("a new queue of the same name is not bound: b=%s", p.drain("b"))
	p.must(p.ch.QueueBind(name("b"), "k", "amq.direct", false, nil))
	p.publish("amq.direct", "k", "amq", nil)
	p.say("amq.direct: %s", p.drain("b"))
}

func exchanges(p *probe) {
	p.must(p.ch.ExchangeDeclare(name("auto"), "direct", false, true, false, false, nil))
	p.queue("bound", nil)
	p.must(p.ch.QueueBind(name("bound"), "k", name("auto"), false, nil))
	p.must(p.ch.QueueUnbind(name("bound"), "k", name("auto"), nil))
	p.failing("auto-delete exchange after its last binding", func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name("auto"), "direct", false, true, false, false, nil)
	})
	p.must(p.ch.ExchangeDeclare(name("gone"), "direct", false, false, false, false, nil))
	p.must(p.ch.QueueBind(name("bound"), "k", name("gone"), false, nil))
	p.failing("delete if-unused with a binding", func(ch *amqp.Channel) error { return ch.ExchangeDelete(name("gone"), true, false) })
	p.must(p.ch.ExchangeDelete(name("gone"), false, false))
	p.failing("publish to it when it is deleted", func(ch *amqp.Channel) error {
		return ch.Publish(name("gone"), "k", false, false, amqp.Publishing{})
	})
	p.say("deleted again: %v", p.ch.ExchangeDelete(name("gone"), false, false))
	p.must(p.ch.ExchangeDeclare(name("internal"), "direct", false, false, true, false, nil))
	p.failing("publish to an internal one", func(ch *amqp.Channel) error {
		return ch.Publish(name("internal"), "k", false, false, amqp.Publishing{})
	})
}
