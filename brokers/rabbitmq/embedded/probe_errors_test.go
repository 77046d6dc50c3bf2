package embedded_test

import (
	"context"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func errorSections() []section {
	return []section{
		{"queues: declare", queueErrors},
		{"queues: arguments", argumentErrors},
		{"queues: use", queueUse},
		{"exchanges", exchangeErrors},
		{"publish", publishErrors},
		{"settle", settleErrors},
		{"errors that end the connection", connectionErrors},
		{"login", loginErrors},
	}
}

// fault returns the error of f, or the one with which the channel is closed
// soon after.
func (p *probe) fault(ch *amqp.Channel, f func() error) string {
	p.t.Helper()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := f(); err != nil {
		return reason(err)
	}
	select {
	case err := <-closed:
		return reason(err)
	case <-time.After(bound):
		return "no error"
	}
}

// failing writes down with what a channel is closed.
func (p *probe) failing(what string, f func(*amqp.Channel) error) {
	p.t.Helper()
	ch := p.channel(p.c)
	p.say("%s: %s", what, p.fault(ch, func() error { return f(ch) }))
}

// declaring declares the queue "args" afresh or again.
func declaring(durable, autoDelete, exclusive bool, args amqp.Table) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		return second(ch.QueueDeclare(name("args"), durable, autoDelete, exclusive, false, args))
	}
}

func queueErrors(p *probe) {
	p.queue("args", nil)
	p.failing("durable", declaring(false, false, false, nil))
	p.failing("auto-delete", declaring(true, true, false, nil))
	p.failing("exclusive", declaring(true, false, true, nil))
	p.failing("an argument more", declaring(true, false, false, amqp.Table{"x-message-ttl": int32(1)}))
	p.failing("another type", declaring(true, false, false, amqp.Table{"x-queue-type": "quorum"}))
	p.say("said to be classic: %v", declaring(true, false, false, amqp.Table{"x-queue-type": "classic"})(p.ch))
	p.queue("args", amqp.Table{"x-message-ttl": int32(100), "x-dead-letter-exchange": "one", "x-other": "1"})
	p.say("the same in another integer type: %v", declaring(true, false, false, amqp.Table{"x-message-ttl": int64(100), "x-dead-letter-exchange": "one"})(p.ch))
	p.failing("an argument less", declaring(true, false, false, amqp.Table{"x-message-ttl": int32(100)}))
	p.failing("another number", declaring(true, false, false, amqp.Table{"x-message-ttl": int32(200), "x-dead-letter-exchange": "one"}))
	p.failing("another text", declaring(true, false, false, amqp.Table{"x-message-ttl": int32(100), "x-dead-letter-exchange": "two"}))
	p.failing("a text for a number", declaring(true, false, false, amqp.Table{"x-message-ttl": "100", "x-dead-letter-exchange": "one"}))
	p.failing("passive, not there", func(ch *amqp.Channel) error {
		return second(ch.QueueDeclarePassive(name("nope"), false, false, false, false, nil))
	})
	p.failing("reserved name", func(ch *amqp.Channel) error {
		return second(ch.QueueDeclare("amq.mine", false, false, false, false, nil))
	})
}

func argumentErrors(p *probe) {
	_, err := p.ch.QueueDelete(name("args"), false, false, false)
	p.must(err)
	for _, args := range []amqp.Table{
		{"x-message-ttl": int32(-1)},
		{"x-message-ttl": "soon"},
		{"x-message-ttl": int64(315_360_000_001)},
		{"x-max-length": int32(-1)},
		{"x-max-length": true},
		{"x-dead-letter-exchange": int32(1)},
		{"x-dead-letter-routing-key": "k"},
		{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": int32(1)},
		{"x-queue-type": "other"},
		{"x-delivery-limit": int32(1)},
		{"x-queue-mode": int32(1)},
		{"x-queue-mode": "other"},
		{"x-queue-version": int32(3)},
		{"x-overflow": "other"},
	} {
		for k, v := range args {
			if len(args) == 1 || k == "x-dead-letter-routing-key" {
				p.failing(strings.TrimSpace(k+" "+textOf(v)), declaring(true, false, false, args))
			}
		}
	}
	p.failing("x-match", func(ch *amqp.Channel) error {
		p.queue("args", nil)
		return ch.QueueBind(name("args"), "", "amq.headers", false, amqp.Table{"x-match": "some"})
	})
	p.failing("x-match of another type", func(ch *amqp.Channel) error {
		return ch.QueueBind(name("args"), "", "amq.headers", false, amqp.Table{"x-match": int32(1)})
	})
}

func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return ""
}

