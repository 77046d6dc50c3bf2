package embedded

import (
	"math"
	"slices"
	"time"
)

// queue is a classic queue.
type queue struct {
	name       string
	durable    bool
	autoDelete bool
	owner      *conn // of an exclusive queue
	args       table
	limits

	ready     readyList
	unacked   int
	consumers []*consumer // all of them, oldest first
	active    []*consumer // those that are not parked, in turn
	hadOne    bool        // a consumer was there, so auto-delete may act
	scheduled bool
	deleted   bool
}

// limits are the arguments that the queue acts upon.
type limits struct {
	ttl        int64 // milliseconds, -1 for none
	maxLength  int64
	maxBytes   int64
	deadLetter bool
	dlx        string
	dlk        string
	keepKey    bool // dead letters keep their routing key
}

func limitsOf(args table) limits {
	l := limits{ttl: -1, maxLength: math.MaxInt64, maxBytes: math.MaxInt64}
	for _, a := range []struct {
		name string
		to   *int64
	}{{"x-message-ttl", &l.ttl}, {"x-max-length", &l.maxLength}, {"x-max-length-bytes", &l.maxBytes}} {
		if v, ok := args.get(a.name); ok {
			*a.to, _ = integer(v)
		}
	}
	l.dlx, l.deadLetter = args.text("x-dead-letter-exchange")
	dlk, ok := args.text("x-dead-letter-routing-key")
	l.dlk, l.keepKey = dlk, !ok
	return l
}

// enqueue puts a message at the end. A consumer that has room gets it before
// its time to live is looked at, so that a ttl of 0 means "now or never".
func (b *broker) enqueue(q *queue, c *content, perMessage int64) {
	b.seq++
	m := &message{content: c, seq: b.seq}
	if ttl := shortest(q.ttl, perMessage); ttl >= 0 {
		m.expires = b.now() + ttl*int64(time.Millisecond)
	}
	q.ready.push(m)
	b.feed(q)
	b.dropHead(q)
	b.dropExpired(q)
}

func shortest(a, b int64) int64 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// run brings a queue to rest after something has changed.
func (b *broker) run(q *queue) {
	if q.deleted {
		return
	}
	b.dropExpired(q)
	b.feed(q)
}

// feed delivers in turn, as rabbit_queue_consumers does: the one that got a
// message goes to the end, one without room is parked until it has some.
func (b *broker) feed(q *queue) {
	for q.ready.len() > 0 && len(q.active) > 0 {
		c := q.active[0]
		copy(q.active, q.active[1:])
		if c.blocked() {
			q.active = q.active[:len(q.active)-1]
			c.parked = true
			continue
		}
		q.active[len(q.active)-1] = c
		c.deliver(b, q.ready.pop())
		b.dropExpired(q) // the next one may have expired behind a longer living one
	}
}

// dropHead keeps the queue within its length.
func (b *broker) dropHead(q *queue) {
	for int64(q.ready.len()) > q.maxLength || q.ready.bytes > q.maxBytes {
		b.die(q, q.ready.pop(), "maxlen")
	}
}

// dropExpired looks at the head only, as RabbitMQ does, and sets the alarm for
// the next one.
func (b *broker) dropExpired(q *queue) {
	m := q.ready.first()
	for ; m != nil && m.expires != 0; m = q.ready.first() {
		if m.expires > b.now() {
			b.wakeAt(m.expires)
			return
		}
		b.die(q, q.ready.pop(), "expired")
	}
}

// requeue gives messages back to their places, marked as redelivered.
func (b *broker) requeue(back []delivery) {
	byQueue := map[*queue][]*message{}
	for _, d := range back {
		if !d.q.deleted {
			d.m.redelivered = true
			byQueue[d.q] = append(byQueue[d.q], d.m)
		}
	}
	for q, ms := range byQueue {
		slices.SortFunc(ms, func(x, y *message) int { return bySeq(x, y.seq) })
		q.ready.putBack(ms)
		b.dropHead(q)
		b.schedule(q)
	}
}

// purge drops the ready messages without dead lettering.
func (q *queue) purge() int { return q.ready.clear() }
