package embedded

import (
	"reflect"
	"slices"
	"time"
)

// death is a message that left a queue which dead letters.
type death struct {
	m      *message
	queue  string
	dlx    string
	key    string
	cutKey bool // key replaces the message's own keys
	reason string
}

// die drops a message, as a dead letter if the queue says so.
func (b *broker) die(q *queue, m *message, reason string) {
	if q.deadLetter {
		b.deaths = append(b.deaths, death{m: m, queue: q.name, dlx: q.dlx, key: q.dlk, cutKey: !q.keepKey, reason: reason})
	}
}

// bury publishes a dead letter; without its exchange it is gone.
func (b *broker) bury(d death) {
	x := b.exchanges[d.dlx]
	if x == nil {
		return
	}
	c := d.letter()
	for _, q := range b.route(x, c) {
		if d.reason != "rejected" && isCycle(q.name, c.props.headers) {
			continue
		}
		b.enqueue(q, c, -1) // its own expiration was taken away
	}
}

// letter is the new message, with the death written into its headers.
func (d death) letter() *content {
	old := d.m.content
	c := &content{exchange: d.dlx, key: old.key, more: old.more, body: old.body}
	info := table{
		{"reason", d.reason},
		{"queue", d.queue},
		{"time", timestamp(time.Now().Unix())},
		{"exchange", old.exchange},
		{"routing-keys", deathKeys(old)},
	}
	if old.props.expires {
		info = append(info, field{"original-expiration", old.props.expiration})
	}
	headers := withDeath(old.props.headers, info)
	if d.cutKey {
		c.key, c.more = d.key, nil
		headers = headers.without("CC")
	}
	c.props = old.props.rewrite(headers, true)
	return c
}

// deathKeys are the routing key and the CC keys; BCC ones stay secret.
func deathKeys(c *content) array {
	keys := array{c.key}
	if cc, ok := c.props.headers.get("CC"); ok {
		for _, k := range asArray(cc) {
			if s, ok := k.(string); ok {
				keys = append(keys, s)
			}
		}
	}
	return keys
}

func asArray(v any) array {
	a, _ := v.(array)
	return a
}

// withDeath does what rabbit_dead_letter:update_x_death_header does: one entry
// a queue and reason, the newest first, of which only the count rises.
func withDeath(headers, info table) table {
	v, known := headers.get("x-death")
	if !known {
		for _, name := range []string{"reason", "queue", "exchange"} {
			value, _ := info.get(name)
			headers = headers.with("x-first-death-"+name, value)
		}
		return headers.with("x-death", array{counted(info, 1)})
	}
	deaths, ok := v.(array)
	if !ok { // a client has turned it into something else: start anew
		return headers.with("x-death", array{counted(info, 1)})
	}
	entry := counted(info, 1)
	rest := array{}
	for _, e := range grouped(deaths) {
		if t, ok := e.(table); ok && sameDeath(t, info) {
			n, _ := t.get("count")
			count, _ := integer(n)
			entry = t.with("count", count+1)
		} else {
			rest = append(rest, e)
		}
	}
	return headers.with("x-death", append(array{entry}, rest...))
}

func counted(info table, n int64) table {
	return append(table{{"count", n}}, info...)
}

func sameDeath(a, b table) bool {
	for _, name := range []string{"queue", "reason"} {
		x, _ := a.get(name)
		y, _ := b.get(name)
		if !reflect.DeepEqual(x, y) { // a client may have put a table there
			return false
		}
	}
	return true
}

// grouped keeps the first entry of each queue and reason. RabbitMQ turns the
// order round while it does so when there is more than one; so do we.
func grouped(deaths array) array {
	if len(deaths) < 2 {
		return deaths
	}
	var out array
	for _, e := range deaths {
		t, ok := e.(table)
		if !ok || slices.ContainsFunc(out, func(o any) bool { return sameDeath(o.(table), t) }) {
			continue
		}
		if _, has := t.get("count"); !has {
			t = counted(t, int64(countDeaths(deaths, t)))
		}
		out = append(out, t)
	}
	slices.Reverse(out)
	return out
}

func countDeaths(deaths array, like table) (n int) {
	for _, e := range deaths {
		if t, ok := e.(table); ok && sameDeath(t, like) {
			n++
		}
	}
	return n
}

// isCycle says that the message was in the queue before and came round without
// any client rejecting it: it would go round for ever.
func isCycle(queue string, headers table) bool {
	v, _ := headers.get("x-death")
	for _, e := range asArray(v) {
		t, ok := e.(table)
		if !ok {
			return false // only a client writes such things
		}
		if reason, _ := t.text("reason"); reason == "rejected" {
			return false
		}
		if name, _ := t.text("queue"); name == queue {
			return true
		}
	}
	return false
}
