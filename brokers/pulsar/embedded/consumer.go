package embedded

import (
	"slices"
)

// consumer is a client's consumer.
type consumer struct {
	c       *conn
	id      uint64
	name    string
	sub     *subscription
	permits int64
}

func (c *conn) subscribe(f fields) *refusal {
	t, r := c.b.topic(f.text(1))
	if r == nil {
		r = c.servable(f)
	}
	if r != nil {
		return r
	}
	s, k := t.subs[f.text(2)], kind(f.number(3, 0))
	switch {
	case s == nil || len(s.consumers) == 0:
	case k != s.kind:
		return refuse(codeConsumerBusy, "Subscription is of different type")
	case k == exclusive:
		return refuse(codeConsumerBusy, "Exclusive consumer is already connected")
	}
	s = t.subscribe(f.text(2), f.number(13, 0) == 1)
	if s.kind != k {
		s.kind = k
		s.rewind()
	}
	co := &consumer{c: c, id: f.number(4, 0), name: f.text(6), sub: s}
	c.consumers[co.id] = co
	s.consumers = append(s.consumers, co)
	c.succeed(f.number(5, 0))
	s.elect()
	s.dispatch()
	return nil
}

// servable says what of a SUBSCRIBE is not served.
func (c *conn) servable(f fields) *refusal {
	var sticky bool
	if m, err := decode(f.blob(17)); err == nil {
		sticky = m.number(1, 0) != 0
	}
	switch {
	case f.text(2) == "":
		return refuse(codeInvalidName, "Empty subscription name")
	case f.number(3, 0) > uint64(keyShared):
		return refuse(codeNotAllowed, "unknown subscription type")
	case f.number(8, 1) == 0 || f.has(9):
		return notServed(featureReader)
	case f.flag(11):
		return notServed(featureCompacted)
	case f.has(12):
		return notServed(featureSchema)
	case sticky:
		return notServed(featureSticky)
	case c.consumers[f.number(4, 0)] != nil:
		return refuse(codeConsumerBusy, "the consumer's id is in use on this connection")
	}
	return nil
}

// announce tells the consumers of a failover subscription who is the active one.
func (s *subscription) announce() {
	if s.kind != failover {
		return
	}
	for _, co := range s.consumers {
		active := uint64(0)
		if co == s.active {
			active = 1
		}
		co.c.out.add(cmdActiveConsumer, body(nil).number(1, co.id).number(2, active), nil)
	}
}

// leave gives back what the consumer held, uncounted. When the last one goes,
// the counts go with it.
func (co *consumer) leave() {
	s := co.sub
	i := slices.Index(s.consumers, co)
	if i < 0 {
		return
	}
	s.consumers = slices.Delete(s.consumers, i, i+1)
	for n, h := range s.held {
		if h == co {
			s.giveBack(n)
		}
	}
	if len(s.consumers) == 0 {
		s.rewind()
	}
	s.elect()
	s.dispatch()
}

// ack settles entries one by one or up to one.
func (co *consumer) ack(f fields) *refusal {
	s, cumulative := co.sub, f.number(2, 0) == 1
	if cumulative && !s.kind.single() {
		return refuse(codeNotAllowed, "cumulative acknowledgement is not allowed on %v", s.kind)
	}
	if f.number(6, 0) != 0 || f.number(7, 0) != 0 {
		return notServed(featureTransactions)
	}
	for _, raw := range f.blobs[3] {
		id, err := decode(raw)
		if err != nil || id.number(1, 0) != s.t.ledger {
			continue // Pulsar takes an ack of something unknown too
		}
		if id.has(5) {
			return notServed(featureBatchIndex)
		}
		n := id.number(2, 0)
		if cumulative {
			for k := s.mark; k < min(n, s.t.end()); k++ {
				s.settle(k)
			}
		}
		s.settle(n)
	}
	s.dispatch() // a key may be free now
	return nil
}

// redeliver hands out again what the consumer has not settled: on a shared
// subscription the named entries, or all of its own, each counted; on others
// everything, uncounted.
func (co *consumer) redeliver(ids [][]byte) {
	s := co.sub
	switch {
	case s.kind.single():
		if s.active == co {
			s.rewind()
		}
	case len(ids) == 0:
		for n, h := range s.held {
			if h == co {
				s.giveBack(n)
				s.count[n]++
			}
		}
	default:
		for _, raw := range ids {
			id, err := decode(raw)
			n := id.number(2, 0)
			if err == nil && s.held[n] == co {
				s.giveBack(n)
				s.count[n]++
			}
		}
	}
	s.dispatch()
}

// unacknowledged is what the consumer holds.
func (co *consumer) unacknowledged() (n int64) {
	for e, h := range co.sub.held {
		if h == co {
			n += co.sub.t.at(e).messages
		}
	}
	return n
}
