package embedded

import "slices"

// content is a message as it was published. All queues that hold it share it,
// so nothing in it may be changed.
type content struct {
	exchange string
	key      string
	more     []string // further routing keys from the CC and BCC headers
	props    properties
	body     []byte
}

// message is a content in one queue.
type message struct {
	*content
	seq         uint64 // place in the queue, kept when it comes back
	redelivered bool
	expires     int64 // nanoseconds on the broker's clock, 0 for never
}

// readyList is the ready messages of a queue in order of their seq.
type readyList struct {
	items []*message // the first head ones are gone
	head  int
	bytes int64
}

func (r *readyList) len() int { return len(r.items) - r.head }

// first is nil when there is none.
func (r *readyList) first() *message {
	if r.len() == 0 {
		return nil
	}
	return r.items[r.head]
}

func (r *readyList) push(m *message) {
	r.items = append(r.items, m)
	r.bytes += int64(len(m.body))
}

func (r *readyList) pop() *message {
	m := r.items[r.head]
	r.items[r.head] = nil
	r.head++
	r.bytes -= int64(len(m.body))
	switch {
	case r.head == len(r.items):
		r.items, r.head = r.items[:0], 0
	case r.head > 1024 && r.head > len(r.items)/2: // amortized: as many pops as moves
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
	return m
}

// putBack gives messages, sorted by seq, their old places. One message, or
// some that all belong to the front, cost no more than their number.
func (r *readyList) putBack(back []*message) {
	for _, m := range back {
		r.bytes += int64(len(m.body))
	}
	if f := r.first(); f == nil || back[len(back)-1].seq < f.seq {
		r.putFront(back)
		return
	}
	if len(back) == 1 {
		at, _ := slices.BinarySearchFunc(r.items[r.head:], back[0].seq, bySeq)
		r.items = slices.Insert(r.items, r.head+at, back[0])
		return
	}
	r.merge(back)
}

func bySeq(m *message, seq uint64) int {
	switch {
	case m.seq < seq:
		return -1
	case m.seq > seq:
		return 1
	}
	return 0
}

func (r *readyList) putFront(back []*message) {
	if len(back) <= r.head {
		r.head -= len(back)
		copy(r.items[r.head:], back)
		return
	}
	// Room for as many again, or a nack a message would copy the queue each time.
	room := len(back) + min(r.len(), 1024)
	items := make([]*message, room, room+len(back)+r.len())
	items = append(items, back...)
	items = append(items, r.items[r.head:]...)
	r.items, r.head = items, room
}

func (r *readyList) merge(back []*message) {
	old := r.items[r.head:]
	items := make([]*message, 0, len(old)+len(back))
	for len(old) > 0 && len(back) > 0 {
		if old[0].seq < back[0].seq {
			items, old = append(items, old[0]), old[1:]
		} else {
			items, back = append(items, back[0]), back[1:]
		}
	}
	items = append(append(items, old...), back...)
	r.items, r.head = items, 0
}

// clear removes all and says how many there were.
func (r *readyList) clear() int {
	n := r.len()
	*r = readyList{}
	return n
}
