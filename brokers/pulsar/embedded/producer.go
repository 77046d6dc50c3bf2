package embedded

import (
	"cmp"
	"fmt"
)

// producer is a client's producer.
type producer struct {
	c    *conn
	id   uint64
	name string
	t    *topic
}

func (c *conn) openProducer(f fields) *refusal {
	t, r := c.b.topic(f.text(1))
	switch {
	case r != nil:
		return r
	case f.has(7):
		return notServed(featureSchema)
	case f.number(10, 0) != 0:
		return notServed(featureAccessMode)
	case f.flag(12):
		return notServed(featureTransactions)
	case c.producers[f.number(2, 0)] != nil:
		return refuse(codeProducerBusy, "the producer's id is in use on this connection")
	}
	p := &producer{c: c, id: f.number(2, 0), name: f.text(4), t: t}
	for o := range t.producers {
		if p.name != "" && o.name == p.name {
			return refuse(codeProducerBusy, "Producer with name '%s' is already connected to topic", p.name)
		}
	}
	c.b.names++
	p.name = cmp.Or(p.name, fmt.Sprint("mqlab-", c.b.names))
	if s := f.text(13); s != "" {
		t.subscribe(s, true)
	}
	c.producers[p.id], t.producers[p] = p, struct{}{}
	c.out.add(cmdProducerSuccess, body(nil).number(1, f.number(3, 0)).text(2, p.name).number(3, ^uint64(0)).number(6, 1), nil)
	return nil
}

func (p *producer) leave() { delete(p.t.producers, p) }

// send stores a message and answers with its receipt. One of a producer that is
// gone is dropped without an answer, as Pulsar does: its client has been told.
func (c *conn) send(cmd command) {
	f := cmd.f
	p := c.producers[f.number(1, 0)]
	if p == nil {
		return
	}
	e, r := stored(cmd)
	if r != nil {
		c.out.add(cmdSendError, body(nil).number(1, p.id).number(2, f.number(2, 0)).number(3, r.code).text(4, r.text), nil)
		return
	}
	number := p.t.add(e)
	c.out.add(cmdSendReceipt, body(nil).number(1, p.id).number(2, f.number(2, 0)).blob(3, p.t.id(number)).number(4, f.number(6, 0)), nil)
}

// stored is the entry for a SEND.
func stored(cmd command) (entry, *refusal) {
	m, ok := metadata(cmd.payload)
	switch {
	case !ok:
		return entry{}, refuse(codeChecksum, "Checksum failed on the broker")
	case cmd.f.number(4, 0) != 0 || cmd.f.number(5, 0) != 0:
		return entry{}, notServed(featureTransactions)
	case m.number(19, 0) != 0:
		return entry{}, notServed(featureDelay)
	case m.number(27, 0) > 1:
		return entry{}, notServed(featureChunks)
	}
	return entry{payload: cmd.payload, messages: int64(max(1, min(m.number(11, 1), maxPermits))),
		key: cmp.Or(m.text(18), m.text(6))}, nil
}
