package embedded

import (
	"reflect"
	"slices"
	"strings"
)

type exchange struct {
	name       string
	kind       string // direct, fanout, topic, headers
	durable    bool
	autoDelete bool
	internal   bool
	bindings   []*binding
	byKey      map[string][]*binding // of a direct exchange
}

type binding struct {
	q     *queue
	key   string
	words []string // of the key, for a topic exchange
	args  table    // sorted by name
}

func newExchange(name, kind string) *exchange {
	return &exchange{name: name, kind: kind, durable: true, byKey: map[string][]*binding{}}
}

// predeclared are the exchanges that every vhost has.
func predeclared() map[string]*exchange {
	all := map[string]*exchange{}
	for _, kind := range []string{"direct", "fanout", "topic", "headers"} {
		all["amq."+kind] = newExchange("amq."+kind, kind)
	}
	all["amq.match"] = newExchange("amq.match", "headers")
	all[""] = newExchange("", "direct")
	return all
}

// bind adds a binding once.
func (x *exchange) bind(q *queue, key string, args table) {
	bd := &binding{q: q, key: key, words: words(key), args: sorted(args)}
	if slices.ContainsFunc(x.bindings, bd.same) {
		return
	}
	x.bindings = append(x.bindings, bd)
	x.byKey[key] = append(x.byKey[key], bd)
}

func sorted(t table) table {
	out := slices.Clone(t)
	slices.SortStableFunc(out, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return out
}

func (bd *binding) same(o *binding) bool {
	return bd.q == o.q && bd.key == o.key && len(bd.args) == len(o.args) &&
		(len(bd.args) == 0 || reflect.DeepEqual(bd.args, o.args))
}

// unbind removes the bindings that gone picks and reports whether there were any.
func (x *exchange) unbind(gone func(*binding) bool) bool {
	before := len(x.bindings)
	x.bindings = slices.DeleteFunc(x.bindings, gone)
	if len(x.bindings) == before {
		return false
	}
	for key, bds := range x.byKey {
		bds = slices.DeleteFunc(bds, gone)
		if len(bds) == 0 {
			delete(x.byKey, key)
		} else {
			x.byKey[key] = bds
		}
	}
	return true
}

// match calls found for every binding that the message fits.
func (x *exchange) match(c *content, key string, found func(*queue)) {
	switch x.kind {
	case "direct":
		for _, bd := range x.byKey[key] {
			found(bd.q)
		}
	case "fanout":
		for _, bd := range x.bindings {
			found(bd.q)
		}
	case "topic":
		key := words(key)
		for _, bd := range x.bindings {
			if topicMatch(bd.words, key) {
				found(bd.q)
			}
		}
	case "headers":
		for _, bd := range x.bindings {
			if headersMatch(bd.args, c.props.headers) {
				found(bd.q)
			}
		}
	}
}

// route lists the queues for a message, each once.
func (b *broker) route(x *exchange, c *content) []*queue {
	b.routed = b.routed[:0]
	found := func(q *queue) {
		if q != nil && !slices.Contains(b.routed, q) {
			b.routed = append(b.routed, q)
		}
	}
	b.routeKey(x, c, c.key, found)
	for _, key := range c.more {
		b.routeKey(x, c, key, found)
	}
	return b.routed
}

// routeKey: the default exchange is bound to every queue by the queue's name.
func (b *broker) routeKey(x *exchange, c *content, key string, found func(*queue)) {
	if x.name == "" {
		found(b.queues[key])
		return
	}
	x.match(c, key, found)
}
