package embedded

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample has every type of field.
func sample() table {
	return table{
		{"bool", true}, {"int8", int8(-1)}, {"uint8", uint8(255)}, {"int16", int16(-2)}, {"uint16", uint16(65535)},
		{"int32", int32(-3)}, {"uint32", uint32(math.MaxUint32)}, {"int64", int64(math.MinInt64)},
		{"float32", float32(0.5)}, {"float64", 1.25}, {"decimal", decimal{2, 12345}}, {"string", "text"}, {"bytes", []byte{0, 255}},
		{"time", timestamp(1_700_000_000)}, {"nil", nil}, {"table", table{{"k", table{{"deep", array{"x", int32(1)}}}}}},
		{"array", array{array{}, table{}, "y"}}, {"", ""},
	}
}

func TestTableRoundTrip(t *testing.T) {
	raw := appendTable(nil, sample())
	d := &decoder{b: raw}
	got := d.table()
	if err := d.finish(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got, cmp.AllowUnexported(field{}, decimal{})); diff != "" {
		t.Error(diff)
	}
}

func TestTruncatedTable(t *testing.T) {
	raw := appendTable(nil, sample())
	for n := range len(raw) {
		d := &decoder{b: raw[:n]}
		d.table()
		if d.finish() == nil {
			t.Errorf("%d of %d octets were taken for a table", n, len(raw))
		}
	}
}

func TestTableDepth(t *testing.T) {
	nested := table{}
	for range maxDepth {
		nested = table{{"t", nested}}
	}
	d := &decoder{b: appendTable(nil, nested)}
	if d.table(); d.finish() != nil {
		t.Error(d.err)
	}
	d = &decoder{b: appendTable(nil, table{{"t", nested}})}
	if d.table(); !errors.Is(d.finish(), errDepth) {
		t.Error("one level more:", d.err)
	}
}

func TestDecoderKeepsFirstFailure(t *testing.T) {
	d := &decoder{b: []byte{5, 'a'}}
	if s := d.short(); s != "" {
		t.Errorf("%q", s)
	}
	if n := d.uint64(); n != 0 || !errors.Is(d.finish(), errTruncated) {
		t.Error(n, d.err)
	}
	d = &decoder{b: []byte{1, 2}}
	if d.uint8(); !errors.Is(d.finish(), errLeftover) {
		t.Error(d.err)
	}
}

// rawProperties has every property.
func rawProperties() []byte {
	out := []byte{0xFF, 0xFC}
	out = appendTable(appendShort(appendShort(out, "type"), "enc"), sample())
	out = append(out, 2, 9)
	for _, s := range []string{"corr", "reply", "500", "id"} {
		out = appendShort(out, s)
	}
	out = appendTag(out, 1_700_000_000)
	for _, s := range []string{"t", "guest", "app", "cluster"} {
		out = appendShort(out, s)
	}
	return out
}

func TestProperties(t *testing.T) {
	raw := rawProperties()
	p, err := parseProperties(raw)
	if err != nil {
		t.Fatal(err)
	}
	if p.deliveryMode != 2 || p.expiration != "500" || !p.expires || p.replyTo != "reply" || p.userID != "guest" || len(p.headers) != len(sample()) {
		t.Errorf("%+v", p)
	}
	if same := p.rewrite(p.headers, false); !bytes.Equal(same.raw, raw) {
		t.Errorf("rewritten\n%q, was\n%q", same.raw, raw)
	}
	without := p.rewrite(table{{"only", "one"}}, true)
	again, err := parseProperties(without.raw)
	if err != nil || again.expires || len(again.headers) != 1 || again.userID != "guest" {
		t.Errorf("%+v %v", again, err)
	}
	for n := range len(raw) {
		if _, err := parseProperties(raw[:n]); err == nil {
			t.Errorf("%d of %d octets were taken for properties", n, len(raw))
		}
	}
}

func TestHeadersAreAdded(t *testing.T) {
	for _, raw := range [][]byte{{0, 0}, {0x80, 0, 1, 'x'}, {0, 0x80, 1, 'i'}} {
		p, err := parseProperties(raw)
		if err != nil {
			t.Fatal(err)
		}
		q, err := parseProperties(p.rewrite(table{{"k", "v"}}, true).raw)
		if v, _ := q.headers.text("k"); err != nil || v != "v" || len(q.raw) != len(raw)+4+2+5+1 {
			t.Errorf("%q: %+v %v", raw, q, err)
		}
	}
}

func TestErrorTextIsCut(t *testing.T) {
	e := failure(codeNotFound, "%s", strings.Repeat("x", 300))
	if len(e.text) != 255 || !strings.HasSuffix(e.text, "...") {
		t.Errorf("%d %s", len(e.text), e.text)
	}
}

// FuzzTable: what can be read is written the same, and read again.
func FuzzTable(f *testing.F) {
	f.Add(appendTable(nil, sample()))
	f.Add(appendTable(nil, nil))
	f.Add([]byte{0, 0, 0, 3, 1, 'k', 'F'})
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF})
	f.Add([]byte{0, 0, 0, 7, 1, 'a', 'A', 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := &decoder{b: raw}
		first := d.table()
		if d.err != nil {
			return
		}
		once := appendTable(nil, first)
		d = &decoder{b: once}
		second := d.table()
		if err := d.finish(); err != nil {
			t.Fatal(err)
		}
		if twice := appendTable(nil, second); !bytes.Equal(once, twice) {
			t.Errorf("%q became %q", once, twice)
		}
		second.json()
		headersMatch(first, second)
		withDeath(first, table{{"queue", "q"}, {"reason", "expired"}, {"exchange", "x"}})
		isCycle("q", first)
	})
}
