package embedded

import (
	"encoding/binary"
	"strconv"
)

const directReplyTo = "amq.rabbitmq.reply-to"

// publish routes the message that the assembly has completed. The order of the
// checks, and return before confirm, are rabbit_channel's.
func (ch *channel) publish() error {
	a := &ch.assembly
	if a.immediate {
		return failure(codeNotImplemented, "immediate=true")
	}
	x, err := ch.conn.b.lookupExchange(a.exchange)
	if err != nil {
		return err
	}
	if x.internal {
		return accessRefused("cannot publish to internal %s", resource("exchange", x.name))
	}
	ttl, err := ch.checkProperties(&a.props)
	if err != nil {
		return err
	}
	c := &content{exchange: x.name, key: a.key, props: a.props, body: a.body}
	a.props, a.body = properties{}, nil
	if err := c.takeKeys(); err != nil {
		return err
	}
	queues := ch.conn.b.route(x, c)
	for _, q := range queues {
		ch.conn.b.enqueue(q, c, ttl)
	}
	if len(queues) == 0 && a.mandatory {
		ch.sendReturn(c)
	}
	if ch.confirm {
		ch.sendConfirm()
	}
	return nil
}

// checkProperties returns the message's own time to live, -1 for none.
func (ch *channel) checkProperties(p *properties) (ttl int64, err error) {
	switch {
	case p.replyTo == directReplyTo:
		return 0, preconditionFailed("fast reply consumer does not exist")
	case p.userID != "" && p.userID != ch.conn.user:
		return 0, preconditionFailed("user_id property set to '%s' but authenticated user was '%s'", p.userID, ch.conn.user)
	case p.deliveryMode > 2:
		return 0, preconditionFailed("invalid message: {delivery_mode_unknown,%d}", p.deliveryMode)
	case !p.expires:
		return -1, nil
	}
	ttl, problem := parseExpiration(p.expiration)
	if problem != "" {
		return 0, preconditionFailed("invalid expiration '%s': %s", p.expiration, problem)
	}
	return ttl, nil
}

// parseExpiration words the problem as RabbitMQ prints it.
func parseExpiration(s string) (int64, string) {
	end := 0
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		end = 1
	}
	digits := end
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == digits {
		return 0, "no_integer"
	}
	if end < len(s) {
		return 0, `{leftover_string,"` + s[end:] + `"}`
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, "{value_too_large," + s + "}"
	}
	return n, checkExpiry(n)
}

const tenYears = 315_360_000_000 // milliseconds, RabbitMQ's bound for a time to live

func checkExpiry(n int64) string {
	switch {
	case n < 0:
		return "{value_negative," + strconv.FormatInt(n, 10) + "}"
	case n > tenYears:
		return "{value_too_large," + strconv.FormatInt(n, 10) + "}"
	}
	return ""
}

// takeKeys reads the CC and BCC headers and hides the BCC one.
func (c *content) takeKeys() error {
	for _, name := range []string{"CC", "BCC"} {
		v, ok := c.props.headers.get(name)
		if !ok {
			continue
		}
		keys, ok := v.(array)
		if !ok {
			return preconditionFailed(`invalid message: {unacceptable_type_in_header,"%s",%s}`, name, kindOf(v))
		}
		for _, k := range keys {
			if s, ok := k.(string); ok {
				c.more = append(c.more, s)
			}
		}
		if name == "BCC" {
			c.props = c.props.rewrite(c.props.headers.without("BCC"), false)
		}
	}
	return nil
}

func (ch *channel) sendReturn(c *content) {
	ch.conn.out.add(func(out []byte) []byte {
		out = appendMethod(out, ch.id, basicReturn, func(out []byte) []byte {
			out = binary.BigEndian.AppendUint16(out, codeNoRoute)
			out = appendShort(out, "NO_ROUTE")
			return appendShort(appendShort(out, c.exchange), c.key)
		})
		return appendContent(out, ch.id, c.props.raw, c.body, ch.conn.frameMax)
	})
	ch.conn.b.touch(ch.conn)
}

// sendConfirm confirms one message at a time: taking several together was
// measured and won nothing.
func (ch *channel) sendConfirm() {
	ch.confirmed++
	ch.send(basicAck, func(out []byte) []byte { return append(appendTag(out, ch.confirmed), 0) })
}

func appendTag(out []byte, tag uint64) []byte { return binary.BigEndian.AppendUint64(out, tag) }
