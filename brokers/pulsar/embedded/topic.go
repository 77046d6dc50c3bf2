package embedded

// topic is a list of entries, from the oldest that somebody still needs.
type topic struct {
	name      string
	ledger    uint64
	first     uint64 // the number of entries[0]
	entries   []entry
	producers map[*producer]struct{}
	subs      map[string]*subscription
}

// entry is what one SEND brought: a message or a batch.
type entry struct {
	payload  []byte // checksum, metadata and body, as they came
	messages int64
	key      string // what key-shared subscriptions spread by
}

// end is the number of the entry that comes next.
func (t *topic) end() uint64 { return t.first + uint64(len(t.entries)) }

func (t *topic) at(n uint64) entry { return t.entries[n-t.first] }

// add stores an entry and offers it to everybody.
func (t *topic) add(e entry) (number uint64) {
	number = t.end()
	t.entries = append(t.entries, e)
	for _, s := range t.subs {
		s.dispatch()
	}
	t.trim()
	return number
}

// trimAt is how many entries that nobody needs are worth a copy.
const trimAt = 1024

// trim forgets what every subscription has acknowledged. Without a subscription
// everything stays: one may come that begins at the earliest.
func (t *topic) trim() {
	if len(t.subs) == 0 {
		return
	}
	mark := t.end()
	for _, s := range t.subs {
		mark = min(mark, s.mark)
	}
	if mark-t.first < trimAt {
		return
	}
	t.entries = append([]entry(nil), t.entries[mark-t.first:]...)
	t.first = mark
}

// subscribe makes a subscription unless it is there.
func (t *topic) subscribe(name string, earliest bool) *subscription {
	if s := t.subs[name]; s != nil {
		return s
	}
	s := &subscription{t: t, name: name, mark: t.end(), acked: map[uint64]struct{}{}, held: map[uint64]*consumer{}, count: map[uint64]uint64{}}
	if earliest {
		s.mark = t.first
	}
	s.next = s.mark
	t.subs[name] = s
	return s
}

// id is MessageIdData.
func (t *topic) id(number uint64) body { return body(nil).number(1, t.ledger).number(2, number) }
