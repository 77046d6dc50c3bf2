package assert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"mqlab/labs"
)

// Entry is what became of one business key.
type Entry struct {
	Key         string `json:"key"`
	Produced    bool   `json:"produced"`         // a broker confirmed a message about it
	Rows        int    `json:"rows"`             // rows of finished work
	DeadLetters int    `json:"dead_letters"`     // copies in a dead-letter destination
	Queued      bool   `json:"queued,omitempty"` // the broker still owes it to a consumer
}

func accounted(j *judge, _ Assertion) (found, error) {
	if j.closed != nil {
		return found{}, j.closed
	}
	var lines []labs.LogLine
	for _, s := range j.looked {
		for _, l := range s.Lines {
			if l.Own() && done(l) {
				lines = append(lines, l)
			}
		}
	}
	return found{j.balance, lines}, nil
}

// done reports whether the line is a row of finished work: state-machine finds
// its rows there before the work, as WAIT_PAY.
func done(l labs.LogLine) bool {
	return l.Has(Pairs{"status": "row", "table": "orders", "state": "PAID"})
}

// unasked is why an account that nobody asked for is not judged: the run has
// nothing to judge it by, and never claimed to have.
type unasked string

func (u unasked) Error() string { return string(u) }

const errNoRows = unasked("inspect-db listed no rows")

// account counts the rows per key. Consumers of one destination share its
// messages between their stores, so the rows of all stores count together.
func (j *judge) account() {
	rows := map[string]int{}
	produced := map[string]bool{}
	for l := range j.all() {
		if key := l.Get("aggregateId"); key != "" && confirms(l) {
			produced[key] = true
			rows[key] += 0
		}
	}
	looks, err := j.looks()
	j.looked = looks
	for _, s := range looks {
		for _, l := range s.Lines {
			if l.Own() && done(l) && l.Get("aggregateId") != "" {
				rows[l.Get("aggregateId")]++
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		j.book = append(j.book, Entry{Key: key, Produced: produced[key], Rows: rows[key]})
	}
	if err == nil && len(produced) == 0 {
		err = unasked("no step got a message confirmed")
	}
	if err != nil {
		j.closed = err
		return
	}
	j.closed = j.settle()
}

// settle draws the balance. A key without a row is lost only if the broker does
// not hold it any more, and who does not know that cannot say "lost". What the
// broker still holds may be copies of keys that are done, or of a key that a
// consumer took and dropped: only keys that nobody received are surely queued.
func (j *judge) settle() error {
	var missing []int
	for i, e := range j.book {
		switch {
		case !e.Produced && e.Rows > 0:
			j.balance.Phantom = append(j.balance.Phantom, e.Key)
		case e.Rows > 1:
			j.balance.Doubled = append(j.balance.Doubled, e.Key)
		case e.Produced && e.Rows == 0:
			missing = append(missing, i)
			j.balance.Lost = append(j.balance.Lost, e.Key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	left, err := j.left()
	taken := slices.IndexFunc(missing, func(i int) bool { return j.received(j.book[i].Key) })
	switch {
	case err != nil:
		return unknownf("%s has no row, and nobody knows whether it is still queued: %v", j.balance.Lost[0], err)
	case left > 0 && taken >= 0:
		return unknownf("%s was received and has no row, and the broker still holds %d messages: it cannot be told whether it is lost or comes again",
			j.book[missing[taken]].Key, left)
	case left >= int64(len(missing)):
		for _, i := range missing {
			j.book[i].Queued = true
		}
		j.balance.Lost = nil
	case left > 0:
		return unknownf("%d keys have no row and the broker still holds %d messages: it cannot be told which are lost", len(missing), left)
	}
	return nil
}

// received reports whether any consumer took a delivery about the key.
func (j *judge) received(key string) bool {
	for l := range j.all() {
		if l.Has(Pairs{"status": "received", "aggregateId": key}) {
			return true
		}
	}
	return false
}

// left is what the broker still owed the consumers at the end.
func (j *judge) left() (int64, error) {
	if j.run.Record == nil {
		return 0, fmt.Errorf("there is no %s", labs.RecordFile)
	}
	s, ok := j.state(At{}, j.scenario.Destination.Name())
	switch {
	case !ok:
		return 0, fmt.Errorf("the broker's state at the end was not recorded")
	case s.Err != "" || s.State == nil:
		return 0, fmt.Errorf("the broker did not tell its state at the end: %s", s.Err)
	}
	return s.State.Left, nil
}

// looks are, for each store, the last inspect-db step that read it, after its
// consumers had ended.
func (j *judge) looks() ([]labs.StepLog, error) {
	stores := map[string]labs.StepLog{}
	for _, s := range j.scenario.Steps {
		log, ok := j.run.Step(s.Name)
		if s.RoleName() == labs.RoleInspectDB && ok && log.Wrote() {
			stores[j.storeOf(s)] = log
		}
	}
	var looks []labs.StepLog
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		if err := listed(stores[name]); err != nil {
			return nil, err
		}
		looks = append(looks, stores[name])
	}
	if len(looks) == 0 {
		return nil, errNoRows
	}
	for _, c := range j.scenario.Steps {
		if c.RoleName() != labs.RoleConsumer {
			continue
		}
		look, ok := stores[j.scenario.ConsumerOf(c).Store]
		if !ok {
			return nil, unasked("no inspect-db step has read the store of " + c.Name)
		}
		if !j.endedBefore(c.Name, look) {
			return nil, unasked(fmt.Sprintf("%s read the store before %s had ended", look.Name, c.Name))
		}
	}
	return looks, nil
}

func (j *judge) storeOf(s labs.Step) string {
	if j.run.Record != nil {
		if r, ok := j.record(s.Name); ok && r.Store != "" {
			return r.Store
		}
	}
	return j.scenario.StoreOf(s)
}

// listed refuses a log that does not list as many rows as it counts: another
// program's, which only counts them, or one that was cut.
func listed(s labs.StepLog) error {
	orders, counted := 0, -1
	for _, l := range s.Lines {
		if l.Own() && done(l) {
			orders++
		}
		if n, err := strconv.Atoi(l.Get("business_rows")); err == nil && l.Own() {
			counted = n
		}
	}
	switch {
	case counted < 0:
		return unknownf("%s was cut: it has no status=snapshot line", s.Name)
	case orders == 0 && counted > 0:
		return errNoRows
	case orders != counted:
		return unknownf("%s counts %d rows of finished work and lists %d", s.Name, counted, orders)
	}
	return nil
}

// endedBefore reports whether a consumer had ended when the store was read: by
// the record, else by the lines' own times.
func (j *judge) endedBefore(consumer string, look labs.StepLog) bool {
	if j.run.Record != nil {
		c, ok := j.record(consumer)
		i, found := j.record(look.Name)
		return ok && found && !i.Started.Before(c.Ended)
	}
	log, _ := j.run.Step(consumer)
	return !firstTime(look).Before(lastTime(log))
}

func firstTime(s labs.StepLog) time.Time {
	for _, l := range inTime(s.Lines) {
		if !l.time.IsZero() {
			return l.time
		}
	}
	return time.Time{}
}

func lastTime(s labs.StepLog) time.Time {
	if lines := inTime(s.Lines); len(lines) > 0 {
		return lines[len(lines)-1].time
	}
	return time.Time{}
}
