package embedded

import (
	"strings"
	"sync"
)

// namespace is the only one.
const namespace = "public/default"

// broker is everything that the server holds, under one lock.
type broker struct {
	url string // what a lookup answers

	mu      sync.Mutex
	conns   map[*conn]struct{}
	topics  map[string]*topic // by their name without the namespace
	ledgers uint64
	names   uint64 // producers that got a name
	closed  bool
}

func newBroker(addr string) *broker {
	return &broker{url: "pulsar://" + addr, conns: map[*conn]struct{}{}, topics: map[string]*topic{}}
}

// topic finds a topic by its full name.
func (b *broker) topic(full string) (*topic, *refusal) {
	name, ok := strings.CutPrefix(full, "persistent://"+namespace+"/")
	if !ok {
		return nil, refuse(codeInvalidName, "topics lie in persistent://%s here", namespace)
	}
	t := b.topics[name]
	if t == nil {
		return nil, refuse(codeTopicNotFound, "Topic %s not found", full)
	}
	return t, nil
}

// create makes a topic; false says that it is there already.
func (b *broker) create(name string) bool {
	if b.topics[name] != nil {
		return false
	}
	b.ledgers++
	b.topics[name] = &topic{name: name, ledger: b.ledgers, producers: map[*producer]struct{}{}, subs: map[string]*subscription{}}
	return true
}

// remove deletes a topic with everybody on it, who is told.
func (b *broker) remove(t *topic) {
	delete(b.topics, t.name)
	for p := range t.producers {
		delete(p.c.producers, p.id)
		p.c.out.add(cmdCloseProducer, body(nil).number(1, p.id).number(2, ^uint64(0)), nil)
	}
	for _, s := range t.subs {
		for _, co := range s.consumers {
			delete(co.c.consumers, co.id)
			co.c.out.add(cmdCloseConsumer, body(nil).number(1, co.id).number(2, ^uint64(0)), nil)
		}
	}
}
