package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log"
	"sync"
	"time"
)

// broker is the state of the one vhost. One mutex guards all of it, also what
// connections, channels and consumers keep; nothing is written to a socket
// while it is held, frames only go to an outbox.
type broker struct {
	mu        sync.Mutex
	log       *log.Logger
	started   time.Time
	exchanges map[string]*exchange
	queues    map[string]*queue
	conns     map[*conn]struct{}
	closed    bool
	seq       uint64

	deaths   []death  // dead letters that still have to be routed
	runnable []*queue // queues that may have something to deliver
	notes    []string // lines for the log
	dirty    []*conn  // connections that got frames in this operation
	routed   []*queue // scratch of route
	alarm    alarm
}

func newBroker(l *log.Logger) *broker {
	return &broker{
		log:       l,
		started:   time.Now(),
		exchanges: predeclared(),
		queues:    map[string]*queue{},
		conns:     map[*conn]struct{}{},
		alarm:     alarm{changed: make(chan struct{}, 1)},
	}
}

// do runs one operation under the lock and brings the state to rest after it.
// by is the connection whose reader asks: it flushes itself when it has
// nothing more to read, every other one is told to write.
func (b *broker) do(by *conn, op func() error) error {
	b.mu.Lock()
	err := op()
	b.settle()
	for _, c := range b.dirty {
		c.dirty = false
		if c != by {
			c.out.signal()
		}
	}
	b.dirty = b.dirty[:0]
	notes := b.notes
	b.notes = nil
	b.mu.Unlock()
	for _, line := range notes {
		b.log.Print(line)
	}
	return err
}

// note logs a line when the lock is free again: whoever reads the log may be slow.
func (b *broker) note(c *conn, format string, args ...any) {
	b.notes = append(b.notes, c.name+": "+fmt.Sprintf(format, args...))
}

// settle routes dead letters and delivers until nothing is left to do. It is a
// loop and not a recursion because a dead letter can cause the next one.
func (b *broker) settle() {
	for len(b.deaths) > 0 || len(b.runnable) > 0 {
		for len(b.deaths) > 0 {
			d := b.deaths[0]
			b.deaths = b.deaths[1:]
			b.bury(d)
		}
		b.deaths = nil
		for len(b.runnable) > 0 {
			q := b.runnable[len(b.runnable)-1]
			b.runnable = b.runnable[:len(b.runnable)-1]
			q.scheduled = false
			b.run(q)
		}
	}
}

// schedule makes settle look at the queue.
func (b *broker) schedule(q *queue) {
	if !q.scheduled && !q.deleted {
		q.scheduled = true
		b.runnable = append(b.runnable, q)
	}
}

// touch notes that a connection got frames.
func (b *broker) touch(c *conn) {
	if !c.dirty {
		c.dirty = true
		b.dirty = append(b.dirty, c)
	}
}

// now is the broker's clock; it starts at 1 since 0 means never.
func (b *broker) now() int64 { return int64(time.Since(b.started)) + 1 }

// randomName is a name as rabbit_guid makes them.
func randomName(prefix string) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(raw[:])
}

func (b *broker) lookupExchange(name string) (*exchange, error) {
	if x := b.exchanges[name]; x != nil {
		return x, nil
	}
	return nil, notFound("exchange", name)
}

// lookupQueue finds a queue that the connection may use.
func (b *broker) lookupQueue(name string, by *conn) (*queue, error) {
	q := b.queues[name]
	if q == nil {
		return nil, notFound("queue", name)
	}
	if q.owner != nil && q.owner != by {
		return nil, locked(q)
	}
	return q, nil
}

func locked(q *queue) error {
	return failure(codeResourceLocked, "cannot obtain exclusive access to locked %s. It could be originally "+
		"declared on another connection or the exclusive property value does not match that of the original declaration.",
		resource("queue", q.name))
}

// unbindAll removes the bindings that gone picks from every exchange.
func (b *broker) unbindAll(gone func(*binding) bool) {
	for _, x := range b.exchanges {
		if x.unbind(gone) {
			b.maybeDeleteExchange(x)
		}
	}
}

func (b *broker) maybeDeleteExchange(x *exchange) {
	if x.autoDelete && len(x.bindings) == 0 {
		delete(b.exchanges, x.name)
	}
}

// deleteQueue removes the queue and tells its consumers. Messages that clients
// still hold vanish with it: their acknowledgement is accepted.
func (b *broker) deleteQueue(q *queue) int {
	delete(b.queues, q.name)
	q.deleted = true
	if q.owner != nil {
		delete(q.owner.owned, q)
	}
	b.unbindAll(func(bd *binding) bool { return bd.q == q })
	for _, c := range q.consumers {
		delete(c.ch.consumers, c.tag)
		if c.ch.conn.cancelNotify {
			c.ch.sendCancel(c.tag)
		}
	}
	q.consumers, q.active = nil, nil
	return q.ready.clear()
}
