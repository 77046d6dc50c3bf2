package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// maxDepth bounds the nesting of tables and arrays. RabbitMQ has no such
// bound, but no client needs more and recursion must end somewhere.
const maxDepth = 32

// table is a field table. It keeps the order and the types of the wire, so
// that what is passed on is octet for octet what came in.
type table []field

type field struct {
	name  string
	value any
}

// The values of a field are Go's own types where one fits, and these.
type (
	timestamp uint64
	decimal   struct {
		scale uint8
		value uint32
	}
	array []any
)

// get returns the first field of that name.
func (t table) get(name string) (any, bool) {
	for _, f := range t {
		if f.name == name {
			return f.value, true
		}
	}
	return nil, false
}

func (t table) text(name string) (string, bool) {
	v, _ := t.get(name)
	s, ok := v.(string)
	return s, ok
}

func (t table) flag(name string) bool {
	v, _ := t.get(name)
	b, _ := v.(bool)
	return b
}

// with returns a copy in which name has the value; the receiver is unchanged,
// since a message's headers are shared by all queues that hold it.
func (t table) with(name string, value any) table {
	out := make(table, 0, len(t)+1)
	found := false
	for _, f := range t {
		if f.name == name {
			f.value, found = value, true
		}
		out = append(out, f)
	}
	if !found {
		out = append(out, field{name, value})
	}
	return out
}

// without returns a copy that lacks the field.
func (t table) without(name string) table {
	out := make(table, 0, len(t))
	for _, f := range t {
		if f.name != name {
			out = append(out, f)
		}
	}
	return out
}

func (d *decoder) table() table { return d.tableAt(0) }

func (d *decoder) tableAt(depth int) table {
	if depth > maxDepth {
		d.fail(errDepth)
		return nil
	}
	sub := decoder{b: d.longBytes()}
	t := table{}
	for len(sub.b) > 0 {
		name := sub.short()
		t = append(t, field{name, sub.valueAt(depth)})
	}
	d.inherit(&sub)
	return t
}

func (d *decoder) arrayAt(depth int) array {
	if depth > maxDepth {
		d.fail(errDepth)
		return nil
	}
	sub := decoder{b: d.longBytes()}
	a := array{}
	for len(sub.b) > 0 {
		a = append(a, sub.valueAt(depth))
	}
	d.inherit(&sub)
	return a
}

// inherit takes over the failure inside a table: it is the table that is bad,
// whatever was missing in it.
func (d *decoder) inherit(sub *decoder) {
	switch {
	case sub.err == nil:
	case errors.Is(sub.err, errDepth):
		d.fail(errDepth)
	default:
		d.fail(errTable)
	}
}

func (d *decoder) valueAt(depth int) any {
	switch kind := d.uint8(); kind {
	case 't':
		return d.uint8() != 0
	case 'b':
		return int8(d.uint8())
	case 'B':
		return d.uint8()
	case 's':
		return int16(d.uint16())
	case 'u':
		return d.uint16()
	case 'I':
		return int32(d.uint32())
	case 'i':
		return d.uint32()
	case 'l', 'L': // RabbitMQ reads both as signed
		return int64(d.uint64())
	case 'f':
		return math.Float32frombits(d.uint32())
	case 'd':
		return math.Float64frombits(d.uint64())
	case 'D':
		return decimal{d.uint8(), d.uint32()}
	case 'S':
		return d.long()
	case 'x':
		return append([]byte{}, d.longBytes()...)
	case 'T':
		return timestamp(d.uint64())
	case 'V':
		return nil
	case 'F':
		return d.tableAt(depth + 1)
	case 'A':
		return d.arrayAt(depth + 1)
	default:
		d.fail(errTable)
		return nil
	}
}

func appendTable(b []byte, t table) []byte {
	b, at := openLength(b)
	for _, f := range t {
		b = appendValue(appendShort(b, f.name), f.value)
	}
	return closeLength(b, at)
}

// openLength leaves room for a length that closeLength fills in.
func openLength(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func closeLength(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func appendValue(b []byte, v any) []byte {
	be := binary.BigEndian
	switch x := v.(type) {
	case nil:
		return append(b, 'V')
	case bool:
		return appendBool(append(b, 't'), x)
	case int8:
		return append(b, 'b', byte(x))
	case uint8:
		return append(b, 'B', x)
	case int16:
		return be.AppendUint16(append(b, 's'), uint16(x))
	case uint16:
		return be.AppendUint16(append(b, 'u'), x)
	case int32:
		return be.AppendUint32(append(b, 'I'), uint32(x))
	case uint32:
		return be.AppendUint32(append(b, 'i'), x)
	case int64:
		return be.AppendUint64(append(b, 'l'), uint64(x))
	case float32:
		return be.AppendUint32(append(b, 'f'), math.Float32bits(x))
	case float64:
		return be.AppendUint64(append(b, 'd'), math.Float64bits(x))
	case decimal:
		return be.AppendUint32(append(b, 'D', x.scale), x.value)
	case string:
		return appendLong(append(b, 'S'), x)
	case []byte:
		return appendLong(append(b, 'x'), string(x))
	case timestamp:
		return be.AppendUint64(append(b, 'T'), uint64(x))
	case table:
		return appendTable(append(b, 'F'), x)
	case array:
		return appendArray(b, x)
	}
	panic(fmt.Sprintf("embedded: no field encoding for %T", v)) // only our own tables could do that
}

func appendArray(b []byte, a array) []byte {
	b, at := openLength(append(b, 'A'))
	for _, v := range a {
		b = appendValue(b, v)
	}
	return closeLength(b, at)
}
