package designs

import "context"

// MemoryDedupe remembers keys in a map. It skips a second copy as long as the
// process lives; a crash forgets the map, and the redelivery writes a second
// row.
type MemoryDedupe struct {
	sequential
	seen map[string]bool
}

// NewMemoryDedupe begins with an empty map.
func NewMemoryDedupe() *MemoryDedupe { return &MemoryDedupe{seen: map[string]bool{}} }

// Handle looks into the map, writes, remembers, then acknowledges.
func (m *MemoryDedupe) Handle(ctx context.Context, w *Work) error {
	if m.seen[w.Key] {
		w.Log("duplicate_skipped")
		return w.Ack(ctx)
	}
	if err := w.insert(ctx); err != nil {
		return err
	}
	m.seen[w.Key] = true
	return w.Ack(ctx)
}
