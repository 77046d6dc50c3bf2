package embedded

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// handle runs a command under the broker's lock; false ends the connection, as
// Pulsar ends it at a command that no client sends.
func (c *conn) handle(cmd command) bool {
	f := cmd.f
	switch cmd.kind {
	case cmdPing:
		c.out.add(cmdPong, nil, nil)
	case cmdPong:
	case cmdPartitions:
		c.partitions(f)
	case cmdLookup:
		c.out.add(cmdLookupResponse, body(nil).text(1, c.b.url).number(3, lookupConnect).number(4, f.number(2, 0)).number(5, 1), nil)
	case cmdProducer:
		c.answer(f.number(3, 0), c.openProducer(f))
	case cmdSend:
		c.send(cmd)
	case cmdCloseProducer:
		c.closeProducer(f)
	case cmdSubscribe:
		c.answer(f.number(5, 0), c.subscribe(f))
	case cmdFlow:
		if co := c.consumers[f.number(1, 0)]; co != nil {
			co.permits += int64(min(f.number(2, 0), maxPermits))
			co.sub.dispatch()
		}
	case cmdAck:
		c.ack(f)
	case cmdRedeliver:
		if co := c.consumers[f.number(1, 0)]; co != nil {
			co.redeliver(f.blobs[2])
		}
	case cmdUnsubscribe:
		c.answer(f.number(2, 0), c.unsubscribe(f))
	case cmdCloseConsumer:
		if co := c.consumers[f.number(1, 0)]; co != nil {
			delete(c.consumers, co.id)
			co.leave()
		}
		c.succeed(f.number(2, 0))
	default:
		u, ok := unserved()[cmd.kind]
		if !ok {
			return false
		}
		c.fail(f.number(protowire.Number(u.requestID), 0), refuse(codeNotAllowed, "%s is not served here", u.Name))
	}
	return true
}

const (
	lookupConnect = 1 // CommandLookupTopicResponse.Connect
	// maxPermits is more than any client asks for at once.
	maxPermits = 1 << 20
)

// answer tells the client about a refusal; success has been told already.
func (c *conn) answer(request uint64, r *refusal) {
	if r != nil {
		c.fail(request, r)
	}
}

// partitions says that a topic has none.
func (c *conn) partitions(f fields) {
	b := body(nil).number(2, f.number(2, 0))
	if _, r := c.b.topic(f.text(1)); r != nil {
		b = b.number(3, 1).number(4, r.code).text(5, r.text)
	} else {
		b = b.number(1, 0).number(3, 0)
	}
	c.out.add(cmdPartitionsResponse, b, nil)
}

func (c *conn) closeProducer(f fields) {
	if p := c.producers[f.number(1, 0)]; p != nil {
		delete(c.producers, p.id)
		p.leave()
	}
	c.succeed(f.number(2, 0))
}

// ack settles messages, whoever has them by now: so does Pulsar.
func (c *conn) ack(f fields) {
	co := c.consumers[f.number(1, 0)]
	if co == nil {
		return
	}
	r := co.ack(f)
	if !f.has(8) {
		return
	}
	b := body(nil).number(1, co.id)
	if r != nil {
		b = b.number(4, r.code).text(5, r.text)
	}
	c.out.add(cmdAckResponse, b.number(6, f.number(8, 0)), nil)
}

func (c *conn) unsubscribe(f fields) *refusal {
	co := c.consumers[f.number(1, 0)]
	if co == nil {
		return refuse(codeMetadata, "Consumer not found")
	}
	if len(co.sub.consumers) > 1 && !f.flag(3) {
		return refuse(codeMetadata, "Unconnected or shared consumer attempting to unsubscribe")
	}
	delete(co.sub.t.subs, co.sub.name)
	delete(c.consumers, co.id)
	co.leave()
	c.succeed(f.number(2, 0))
	return nil
}