func queueUse(p *probe) {
	p.queue("a", nil)
	p.fill("a", 1)
	p.failing("bind to an exchange that is not there", func(ch *amqp.Channel) error {
		return ch.QueueBind(name("a"), "k", name("nope"), false, nil)
	})
	p.failing("bind a queue that is not there", func(ch *amqp.Channel) error {
		return ch.QueueBind(name("nope"), "k", "amq.direct", false, nil)
	})
	p.failing("bind nothing to nothing", func(ch *amqp.Channel) error {
		return ch.QueueBind(name("nope"), "k", name("nope"), false, nil)
	})
	p.failing("bind to the default exchange", func(ch *amqp.Channel) error { return ch.QueueBind(name("a"), "k", "", false, nil) })
	p.failing("unbind from it", func(ch *amqp.Channel) error { return ch.QueueUnbind(name("a"), name("a"), "", nil) })
	p.failing("consume", func(ch *amqp.Channel) error {
		return second(ch.Consume(name("nope"), "c", false, false, false, false, nil))
	})
	p.failing("get", func(ch *amqp.Channel) error { _, _, err := ch.Get(name("nope"), false); return err })
	p.failing("purge", func(ch *amqp.Channel) error { return second(ch.QueuePurge(name("nope"), false)) })
	p.failing("no name and none declared before", func(ch *amqp.Channel) error { _, _, err := ch.Get("", false); return err })
	p.failing("delete if-empty", func(ch *amqp.Channel) error { return second(ch.QueueDelete(name("a"), false, true, false)) })
	c, ch := p.client()
	p.consume(ch, "a", "c1")
	p.counts("consumer there", "a", 0, 1)
	p.failing("delete if-unused", func(ch *amqp.Channel) error { return second(ch.QueueDelete(name("a"), true, false, false)) })
	p.failing("consume exclusively beside another", func(ch *amqp.Channel) error {
		return second(ch.Consume(name("a"), "c2", false, true, false, false, nil))
	})
	p.must(c.Close())
	p.counts("consumer gone", "a", 1, 0)
	c, ch = p.client()
	defer func() { _ = c.Close() }()
	_, err := ch.Consume(name("a"), "c3", false, true, false, false, nil)
	p.must(err)
	p.failing("consume beside an exclusive one", func(ch *amqp.Channel) error {
		return second(ch.Consume(name("a"), "c4", false, false, false, false, nil))
	})
	p.must(ch.Cancel("c3", false))
	n, err := p.ch.QueueDelete(name("a"), true, true, false)
	p.say("delete if-unused and if-empty, the message is held: %d %v", n, err)
}

func exchangeErrors(p *probe) {
	p.must(p.ch.ExchangeDeclare(name("x"), "direct", true, false, false, false, nil))
	for _, try := range []struct {
		what, x, kind             string
		durable, auto, isInternal bool
	}{
		{"another type", name("x"), "fanout", true, false, false},
		{"durable", name("x"), "direct", false, false, false},
		{"auto-delete", name("x"), "direct", true, true, false},
		{"internal", name("x"), "direct", true, false, true},
		{"reserved name", "amq.mine", "direct", true, false, false},
		{"predeclared with another type", "amq.direct", "topic", true, false, false},
		{"default", "", "direct", true, false, false},
	} {
		p.failing(try.what, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(try.x, try.kind, try.durable, try.auto, try.isInternal, false, nil)
		})
	}
	p.say("the same again: %v", p.ch.ExchangeDeclare(name("x"), "direct", true, false, false, false, nil))
	p.say("predeclared: %v", p.ch.ExchangeDeclare("amq.topic", "topic", true, false, false, false, nil))
	p.failing("passive", func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name("nope"), "direct", true, false, false, false, nil)
	})
	p.failing("delete a predeclared one", func(ch *amqp.Channel) error { return ch.ExchangeDelete("amq.fanout", false, false) })
	p.failing("delete the default one", func(ch *amqp.Channel) error { return ch.ExchangeDelete("", false, false) })
}

