package embedded

import (
	"reflect"
	"strconv"
)

// kindOf names a value's type as RabbitMQ's error texts do.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "void"
	case bool:
		return "bool"
	case int8:
		return "byte"
	case uint8:
		return "unsignedbyte"
	case int16:
		return "short"
	case uint16:
		return "unsignedshort"
	case int32:
		return "signedint"
	case uint32:
		return "unsignedint"
	case int64:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case decimal:
		return "decimal"
	case string:
		return "longstr"
	case []byte:
		return "binary"
	case timestamp:
		return "timestamp"
	case table:
		return "table"
	default:
		return "array"
	}
}

// integer reads any integer type. Timestamps are not integers here, as on RabbitMQ.
func integer(v any) (int64, bool) {
	switch x := v.(type) {
	case int8:
		return int64(x), true
	case uint8:
		return int64(x), true
	case int16:
		return int64(x), true
	case uint16:
		return int64(x), true
	case int32:
		return int64(x), true
	case uint32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}

func float(v any) (float64, bool) {
	switch x := v.(type) {
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// equivalent is the comparison of a redeclaration: integers of every width are
// one class, floats another, all else must agree in type and value.
func equivalent(a, b any) bool {
	if x, ok := integer(a); ok {
		y, ok := integer(b)
		return ok && x == y
	}
	if x, ok := float(a); ok {
		y, ok := float(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

// sameHeader is the comparison of the headers exchange, which looks at values
// and not at types: 1 equals 1.0, a text equals the same octets.
func sameHeader(a, b any) bool {
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok { // exactly, beyond what a float can tell apart
			return x == y
		}
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	if x, ok := octets(a); ok {
		y, ok := octets(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	if n, ok := integer(v); ok {
		return float64(n), true
	}
	if t, ok := v.(timestamp); ok {
		return float64(t), true
	}
	return float(v)
}

func octets(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case []byte:
		return string(x), true
	}
	return "", false
}

// term writes a value as RabbitMQ's error texts do, for the types that queue
// arguments have.
func term(v any) string {
	if n, ok := integer(v); ok {
		return strconv.FormatInt(n, 10)
	}
	switch x := v.(type) {
	case string:
		return x
	case []byte:
		return string(x)
	case bool:
		return strconv.FormatBool(x)
	}
	return kindOf(v)
}
