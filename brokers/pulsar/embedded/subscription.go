package embedded

import (
	"hash/fnv"
	"slices"
)

// kind is a subscription's type (CommandSubscribe.SubType).
type kind uint64

const (
	exclusive kind = iota
	shared
	failover
	keyShared
)

func (k kind) String() string {
	return []string{"Exclusive", "Shared", "Failover", "Key_Shared"}[k]
}

// single reports whether one consumer gets everything.
func (k kind) single() bool { return k == exclusive || k == failover }

// subscription is a durable cursor: everything below mark is acknowledged, and
// what lies in acked; everything from next on was never handed out, below it
// lies what is held by a consumer or has to be handed out again.
type subscription struct {
	t    *topic
	name string
	kind kind

	mark, next uint64
	acked      map[uint64]struct{}
	held       map[uint64]*consumer // handed out; only where many share it
	again      []uint64             // handed out before, in order
	count      map[uint64]uint64    // redeliveries

	consumers []*consumer // in the order of their coming
	active    *consumer   // who gets everything; only where that is one
	turn      int
}

// backlog is what is not acknowledged.
func (s *subscription) backlog() int64 { return int64(s.t.end()-s.mark) - int64(len(s.acked)) }

// settle acknowledges one entry; twice is fine.
func (s *subscription) settle(n uint64) {
	if n < s.mark || n >= s.t.end() {
		return
	}
	s.acked[n] = struct{}{}
	delete(s.held, n)
	delete(s.count, n)
	if i, ok := slices.BinarySearch(s.again, n); ok {
		s.again = slices.Delete(s.again, i, i+1)
	}
	for {
		if _, ok := s.acked[s.mark]; !ok {
			break
		}
		delete(s.acked, s.mark)
		s.mark++
	}
	s.next = max(s.next, s.mark)
	s.t.trim()
}

// rewind hands out from the first entry that is not acknowledged, uncounted.
func (s *subscription) rewind() {
	s.next, s.again = s.mark, nil
	clear(s.held)
	clear(s.count)
}

// giveBack makes an entry one that comes again.
func (s *subscription) giveBack(n uint64) {
	delete(s.held, n)
	if i, ok := slices.BinarySearch(s.again, n); !ok {
		s.again = slices.Insert(s.again, i, n)
	}
}

// elect finds the active consumer after one has come or gone. As on Pulsar it
// is the names that decide, not who came first; another one begins with what
// is not acknowledged.
func (s *subscription) elect() {
	if !s.kind.single() {
		return
	}
	if best := s.owner(s.t.name); best != s.active {
		s.active = best
		s.rewind()
		s.announce()
	}
}

// dispatch hands out what it can.
func (s *subscription) dispatch() {
	switch {
	case len(s.consumers) == 0:
	case s.kind == keyShared:
		s.dispatchByKey()
	default:
		for {
			co := s.ready()
			if co == nil {
				return
			}
			n, ok := s.take()
			if !ok {
				return
			}
			s.hand(co, n)
		}
	}
}

// ready is the next consumer in turn that has asked for more.
func (s *subscription) ready() *consumer {
	if s.kind.single() {
		if s.active.permits > 0 {
			return s.active
		}
		return nil
	}
	for range s.consumers {
		s.turn++
		if co := s.consumers[s.turn%len(s.consumers)]; co.permits > 0 {
			return co
		}
	}
	return nil
}

// take is the entry that comes next.
func (s *subscription) take() (n uint64, ok bool) {
	if len(s.again) > 0 {
		n = s.again[0]
		s.again = s.again[1:]
		return n, true
	}
	for s.next < s.t.end() {
		n = s.next
		s.next++
		if _, done := s.acked[n]; !done {
			return n, true
		}
	}
	return 0, false
}

func (s *subscription) hand(co *consumer, n uint64) {
	e := s.t.at(n)
	co.permits -= e.messages
	if !s.kind.single() {
		s.held[n] = co
	}
	b := body(nil).number(1, co.id).blob(2, s.t.id(n))
	if c := s.count[n]; c > 0 {
		b = b.number(3, c)
	}
	co.c.out.add(cmdMessage, b, e.payload)
}

// dispatchByKey hands a key's entries to its owner, in order. Entries of a key
// that another consumer still holds wait until it has settled them.
func (s *subscription) dispatchByKey() {
	waiting := map[string]bool{}
	holder := map[string]*consumer{}
	for n, co := range s.held {
		holder[s.t.at(n).key] = co
	}
	var later []uint64
	wanted := func(co *consumer) bool { return co.permits > 0 }
	for slices.ContainsFunc(s.consumers, wanted) {
		n, ok := s.take()
		if !ok {
			break
		}
		key := s.t.at(n).key
		co := s.owner(key)
		if h := holder[key]; waiting[key] || co.permits <= 0 || h != nil && h != co {
			waiting[key] = true
			later = append(later, n)
			continue
		}
		holder[key] = co
		s.hand(co, n)
	}
	s.again = append(later, s.again...)
}

// owner is the consumer whose name goes best with the key: when a consumer
// comes or goes, only its own keys move.
func (s *subscription) owner(key string) (best *consumer) {
	var most uint64
	for _, co := range s.consumers {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key + "\x00" + co.name)) // it never fails
		if v := h.Sum64(); best == nil || v > most {
			best, most = co, v
		}
	}
	return best
}
