package embedded

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

func (ch *channel) queueDeclare(d *decoder) error {
	d.uint16()
	name, bits, args := plainName(d.short()), d.bits(), d.table()
	if err := d.finish(); err != nil {
		return err
	}
	b := ch.conn.b
	q, err := b.lookupQueue(name, ch.conn)
	if passive := bits.has(0); !passive {
		exclusive := bits.has(2)
		want := &queue{name: name, durable: bits.has(1) && !exclusive, autoDelete: bits.has(3), args: args}
		if exclusive {
			want.owner = ch.conn
		}
		q, err = b.declareQueue(want)
	}
	if err != nil {
		return err
	}
	b.dropExpired(q)
	ch.lastQueue = q.name
	ch.reply(bits.has(4), queueDeclareOk, func(out []byte) []byte {
		out = appendShort(out, q.name)
		out = binary.BigEndian.AppendUint32(out, uint32(q.ready.len()))
		return binary.BigEndian.AppendUint32(out, uint32(len(q.consumers)))
	})
	return nil
}

// declareQueue returns the queue of that name if it is equivalent, or creates it.
func (b *broker) declareQueue(want *queue) (*queue, error) {
	if want.name == "" {
		want.name = randomName("amq.gen-")
	} else if err := checkName("queue", want.name); err != nil {
		return nil, err
	}
	if q := b.queues[want.name]; q != nil {
		return q, q.sameAs(want)
	}
	if err := refusedQueue(want); err != nil {
		return nil, err
	}
	if err := checkQueueArguments(want); err != nil {
		return nil, err
	}
	want.limits = limitsOf(want.args)
	b.queues[want.name] = want
	if want.owner != nil {
		want.owner.owned[want] = struct{}{}
	}
	return want, nil
}

// sameAs is the check of a redeclaration; the owner must be the same, also none.
func (q *queue) sameAs(want *queue) error {
	if q.owner != want.owner {
		return locked(q)
	}
	r := resource("queue", q.name)
	err := sameFlags(r, []flagPair{
		{"durable", q.durable, want.durable},
		{"auto_delete", q.autoDelete, want.autoDelete},
	})
	if err != nil {
		return err
	}
	for _, name := range classicArguments() {
		if err := sameArgument(r, name, q.args, want.args); err != nil {
			return err
		}
	}
	return nil
}

type flagPair struct {
	name      string
	have, got bool
}

func sameFlags(r string, pairs []flagPair) error {
	for _, f := range pairs {
		if f.have != f.got {
			return inequivalent(f.name, r, quoted(strconv.FormatBool(f.got)), quoted(strconv.FormatBool(f.have)))
		}
	}
	return nil
}

func sameArgument(r, name string, have, got table) error {
	was, hadIt := have.get(name)
	is, hasIt := got.get(name)
	switch {
	case !hadIt && !hasIt || hadIt && hasIt && equivalent(was, is):
		return nil
	case hadIt && hasIt:
		return inequivalent(name, r, quoted(term(is)), quoted(term(was)))
	case name == "x-queue-type" && (was == "classic" || is == "classic"): // said or not, it is one
		return nil
	case hasIt:
		return inequivalent(name, r, described(is), "none")
	default:
		return inequivalent(name, r, "none", described(was))
	}
}

func inequivalent(name, r, received, current string) error {
	return preconditionFailed("inequivalent arg '%s' for %s: received %s but current is %s", name, r, received, current)
}

func quoted(s string) string { return "'" + s + "'" }

func described(v any) string {
	return fmt.Sprintf("the value %s of type '%s'", quoted(term(v)), kindOf(v))
}
