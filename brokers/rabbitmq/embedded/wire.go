package embedded

import (
	"encoding/binary"
	"errors"
)

// Errors of the decoder; decodeFailure turns them into the protocol's codes.
var (
	errTruncated = errors.New("arguments end too early")
	errLeftover  = errors.New("octets left after the last argument")
	errTable     = errors.New("malformed field table")
	errDepth     = errors.New("field table nested too deeply")
)

// decoder reads method arguments. The first failure sticks and every later
// read gives a zero value, so a caller checks finish once, before it acts.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) take(n uint64) []byte {
	if uint64(len(d.b)) < n {
		d.fail(errTruncated)
		return nil
	}
	x := d.b[:n:n]
	d.b = d.b[n:]
	return x
}

func (d *decoder) uint8() uint8 {
	if x := d.take(1); x != nil {
		return x[0]
	}
	return 0
}

func (d *decoder) uint16() uint16 {
	if x := d.take(2); x != nil {
		return binary.BigEndian.Uint16(x)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if x := d.take(4); x != nil {
		return binary.BigEndian.Uint32(x)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if x := d.take(8); x != nil {
		return binary.BigEndian.Uint64(x)
	}
	return 0
}

func (d *decoder) shortBytes() []byte { return d.take(uint64(d.uint8())) }
func (d *decoder) longBytes() []byte  { return d.take(uint64(d.uint32())) }
func (d *decoder) short() string      { return string(d.shortBytes()) }
func (d *decoder) long() string       { return string(d.longBytes()) }

// bits reads one octet of packed booleans.
func (d *decoder) bits() flags { return flags(d.uint8()) }

// finish reports the first failure, or that octets are left over.
func (d *decoder) finish() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errLeftover
	}
	return d.err
}

type flags uint8

func (f flags) has(i int) bool { return f&(1<<i) != 0 }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendShort cuts a string that does not fit: names come from short strings,
// so only error texts could be longer, and those are cut before.
func appendShort(b []byte, s string) []byte {
	if len(s) > 255 {
		s = s[:255]
	}
	return append(append(b, byte(len(s))), s...)
}

func appendLong(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