func publishErrors(p *probe) {
	p.queue("a", nil)
	send := func(x string, m amqp.Publishing) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			return ch.PublishWithContext(context.Background(), x, name("a"), false, false, m)
		}
	}
	p.failing("no such exchange", send(name("nope"), amqp.Publishing{Body: []byte("x")}))
	for _, e := range []string{"soon", "1x", "-1", "315360000001", "1.5"} {
		p.failing("expiration "+e, send("", amqp.Publishing{Expiration: e}))
	}
	p.failing("user-id", send("", amqp.Publishing{UserId: "somebody"}))
	p.failing("delivery-mode", send("", amqp.Publishing{DeliveryMode: 3}))
	p.failing("direct reply-to without a consumer", send("", amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to"}))
	p.counts("nothing came through", "a", 0, 0)
}

func settleErrors(p *probe) {
	p.queue("a", nil)
	p.fill("a", 3)
	for _, try := range []struct {
		what string
		f    func(ch *amqp.Channel) error
	}{
		{"tag 0", func(ch *amqp.Channel) error { return ch.Ack(0, false) }},
		{"unknown tag", func(ch *amqp.Channel) error { return ch.Ack(99, false) }},
		{"unknown tag, multiple", func(ch *amqp.Channel) error { return ch.Ack(99, true) }},
		{"nack", func(ch *amqp.Channel) error { return ch.Nack(99, false, true) }},
		{"reject", func(ch *amqp.Channel) error { return ch.Reject(99, true) }},
		{"acked twice", func(ch *amqp.Channel) error { return first(ch.Ack(1, false), ch.Ack(1, false)) }},
		{"multiple up to one that is settled", func(ch *amqp.Channel) error { return first(ch.Ack(2, false), ch.Ack(2, true)) }},
	} {
		ch := p.channel(p.c)
		for range 2 {
			_, _, err := ch.Get(name("a"), false)
			p.must(err)
		}
		p.say("%s: %s", try.what, p.fault(ch, func() error { return try.f(ch) }))
	}
	p.counts("what was not settled is back", "a", 1, 0)
	p.get("a", true)
}

// first is the first error of several.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func connectionErrors(p *probe) {
	p.queue("a", nil)
	p.fill("a", 1)
	for _, try := range []struct {
		what string
		f    func(ch *amqp.Channel) error
	}{
		{"consumer tag used twice", func(ch *amqp.Channel) error {
			return first(second(ch.Consume(name("a"), "tag", false, false, false, false, nil)),
				second(ch.Consume(name("a"), "tag", false, false, false, false, nil)))
		}},
		{"unknown exchange type", func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name("x"), "other", true, false, false, false, nil)
		}},
		{"prefetch size", func(ch *amqp.Channel) error { return ch.Qos(1, 10, false) }},
		{"immediate", func(ch *amqp.Channel) error {
			return ch.Publish("", name("a"), false, true, amqp.Publishing{})
		}},
		{"recover without requeue", func(ch *amqp.Channel) error { return ch.Recover(false) }}, //nolint:staticcheck // deprecated for users; the server still has to answer it
		{"flow off", func(ch *amqp.Channel) error { return ch.Flow(false) }},
	} {
		c, ch := p.client()
		closed := c.NotifyClose(make(chan *amqp.Error, 1))
		err := try.f(ch)
		select {
		case e := <-closed:
			p.say("%s: %s", try.what, reason(e))
		case <-time.After(bound):
			p.say("%s: %s, but the connection is open", try.what, reason(err))
		}
	}
	p.counts("nothing is lost", "a", 1, 0)
	p.must(p.ch.Flow(true))
	p.say("flow on is no error")
}

func loginErrors(p *probe) {
	for _, try := range []struct {
		what string
		auth amqp.Authentication
	}{
		{"wrong password", &amqp.PlainAuth{Username: "guest", Password: "wrong"}},
		{"wrong user", &amqp.AMQPlainAuth{Username: "nobody", Password: "guest"}},
		{"AMQPLAIN", &amqp.AMQPlainAuth{Username: "guest", Password: "guest"}},
	} {
		c, err := amqp.DialConfig(p.url, amqp.Config{SASL: []amqp.Authentication{try.auth}})
		if err == nil {
			err = c.Close()
		}
		p.say("%s: %s", try.what, reason(err))
	}
	_, err := amqp.DialConfig(p.url, amqp.Config{Vhost: "nope"})
	p.say("wrong vhost: %s", reason(err))
}
