package embedded_test

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func deathSections() []section {
	return []section{
		{"dead letters and x-death", rejected},
		{"retry by a queue with a time to live", retried},
		{"time to live of queue and message", expired},
		{"a time to live of nothing", nowOrNever},
		{"length limits", limited},
		{"dead letters in a circle", circle},
		{"CC and BCC", carbonCopies},
	}
}

// deaths writes down the headers that dead lettering leaves.
func (p *probe) deaths(h amqp.Table) {
	all, _ := h["x-death"].([]any)
	for _, x := range all {
		d := x.(amqp.Table)
		at, _ := d["time"].(time.Time)
		p.say("    x-death count=%v reason=%v queue=%v exchange=%v keys=%v original-expiration=%v fresh=%v", d["count"], d["reason"],
			bare(d["queue"]), bare(d["exchange"]), bare(d["routing-keys"]), d["original-expiration"], time.Since(at).Abs() < time.Minute)
	}
	p.say("    first reason=%v queue=%v exchange=%v, n=%v", h["x-first-death-reason"], bare(h["x-first-death-queue"]), bare(h["x-first-death-exchange"]), h["n"])
}

func bare(v any) string {
	if v == nil {
		return "none"
	}
	return strings.ReplaceAll(fmt.Sprintf("%q", v), prefix, "")
}

// graveyard is an exchange with the queue for dead letters.
func (p *probe) graveyard() amqp.Table {
	p.must(p.ch.ExchangeDeclare(name("dlx"), "direct", true, false, false, false, nil))
	p.queue("dlq", nil)
	p.must(p.ch.QueueBind(name("dlq"), name("dead"), name("dlx"), false, nil))
	return amqp.Table{"x-dead-letter-exchange": name("dlx"), "x-dead-letter-routing-key": name("dead")}
}

func rejected(p *probe) {
	p.queue("work", p.graveyard())
	headers := amqp.Table{"n": int32(7)}
	for round := range 3 {
		p.publish("", name("work"), "w", func(m *amqp.Publishing) { m.Headers = headers; m.ContentType = "text/plain" })
		d := p.get("work", false)
		if round == 1 {
			p.must(d.Nack(false, true))
			d = p.get("work", false)
		}
		p.must(d.Reject(false))
		dead := p.get("dlq", true)
		p.say("    type=%s body=%s", dead.ContentType, dead.Body)
		p.deaths(dead.Headers)
		headers = dead.Headers
	}
	p.publish("", name("work"), "reset", func(m *amqp.Publishing) { m.Headers = amqp.Table{"x-death": "no list"} })
	p.must(p.get("work", false).Reject(false))
	p.deaths(p.get("dlq", true).Headers)
	p.queue("work", amqp.Table{"x-dead-letter-exchange": name("nowhere")})
	p.publish("", name("work"), "w", nil)
	p.must(p.get("work", false).Reject(false))
	p.counts("without the exchange it is gone", "work", 0, 0)
	p.counts("nothing more", "dlq", 0, 0)
}

func retried(p *probe) {
	p.queue("work", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("retry")})
	p.queue("retry", amqp.Table{"x-message-ttl": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("work")})
	p.publish("", name("work"), "w", nil)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	p.must(ch.Qos(1, 0, false))
	ds := p.consume(ch, "work", "c1")
	for range 3 {
		d := p.next(ds)
		p.deaths(d.Headers)
		p.must(d.Reject(false))
	}
	d := p.next(ds)
	p.deaths(d.Headers)
	p.must(d.Ack(false))
	p.counts("settled", "work", 0, 1)
	p.counts("and nothing waits", "retry", 0, 0)
}

