package embedded

import "math"

// json turns a table into what encoding/json can write.
func (t table) json() object {
	o := object{}
	for _, f := range t {
		o[f.name] = jsonValue(f.value)
	}
	return o
}

func jsonValue(v any) any {
	switch x := v.(type) {
	case table:
		return x.json()
	case array:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = jsonValue(e)
		}
		return out
	case []byte:
		return string(x)
	case timestamp:
		return uint64(x)
	case decimal:
		return float64(x.value) / math.Pow10(int(x.scale))
	case float32:
		return finite(float64(x))
	case float64:
		return finite(x)
	}
	return v
}

// finite: JSON has no word for the others.
func finite(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}
