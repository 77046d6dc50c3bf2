package embedded

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// brokerName and clusterName are how the name server lists the broker.
const (
	brokerName  = "mqlab-embedded"
	clusterName = "mqlab"
)

// broker is the state of both servers. Its lock guards everything below it.
type broker struct {
	addr     *net.TCPAddr
	requests map[int]request
	alarm    chan struct{} // the earliest time may have changed

	mu      sync.Mutex
	closed  bool
	conns   map[*conn]struct{}
	topics  map[string]*topic
	groups  map[string]*group
	log     map[int64]*message // every message by its place in the commit log
	logEnd  int64
	waiting []*pull
	delayed []*message // in the schedule topic and not yet passed on, by time
}

func newBroker(addr *net.TCPAddr) *broker {
	b := &broker{addr: addr, requests: requests(), alarm: make(chan struct{}, 1), conns: map[*conn]struct{}{},
		topics: map[string]*topic{}, groups: map[string]*group{}, log: map[int64]*message{}}
	b.topics[scheduleTopic] = newTopic(len(delays()), readWrite)
	for _, name := range []string{"TOOLS_CONSUMER", "CID_ONSAPI_PERMISSION", "FILTERSRV_CONSUMER"} {
		b.groups[name] = newGroup()
	}
	return b
}

// keepTime passes on what was delayed and ends the pulls that have waited long
// enough.
func (b *broker) keepTime(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.tick(time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-b.alarm:
		}
	}
}

// tick does what is due and returns how long nothing will be.
func (b *broker) tick(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.delayed) > 0 && !b.delayed[0].due.After(now) {
		m := b.delayed[0]
		b.delayed = b.delayed[1:]
		b.passOn(m)
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(p *pull) bool {
		if p.until.After(now) {
			return false
		}
		p.c.answer(p.q, b.found(p))
		return true
	})
	next := now.Add(time.Hour)
	if len(b.delayed) > 0 {
		next = b.delayed[0].due
	}
	for _, p := range b.waiting {
		if p.until.Before(next) {
			next = p.until
		}
	}
	return next.Sub(now)
}

// changed makes keepTime look at the times again.
func (b *broker) changed() {
	select {
	case b.alarm <- struct{}{}:
	default: // it will look anyway
	}
}

// leave forgets a connection: its memberships, and the pulls that wait on it.
func (b *broker) leave(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
	b.waiting = slices.DeleteFunc(b.waiting, func(p *pull) bool { return p.c == c })
	for name, g := range b.groups {
		if g.leave(func(m *member) bool { return m.c == c }) {
			g.notify(name)
		}
	}
}
