package embedded

import "encoding/binary"

// queueFor resolves a queue's name; an empty one is the queue that this
// channel declared last.
func (ch *channel) queueFor(name string) (*queue, error) {
	name, err := ch.queueName(name)
	if err != nil {
		return nil, err
	}
	return ch.conn.b.lookupQueue(name, ch.conn)
}

func (ch *channel) queueName(name string) (string, error) {
	if name == "" && ch.lastQueue == "" {
		return "", failure(codeNotFound, "no previously declared queue")
	}
	if name == "" {
		return ch.lastQueue, nil
	}
	return name, nil
}

// basicQos: per consumer unless global, and then for the channel as a whole.
// A per consumer call lifts the channel's limit, as on RabbitMQ.
func (ch *channel) basicQos(d *decoder) error {
	size, count, global := d.uint32(), int(d.uint16()), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	if size != 0 {
		return failure(codeNotImplemented, "prefetch_size!=0 (%d)", size)
	}
	ch.limit = 0
	if global {
		ch.limit = count
	} else {
		ch.prefetch = count
	}
	ch.send(basicQosOk, nil)
	ch.unparkAll()
	return nil
}

func (ch *channel) basicConsume(d *decoder) error {
	d.uint16()
	name, tag, bits, args := d.short(), d.short(), d.bits(), d.table()
	if err := d.finish(); err != nil {
		return err
	}
	if _, used := ch.consumers[tag]; used {
		return failure(codeNotAllowed, "attempt to reuse consumer tag '%s'", tag)
	}
	if name == directReplyTo {
		return notImplemented("direct reply-to")
	}
	q, err := ch.queueFor(name)
	if err != nil {
		return err
	}
	if err := checkConsumeArguments(q, args); err != nil {
		return err
	}
	if tag == "" {
		tag = randomName("amq.ctag-")
	}
	c := &consumer{ch: ch, q: q, tag: tag, noAck: bits.has(1), exclusive: bits.has(2), prefetch: ch.prefetch}
	if err := ch.conn.b.addConsumer(c); err != nil {
		return err
	}
	ch.reply(bits.has(3), basicConsumeOk, func(out []byte) []byte { return appendShort(out, tag) })
	ch.conn.b.schedule(q)
	return nil
}

// basicCancel leaves what was delivered with the channel. An unknown tag is no error.
func (ch *channel) basicCancel(d *decoder) error {
	tag, noWait := d.short(), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	ch.reply(noWait, basicCancelOk, func(out []byte) []byte { return appendShort(out, tag) })
	if c := ch.consumers[tag]; c != nil {
		ch.conn.b.removeConsumer(c)
	}
	return nil
}

// sendCancel tells the client that its consumer is gone.
func (ch *channel) sendCancel(tag string) {
	ch.send(basicCancel, func(out []byte) []byte { return append(appendShort(out, tag), 1) })
}

func (ch *channel) basicGet(d *decoder) error {
	d.uint16()
	name, noAck := d.short(), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	q, err := ch.queueFor(name)
	if err != nil {
		return err
	}
	ch.conn.b.dropExpired(q)
	if q.ready.len() == 0 {
		ch.send(basicGetEmpty, func(out []byte) []byte { return append(out, 0) })
		return nil
	}
	m := q.ready.pop()
	ch.conn.b.dropExpired(q) // those behind it are not counted
	left := uint32(q.ready.len())
	tag := ch.hand(delivery{q: q, m: m}, !noAck)
	ch.conn.out.add(func(out []byte) []byte {
		out = appendMethod(out, ch.id, basicGetOk, func(out []byte) []byte {
			out = appendBool(appendTag(out, tag), m.redelivered)
			out = appendShort(appendShort(out, m.exchange), m.key)
			return binary.BigEndian.AppendUint32(out, left)
		})
		return appendContent(out, ch.id, m.props.raw, m.body, ch.conn.frameMax)
	})
	ch.conn.b.touch(ch.conn)
	return nil
}

// take removes deliveries from the channel. Tag 0 with multiple means all; any
// other tag must be one that is outstanding.
func (ch *channel) take(tag uint64, multiple bool) ([]delivery, error) {
	switch {
	case multiple && tag == 0:
		return ch.unacked.takeAll(), nil
	case multiple:
		if ds, ok := ch.unacked.takeThrough(tag); ok {
			return ds, nil
		}
	default:
		if d, ok := ch.unacked.take(tag); ok {
			ch.one[0] = d
			return ch.one[:], nil
		}
	}
	return nil, preconditionFailed("unknown delivery tag %d", tag)
}

func (ch *channel) basicAck(d *decoder) error {
	tag, multiple := d.uint64(), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	ds, err := ch.take(tag, multiple)
	ch.settled(ds)
	return err
}

func (ch *channel) basicReject(d *decoder) error {
	tag, requeue := d.uint64(), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	return ch.giveBack(tag, false, requeue)
}

func (ch *channel) basicNack(d *decoder) error {
	tag, bits := d.uint64(), d.bits()
	if err := d.finish(); err != nil {
		return err
	}
	return ch.giveBack(tag, bits.has(0), bits.has(1))
}

// giveBack returns deliveries to their queues or lets them die there.
func (ch *channel) giveBack(tag uint64, multiple, requeue bool) error {
	ds, err := ch.take(tag, multiple)
	ch.settled(ds)
	if requeue {
		ch.conn.b.requeue(ds)
		return err
	}
	for _, d := range ds {
		if !d.q.deleted {
			ch.conn.b.die(d.q, d.m, "rejected")
		}
	}
	return err
}

func (ch *channel) basicRecover(d *decoder, answer bool) error {
	requeue := d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	if !requeue {
		return failure(codeNotImplemented, "requeue=false")
	}
	ds := ch.unacked.takeAll()
	ch.settled(ds)
	ch.conn.b.requeue(ds)
	ch.reply(!answer, basicRecoverOk, nil)
	return nil
}
