package embedded

import (
	"encoding/binary"
	"strings"
)

// plainName takes line ends out of a name, as RabbitMQ does.
func plainName(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(s)
}

func checkName(kind, name string) error {
	if strings.HasPrefix(name, "amq.") {
		return accessRefused("%s name '%s' contains reserved prefix 'amq.*'", kind, name)
	}
	return nil
}

func checkNotDefault(name string) error {
	if name == "" {
		return accessRefused("operation not permitted on the default exchange")
	}
	return nil
}

func (ch *channel) exchangeDeclare(d *decoder) error {
	d.uint16()
	name, kind, bits, args := plainName(d.short()), d.short(), d.bits(), d.table()
	if err := d.finish(); err != nil {
		return err
	}
	var err error
	if passive := bits.has(0); passive {
		if err = checkNotDefault(name); err == nil {
			_, err = ch.conn.b.lookupExchange(name)
		}
	} else {
		want := &exchange{name: name, kind: kind, durable: bits.has(1), autoDelete: bits.has(2), internal: bits.has(3),
			byKey: map[string][]*binding{}}
		err = ch.conn.b.declareExchange(want, args)
	}
	if err != nil {
		return err
	}
	ch.reply(bits.has(4), exchangeDeclareOk, nil)
	return nil
}

func (b *broker) declareExchange(want *exchange, args table) error {
	switch want.kind {
	case "direct", "fanout", "topic", "headers":
	default:
		return failure(codeCommandInvalid, "invalid exchange type '%s'", want.kind)
	}
	if err := checkNotDefault(want.name); err != nil {
		return err
	}
	if _, ok := args.get("alternate-exchange"); ok {
		return notImplemented("alternate-exchange")
	}
	if x := b.exchanges[want.name]; x != nil {
		return x.sameAs(want)
	}
	if err := checkName("exchange", want.name); err != nil {
		return err
	}
	b.exchanges[want.name] = want
	return nil
}

func (x *exchange) sameAs(want *exchange) error {
	r := resource("exchange", x.name)
	if x.kind != want.kind {
		return inequivalent("type", r, quoted(want.kind), quoted(x.kind))
	}
	return sameFlags(r, []flagPair{
		{"durable", x.durable, want.durable},
		{"auto_delete", x.autoDelete, want.autoDelete},
		{"internal", x.internal, want.internal},
	})
}

func (ch *channel) exchangeDelete(d *decoder) error {
	d.uint16()
	name, bits := plainName(d.short()), d.bits()
	if err := d.finish(); err != nil {
		return err
	}
	if err := checkNotDefault(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, "amq.") {
		return accessRefused("deletion of system %s not allowed", resource("exchange", name))
	}
	x := ch.conn.b.exchanges[name]
	if x != nil && bits.has(0) && len(x.bindings) > 0 {
		return preconditionFailed("%s in use", resource("exchange", name))
	}
	delete(ch.conn.b.exchanges, name)
	ch.reply(bits.has(1), exchangeDeleteOk, nil)
	return nil
}

// bindArgs reads what queue.bind and queue.unbind share. An empty queue name
// with an empty key means the last declared queue for both.
func (ch *channel) bindArgs(d *decoder, hasNoWait bool) (queue, exchange, key string, noWait bool, args table, err error) {
	d.uint16()
	queue, exchange, key = d.short(), plainName(d.short()), d.short()
	if hasNoWait {
		noWait = d.bits().has(0)
	}
	args = d.table()
	if err = d.finish(); err != nil {
		return
	}
	short := queue == "" && key == ""
	if queue, err = ch.queueName(queue); err != nil {
		return
	}
	if short {
		key = queue
	}
	return plainName(queue), exchange, key, noWait, args, checkNotDefault(exchange)
}

func (ch *channel) queueBind(d *decoder) error {
	name, exchange, key, noWait, args, err := ch.bindArgs(d, true)
	if err != nil {
		return err
	}
	x, err := ch.conn.b.lookupExchange(exchange)
	if err != nil {
		return err
	}
	q := ch.conn.b.queues[name]
	if q == nil {
		return notFound("queue", name)
	}
	if x.kind == "headers" {
		if err := checkMatchMode(args); err != nil {
			return err
		}
	}
	if _, err := ch.conn.b.lookupQueue(name, ch.conn); err != nil {
		return err
	}
	x.bind(q, key, args)
	ch.reply(noWait, queueBindOk, nil)
	return nil
}

// queueUnbind: since 3.2 RabbitMQ takes it as done when something is missing.
func (ch *channel) queueUnbind(d *decoder) error {
	name, exchange, key, _, args, err := ch.bindArgs(d, false)
	if err != nil {
		return err
	}
	b := ch.conn.b
	x, q := b.exchanges[exchange], b.queues[name]
	if x != nil && q != nil {
		if _, err := b.lookupQueue(name, ch.conn); err != nil {
			return err
		}
		if x.unbind((&binding{q: q, key: key, args: sorted(args)}).same) {
			b.maybeDeleteExchange(x)
		}
	}
	ch.send(queueUnbindOk, nil)
	return nil
}

func (ch *channel) queuePurge(d *decoder) error {
	d.uint16()
	name, noWait := d.short(), d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	q, err := ch.queueFor(name)
	if err != nil {
		return err
	}
	ch.conn.b.dropExpired(q)
	n := q.purge()
	ch.reply(noWait, queuePurgeOk, countArg(n))
	return nil
}

func countArg(n int) func([]byte) []byte {
	return func(out []byte) []byte { return binary.BigEndian.AppendUint32(out, uint32(n)) }
}

// queueDelete of a queue that is not there is done already.
func (ch *channel) queueDelete(d *decoder) error {
	d.uint16()
	name, bits := plainName(d.short()), d.bits()
	if err := d.finish(); err != nil {
		return err
	}
	name, err := ch.queueName(name)
	if err != nil {
		return err
	}
	n := 0
	if q := ch.conn.b.queues[name]; q != nil {
		if _, err := ch.conn.b.lookupQueue(name, ch.conn); err != nil {
			return err
		}
		ch.conn.b.dropExpired(q)
		if err := q.deletable(bits.has(0), bits.has(1)); err != nil {
			return err
		}
		n = ch.conn.b.deleteQueue(q)
	}
	ch.reply(bits.has(2), queueDeleteOk, countArg(n))
	return nil
}

func (q *queue) deletable(ifUnused, ifEmpty bool) error {
	switch {
	case ifEmpty && q.ready.len() > 0:
		return preconditionFailed("%s not empty", resource("queue", q.name))
	case ifUnused && len(q.consumers) > 0:
		return preconditionFailed("%s in use", resource("queue", q.name))
	}
	return nil
}
