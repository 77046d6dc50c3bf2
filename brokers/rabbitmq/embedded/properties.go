package embedded

import (
	"encoding/binary"
	"errors"
)

// Positions of the basic properties in the flag word, from the left.
const (
	propContentType = iota
	propContentEncoding
	propHeaders
	propDeliveryMode
	propPriority
	propCorrelationID
	propReplyTo
	propExpiration
	propMessageID
	propTimestamp
	propType
	propUserID
	propAppID
	propClusterID
	propCount
)

// propKinds has one letter a property: short string, Table, octet, Quad.
const propKinds = "ssTooss" + "ssQssss"

var errProperties = errors.New("malformed content header")

// properties of a message: the octets as they came, which is what consumers
// get, and the few fields that the broker itself looks at.
type properties struct {
	raw          []byte
	headers      table
	deliveryMode uint8 // 0 when absent
	expiration   string
	expires      bool // expiration is present, perhaps empty
	replyTo      string
	userID       string
}

// parseProperties copies raw, since the frame's buffer is used again.
func parseProperties(raw []byte) (properties, error) {
	p := properties{raw: append([]byte{}, raw...)}
	err := eachProperty(p.raw, func(i int, d *decoder, _ []byte) {
		switch i {
		case propHeaders:
			p.headers = d.table()
		case propDeliveryMode:
			p.deliveryMode = d.uint8()
		case propExpiration:
			p.expiration, p.expires = d.short(), true
		case propReplyTo:
			p.replyTo = d.short()
		case propUserID:
			p.userID = d.short()
		default:
			d.skip(propKinds[i])
		}
	})
	return p, err
}

// eachProperty calls visit for every property that is present, with the
// decoder at its value and the octets from there on; visit must read the value.
func eachProperty(raw []byte, visit func(i int, d *decoder, rest []byte)) error {
	d := &decoder{b: raw}
	present := d.uint16()
	if present&3 != 0 { // continuation and unused: no property has them
		return errProperties
	}
	for i := range propCount {
		if present&(1<<(15-i)) != 0 {
			visit(i, d, d.b)
		}
	}
	return d.finish()
}

func (d *decoder) skip(kind byte) {
	switch kind {
	case 's':
		d.shortBytes()
	case 'o':
		d.uint8()
	case 'Q':
		d.uint64()
	default:
		d.table()
	}
}

// rewrite returns p with other headers; expiration is taken out if asked.
func (p properties) rewrite(headers table, dropExpiration bool) properties {
	var present uint16
	out := make([]byte, 2, len(p.raw)+256)
	put := func(i int, value []byte) {
		present |= 1 << (15 - i)
		out = append(out, value...)
	}
	done := false
	putHeaders := func() {
		if !done && headers != nil {
			put(propHeaders, appendTable(nil, headers))
		}
		done = true
	}
	_ = eachProperty(p.raw, func(i int, d *decoder, rest []byte) { // parsed before, cannot fail
		if i >= propHeaders {
			putHeaders()
		}
		d.skip(propKinds[i])
		if i != propHeaders && (i != propExpiration || !dropExpiration) {
			put(i, rest[:len(rest)-len(d.b)])
		}
	})
	putHeaders()
	binary.BigEndian.PutUint16(out, present)
	p.raw, p.headers = out, headers
	if dropExpiration {
		p.expiration, p.expires = "", false
	}
	return p
}
