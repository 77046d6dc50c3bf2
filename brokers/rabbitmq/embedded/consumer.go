package embedded

import "slices"

// consumer is a subscription of a channel to a queue.
type consumer struct {
	ch        *channel
	q         *queue
	tag       string
	noAck     bool
	exclusive bool
	prefetch  int // 0 for no limit
	pending   int // delivered and not settled
	parked    bool
}

// blocked says that the consumer cannot take a message now: its prefetch or
// the channel's is used up, or its client does not read.
func (c *consumer) blocked() bool {
	if !c.noAck && c.prefetch > 0 && c.pending >= c.prefetch {
		return true
	}
	if c.ch.limit > 0 && c.ch.pending >= c.ch.limit {
		return true
	}
	return c.ch.conn.out.full()
}

// unpark lets a consumer take part again; if it is still blocked, feed parks
// it once more.
func (c *consumer) unpark(b *broker) {
	if c.parked {
		c.parked = false
		c.q.active = append(c.q.active, c)
		b.schedule(c.q)
	}
}

func (c *consumer) deliver(b *broker, m *message) {
	tag := c.ch.hand(delivery{q: c.q, m: m, c: c}, !c.noAck)
	c.ch.conn.out.add(func(out []byte) []byte {
		out = appendMethod(out, c.ch.id, basicDeliver, func(out []byte) []byte {
			out = appendTag(appendShort(out, c.tag), tag)
			out = appendBool(out, m.redelivered)
			return appendShort(appendShort(out, m.exchange), m.key)
		})
		return appendContent(out, c.ch.id, m.props.raw, m.body, c.ch.conn.frameMax)
	})
	b.touch(c.ch.conn)
}

// addConsumer subscribes, if the queue allows it.
func (b *broker) addConsumer(c *consumer) error {
	q := c.q
	held := slices.ContainsFunc(q.consumers, func(o *consumer) bool { return o.exclusive })
	if held || c.exclusive && len(q.consumers) > 0 {
		return accessRefused("%s in exclusive use", resource("queue", q.name))
	}
	q.consumers = append(q.consumers, c)
	q.active = append(q.active, c)
	q.hadOne = true
	c.ch.consumers[c.tag] = c
	return nil
}

// removeConsumer ends a subscription; an auto-delete queue goes with its last one.
func (b *broker) removeConsumer(c *consumer) {
	gone := func(o *consumer) bool { return o == c }
	delete(c.ch.consumers, c.tag)
	c.q.consumers = slices.DeleteFunc(c.q.consumers, gone)
	c.q.active = slices.DeleteFunc(c.q.active, gone)
	c.parked = false // a late settlement must not bring it back
	if c.q.autoDelete && c.q.hadOne && len(c.q.consumers) == 0 && !c.q.deleted {
		b.deleteQueue(c.q)
	}
}
