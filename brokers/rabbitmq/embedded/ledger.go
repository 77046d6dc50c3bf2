package embedded

import "slices"

// delivery is a message that a client has and has not settled.
type delivery struct {
	tag uint64
	q   *queue
	m   *message
	c   *consumer // nil after basic.get
}

// ledger is the unsettled deliveries of a channel in order of their tags.
type ledger struct {
	items []delivery // a settled one has no message until it is swept out
	head  int        // items before it are settled
	live  int
}

// add takes deliveries with rising tags.
func (l *ledger) add(d delivery) {
	l.items = append(l.items, d)
	l.live++
}

// take removes one delivery.
func (l *ledger) take(tag uint64) (delivery, bool) {
	i, ok := l.find(tag)
	if !ok {
		return delivery{}, false
	}
	d := l.items[i]
	l.remove(i)
	l.sweep()
	return d, true
}

// takeThrough removes all up to and including tag, which must be there.
func (l *ledger) takeThrough(tag uint64) ([]delivery, bool) {
	end, ok := l.find(tag)
	if !ok {
		return nil, false
	}
	return l.takeRange(end + 1), true
}

func (l *ledger) takeAll() []delivery { return l.takeRange(len(l.items)) }

func (l *ledger) takeRange(end int) []delivery {
	out := make([]delivery, 0, min(l.live, end-l.head))
	for i := l.head; i < end; i++ {
		if l.items[i].m != nil {
			out = append(out, l.items[i])
			l.remove(i)
		}
	}
	l.sweep()
	return out
}

func (l *ledger) find(tag uint64) (int, bool) {
	i, ok := slices.BinarySearchFunc(l.items[l.head:], tag, func(d delivery, tag uint64) int {
		switch {
		case d.tag < tag:
			return -1
		case d.tag > tag:
			return 1
		}
		return 0
	})
	i += l.head
	return i, ok && l.items[i].m != nil
}

// remove keeps the tag for the search.
func (l *ledger) remove(i int) {
	l.items[i] = delivery{tag: l.items[i].tag}
	l.live--
}

// sweep drops settled entries, at most as many as were settled before.
func (l *ledger) sweep() {
	for l.head < len(l.items) && l.items[l.head].m == nil {
		l.head++
	}
	switch {
	case l.live == 0:
		l.items, l.head = l.items[:0], 0
	case len(l.items) > 64 && l.live < len(l.items)/2:
		kept := l.items[:0]
		for _, d := range l.items[l.head:] {
			if d.m != nil {
				kept = append(kept, d)
			}
		}
		clear(l.items[len(kept):])
		l.items, l.head = kept, 0
	}
}
