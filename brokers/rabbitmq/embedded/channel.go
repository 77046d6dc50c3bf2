package embedded

// maxBody is RabbitMQ's default limit for a message.
const maxBody = 128 << 20

// channel is one channel of a connection. The reader of the connection alone
// assembles contents and closes it; all else is the broker's and under its lock.
type channel struct {
	conn      *conn
	id        uint16
	assembly  assembly
	closing   bool // we sent channel.close and wait for the answer
	confirm   bool
	confirmed uint64 // the number of the last publish that was confirmed
	lastTag   uint64
	lastQueue string // what an empty queue name means
	prefetch  int    // of consumers to come
	limit     int    // of the channel as a whole, 0 for none
	pending   int    // unsettled deliveries to consumers
	unacked   ledger
	one       [1]delivery // scratch of take
	consumers map[string]*consumer
}

func newChannel(c *conn, id uint16) *channel {
	return &channel{conn: c, id: id, consumers: map[string]*consumer{}}
}

func (ch *channel) send(m method, args func([]byte) []byte) {
	ch.conn.out.add(func(out []byte) []byte { return appendMethod(out, ch.id, m, args) })
	ch.conn.b.touch(ch.conn)
}

// reply sends the answer unless the client did not want one.
func (ch *channel) reply(noWait bool, m method, args func([]byte) []byte) {
	if !noWait {
		ch.send(m, args)
	}
}

// frame takes one frame for this channel.
func (ch *channel) frame(f frame) error {
	if ch.closing {
		return ch.whileClosing(f)
	}
	if ch.assembly.wants != wantMethod || f.kind != frameMethod {
		complete, err := ch.assembly.add(f)
		return ch.published(complete, err)
	}
	d := &decoder{b: f.payload}
	m := method(d.uint32())
	if d.err != nil {
		return asAMQP(d.err, 0)
	}
	if m == basicPublish {
		return ch.published(false, ch.assembly.begin(d))
	}
	return ch.conn.b.do(ch.conn, func() error {
		if ch.conn.ending {
			return nil
		}
		return ch.raise(ch.method(m, d), m)
	})
}

// published acts upon what the assembly says; the lock is only taken when
// there is something to do.
func (ch *channel) published(complete bool, err error) error {
	if !complete && err == nil {
		return nil
	}
	return ch.conn.b.do(ch.conn, func() error {
		if err == nil && !ch.conn.ending {
			err = ch.publish()
		}
		return ch.raise(err, basicPublish)
	})
}

// whileClosing throws everything away but the end of the channel.
func (ch *channel) whileClosing(f frame) error {
	if f.kind != frameMethod {
		return nil
	}
	d := decoder{b: f.payload}
	return ch.conn.b.do(ch.conn, func() error {
		switch method(d.uint32()) {
		case channelCloseOk:
			ch.conn.forget(ch)
		case channelClose: // crossed with ours
			ch.send(channelCloseOk, nil)
		}
		return nil
	})
}

// raise closes the channel for a channel exception and hands on the others.
// What the client held is in its queue again before it can hear of the end.
func (ch *channel) raise(err error, m method) error {
	if err == nil {
		return nil
	}
	e := asAMQP(err, m)
	if e.hard() {
		return e
	}
	ch.conn.b.note(ch.conn, "channel %d closed: %v", ch.id, e)
	ch.shut()
	ch.closing = true
	ch.send(channelClose, e.append)
	return nil
}

// shut takes the consumers away and gives back what was not settled.
func (ch *channel) shut() {
	b := ch.conn.b
	for _, c := range ch.consumers {
		b.removeConsumer(c)
	}
	back := ch.unacked.takeAll()
	for _, d := range back {
		d.q.unacked--
	}
	ch.pending = 0
	b.requeue(back)
}

// hand gives a delivery its tag and remembers it if it must be acknowledged.
func (ch *channel) hand(d delivery, ack bool) uint64 {
	ch.lastTag++
	if ack {
		d.tag = ch.lastTag
		ch.unacked.add(d)
		d.q.unacked++
		if d.c != nil {
			d.c.pending++
			ch.pending++
		}
	}
	return ch.lastTag
}

// settled takes note that the client no longer has the deliveries and lets
// consumers go on that waited for room.
func (ch *channel) settled(ds []delivery) {
	b := ch.conn.b
	for _, d := range ds {
		d.q.unacked--
		if d.c == nil {
			continue
		}
		d.c.pending--
		ch.pending--
		d.c.unpark(b)
	}
	if ch.limit > 0 {
		ch.unparkAll()
	}
}

func (ch *channel) unparkAll() {
	for _, c := range ch.consumers {
		c.unpark(ch.conn.b)
	}
}

// append writes the arguments of channel.close and connection.close.
func (e *amqpError) append(out []byte) []byte {
	out = append(out, byte(e.code>>8), byte(e.code))
	out = appendShort(out, e.text)
	m := e.method
	return append(out, byte(m>>24), byte(m>>16), byte(m>>8), byte(m))
}
