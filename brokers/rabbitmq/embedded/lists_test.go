package embedded

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReadyList compares it with a sorted slice under random pushes, pops and
// returns.
func TestReadyList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r readyList
	var model []uint64
	var out []*message
	seq := uint64(0)
	for range 20_000 {
		switch n := rnd.IntN(10); {
		case n < 5:
			seq++
			r.push(&message{seq: seq, content: &content{body: []byte{1}}})
			model = append(model, seq)
		case n < 8 && len(model) > 0:
			m := r.pop()
			if m.seq != model[0] {
				t.Fatalf("popped %d, want %d", m.seq, model[0])
			}
			model = model[1:]
			out = append(out, m)
		case len(out) > 0:
			k := 1 + rnd.IntN(min(len(out), 4))
			rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			back := slices.Clone(out[:k])
			out = out[k:]
			slices.SortFunc(back, func(a, b *message) int { return bySeq(a, b.seq) })
			r.putBack(back)
			for _, m := range back {
				model = append(model, m.seq)
			}
			slices.Sort(model)
		}
		if r.len() != len(model) || r.bytes != int64(len(model)) {
			t.Fatalf("%d messages of %d octets, want %d", r.len(), r.bytes, len(model))
		}
	}
}

// TestLedger compares it with a map, tags with gaps.
func TestLedger(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var l ledger
	model := map[uint64]bool{}
	tag := uint64(0)
	for range 20_000 {
		switch n := rnd.IntN(10); {
		case n < 6:
			tag += 1 + rnd.Uint64N(2)
			l.add(delivery{tag: tag, m: &message{}})
			model[tag] = true
		case n < 9:
			pick := tag - min(tag, rnd.Uint64N(50))
			d, ok := l.take(pick)
			if ok != model[pick] || ok && d.tag != pick {
				t.Fatalf("take %d: %v", pick, ok)
			}
			delete(model, pick)
		default:
			pick := tag - min(tag, rnd.Uint64N(50))
			ds, ok := l.takeThrough(pick)
			if ok != model[pick] {
				t.Fatalf("takeThrough %d: %v", pick, ok)
			}
			for _, d := range ds {
				if !model[d.tag] || d.tag > pick {
					t.Fatalf("takeThrough %d gave %d", pick, d.tag)
				}
				delete(model, d.tag)
			}
		}
		if l.live != len(model) {
			t.Fatalf("%d live, want %d", l.live, len(model))
		}
	}
	if all := l.takeAll(); len(all) != len(model) || !slices.IsSortedFunc(all, func(a, b delivery) int { return int(a.tag) - int(b.tag) }) {
		t.Errorf("%d left, want %d", len(all), len(model))
	}
}

// TestDeepQueue: settling must not cost more because a queue is deep.
func TestDeepQueue(t *testing.T) {
	var r readyList
	for i := range 200_000 {
		r.push(&message{seq: uint64(i), content: &content{}})
	}
	for range 200_000 { // a nack a message: quadratic if each moved the queue
		r.putBack([]*message{r.pop()})
	}
	if r.len() != 200_000 || r.first().seq != 0 {
		t.Error(r.len(), r.first().seq)
	}
}
