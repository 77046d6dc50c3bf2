package embedded_test

import (
	"bytes"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func contentSections() []section {
	return []section{
		{"bodies", bodies},
		{"every property, every type", everyProperty},
		{"a small frame size", smallFrames},
	}
}

func bodies(p *probe) {
	p.queue("big", nil)
	for _, n := range []int{0, 1, 131_064, 131_065, 900_000} {
		body := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		p.publish("", name("big"), "big", func(m *amqp.Publishing) { m.Body = body })
		d, ok, err := p.ch.Get(name("big"), true)
		p.must(err)
		p.say("%d octets: %v same=%v", n, ok, bytes.Equal(d.Body, body))
	}
}

func everyProperty(p *probe) {
	p.queue("big", nil)
	headers := amqp.Table{
		"bool": true, "int8": int8(-1), "uint8": uint8(255), "int16": int16(-2), "int32": int32(-3), "int64": int64(-1 << 40),
		"float32": float32(0.5), "float64": 1.25, "decimal": amqp.Decimal{Scale: 2, Value: 12345}, "string": "text", "empty": "",
		"bytes": []byte{0, 1, 255}, "time": time.Unix(1_700_000_000, 0).UTC(), "nil": nil,
		"list": []any{"x", int32(1), []any{true}}, "table": amqp.Table{"k": amqp.Table{"deep": "v"}},
	}
	p.publish("", name("big"), "props", func(m *amqp.Publishing) {
		m.Headers, m.ContentType, m.ContentEncoding, m.Priority, m.CorrelationId = headers, "application/json", "gzip", 9, "corr"
		m.ReplyTo, m.Timestamp, m.Type, m.UserId, m.AppId, m.Expiration = "reply", time.Unix(1_700_000_000, 0), "type", "guest", "app", "600000"
		m.DeliveryMode = amqp.Transient
	})
	d, _, err := p.ch.Get(name("big"), true)
	p.must(err)
	p.say("%s %s mode=%d priority=%d %s %s %q %s %d %s %s %s", d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId,
		d.ReplyTo, d.Expiration, d.MessageId, d.Timestamp.Unix(), d.Type, d.UserId, d.AppId)
	p.say("headers %v", d.Headers)
	p.publish("", name("big"), "", func(m *amqp.Publishing) { m.DeliveryMode, m.Body = 0, nil })
	d, _, err = p.ch.Get(name("big"), true)
	p.must(err)
	p.say("none at all: mode=%d headers=%v id=%q", d.DeliveryMode, d.Headers, d.MessageId)
}

func smallFrames(p *probe) {
	p.queue("big", nil)
	c := p.dial(amqp.Config{FrameSize: 4096, ChannelMax: 7, Heartbeat: 30 * time.Second})
	defer func() { _ = c.Close() }()
	ch := p.channel(c)
	p.say("frame_max=%d channel_max=%d heartbeat=%v", c.Config.FrameSize, c.Config.ChannelMax, c.Config.Heartbeat)
	body := strings.Repeat("x", 100_000)
	p.must(ch.Publish("", name("big"), false, false, amqp.Publishing{Body: []byte(body), MessageId: "parts"}))
	p.counts("there", "big", 1, 0)
	d, _, err := ch.Get(name("big"), true)
	p.must(err)
	p.say("same=%v", string(d.Body) == body)
}
