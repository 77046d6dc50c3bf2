package embedded

import (
	"slices"
	"strings"
)

// The properties that the broker itself reads or writes, of MessageConst.
const (
	propDelay      = "DELAY"
	propRealTopic  = "REAL_TOPIC"
	propRealQueue  = "REAL_QID"
	propRetryTopic = "RETRY_TOPIC"
	propOriginID   = "ORIGIN_MESSAGE_ID"
	propUnique     = "UNIQ_KEY"
	propHalf       = "TRAN_MSG"
)

const (
	nameEnd     = "\x01"
	propertyEnd = "\x02"
)

// property is one name with its value.
type property struct{ name, value string }

// properties keep the order of the wire.
type properties []property

// parseProperties reads name \x01 value \x02 and so on; what has another form is
// left out, as the real broker does.
func parseProperties(s string) properties {
	var ps properties
	for _, item := range strings.Split(s, propertyEnd) {
		if name, value, ok := strings.Cut(item, nameEnd); ok && name != "" && !strings.Contains(value, nameEnd) {
			ps = append(ps, property{name, value})
		}
	}
	return ps
}

func (ps properties) encode() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.name + nameEnd + p.value + propertyEnd)
	}
	return b.String()
}

// get is a property's value, "" if it is missing.
func (ps properties) get(name string) string {
	for _, p := range ps {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// with returns a copy in which name has the value; the receiver is unchanged,
// since messages share it.
func (ps properties) with(name, value string) properties {
	return append(ps.without(name), property{name, value})
}

// without returns a copy that lacks the property.
func (ps properties) without(name string) properties {
	return slices.DeleteFunc(slices.Clone(ps), func(p property) bool { return p.name == name })
}