func expired(p *probe) {
	args := p.graveyard()
	args["x-message-ttl"] = int32(60)
	p.queue("ttl", args)
	p.publish("", name("ttl"), "queue", nil)
	p.deaths(p.get("dlq", true).Headers)
	p.publish("", name("ttl"), "message", func(m *amqp.Publishing) { m.Expiration = "20" })
	d := p.get("dlq", true)
	p.say("    expiration=%q", d.Expiration)
	p.deaths(d.Headers)
	delete(args, "x-message-ttl")
	p.queue("ttl", args)
	p.publish("", name("ttl"), "long", nil)
	p.publish("", name("ttl"), "short", func(m *amqp.Publishing) { m.Expiration = "1" })
	p.publish("", name("ttl"), "other", func(m *amqp.Publishing) { m.Expiration = "600000" })
	p.counts("only the head expires", "ttl", 3, 0)
	d, _, err := p.ch.Get(name("ttl"), true) // what is left depends on whether the second one's time is over
	p.must(err)
	p.say("  then %s", d.MessageId)
	p.deaths(p.get("dlq", true).Headers)
	d = p.get("ttl", true)
	p.say("    expiration=%q", d.Expiration)
}

func nowOrNever(p *probe) {
	args := p.graveyard()
	args["x-message-ttl"] = int32(0)
	p.queue("ttl", args)
	p.publish("", name("ttl"), "never", nil)
	p.deaths(p.get("dlq", true).Headers)
	c, ch := p.client()
	defer func() { _ = c.Close() }()
	ds := p.consume(ch, "ttl", "c1")
	p.publish("", name("ttl"), "now", nil)
	p.must(p.next(ds).Ack(false))
	p.counts("nothing dead", "dlq", 0, 0)
}

func limited(p *probe) {
	args := p.graveyard()
	args["x-max-length"] = int32(2)
	p.queue("max", args)
	p.fill("max", 4)
	p.counts("two kept", "max", 2, 0)
	p.counts("two dead", "dlq", 2, 0)
	p.get("dlq", true)
	p.deaths(p.get("dlq", true).Headers)
	c, ch := p.client()
	ds := p.consume(ch, "max", "c1")
	p.next(ds)
	p.next(ds)
	p.fill("max", 1)
	p.next(ds)
	p.must(c.Close())
	p.counts("given back, one too many", "max", 2, 0)
	p.get("dlq", true)
	p.get("max", true)
	p.get("max", true)
	p.queue("bytes", amqp.Table{"x-max-length-bytes": int32(10), "x-overflow": "drop-head"})
	for _, body := range []string{"1234", "5678", "90123"} {
		p.publish("", name("bytes"), body, func(m *amqp.Publishing) { m.Body = []byte(body) })
	}
	p.counts("ten octets", "bytes", 2, 0)
	p.get("bytes", true)
}

func circle(p *probe) {
	p.queue("cycle", amqp.Table{"x-message-ttl": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("cycle")})
	p.publish("", name("cycle"), "round", nil)
	p.counts("dropped when nobody rejects", "cycle", 0, 0)
	p.queue("cycle", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("cycle")})
	p.publish("", name("cycle"), "round", nil)
	p.must(p.get("cycle", false).Reject(false))
	p.deaths(p.get("cycle", true).Headers)
}

func carbonCopies(p *probe) {
	args := p.graveyard()
	delete(args, "x-dead-letter-routing-key")
	p.queue("a", args)
	p.queue("cc1", nil)
	p.queue("cc2", nil)
	p.publish("", name("a"), "copies", func(m *amqp.Publishing) {
		m.Headers = amqp.Table{"CC": []any{name("cc1"), name("a")}, "BCC": []any{name("cc2")}, "n": int32(1)}
	})
	for _, q := range []string{"a", "cc1", "cc2"} {
		d := p.get(q, true)
		p.say("    CC=%s BCC=%v", bare(d.Headers["CC"]), d.Headers["BCC"])
	}
	p.counts("once each", "a", 0, 0)
	p.must(p.ch.QueueBind(name("dlq"), name("a"), name("dlx"), false, nil))
	p.publish("", name("a"), "keys", func(m *amqp.Publishing) { m.Headers = amqp.Table{"CC": []any{name("cc1")}} })
	p.must(p.get("a", false).Reject(false))
	p.deaths(p.get("dlq", true).Headers)
	p.get("cc1", true)
}
