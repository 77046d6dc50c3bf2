package embedded

import (
	"bytes"
	"testing"
)

// FuzzFrame: what comes from outside must never end the server, and a frame that
// was read can be written and read again.
func FuzzFrame(f *testing.F) {
	for _, c := range []*command{{Code: 10, Fields: map[string]string{"topic": "t"}, body: []byte("x")}, good("offset", 1), bad(3, "no")} {
		b, err := appendFrame(nil, c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0, 0, 0, 4, 1, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, '{', '}'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := readFrame(bytes.NewReader(raw))
		if err != nil {
			return
		}
		b, err := appendFrame(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readFrame(bytes.NewReader(b))
		if err != nil || again.Code != c.Code || !bytes.Equal(again.body, c.body) {
			t.Errorf("%v, %v: %v", c, again, err)
		}
	})
}

// FuzzMessages reads batches and properties.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("a\x01b\x02c\x01d"))
	f.Add([]byte{0, 0, 0, 23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 'x', 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		messages, err := parseBatch(raw)
		if err == nil && len(messages) == 0 {
			t.Error("a batch without messages is no error")
		}
		ps := parseProperties(string(raw))
		if got := parseProperties(ps.encode()); got.encode() != ps.encode() {
			t.Errorf("%q and %q", ps.encode(), got.encode())
		}
	})
}
