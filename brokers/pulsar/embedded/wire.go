package embedded

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWire = errors.New("this is not a command of the protocol")

// fields is a decoded message: the values of each field in their order.
type fields struct {
	numbers map[protowire.Number][]uint64
	blobs   map[protowire.Number][][]byte
}

// decode reads numbers and byte strings and skips the other wire types, none of
// which the commands use. The byte strings lie in b.
func decode(b []byte) (fields, error) {
	f := fields{map[protowire.Number][]uint64{}, map[protowire.Number][][]byte{}}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return f, errWire
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			v, k := protowire.ConsumeVarint(b)
			f.numbers[num], n = append(f.numbers[num], v), k
		case protowire.BytesType:
			v, k := protowire.ConsumeBytes(b)
			f.blobs[num], n = append(f.blobs[num], v), k
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return f, errWire
		}
		b = b[n:]
	}
	return f, nil
}

// number is a field's last value, or what the protocol takes for a missing one.
func (f fields) number(n protowire.Number, missing uint64) uint64 {
	if v := f.numbers[n]; len(v) > 0 {
		return v[len(v)-1]
	}
	return missing
}

func (f fields) flag(n protowire.Number) bool { return f.number(n, 0) != 0 }

func (f fields) has(n protowire.Number) bool { return len(f.numbers[n]) > 0 || len(f.blobs[n]) > 0 }

func (f fields) blob(n protowire.Number) []byte {
	if v := f.blobs[n]; len(v) > 0 {
		return v[len(v)-1]
	}
	return nil
}

func (f fields) text(n protowire.Number) string { return string(f.blob(n)) }

// body is a message under construction.
type body []byte

func (b body) number(n protowire.Number, v uint64) body {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func (b body) blob(n protowire.Number, v []byte) body {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func (b body) text(n protowire.Number, v string) body { return b.blob(n, []byte(v)) }
