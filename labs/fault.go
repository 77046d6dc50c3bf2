package labs

// Fault is one declared fault of a step, whatever its kind.
type Fault struct {
	Where
	Kind  string // halt, hold, freeze or fail
	How   string // of a halt
	Until *Condition
	Times int // of a fail
}

// The kinds of faults.
const (
	KindHalt   = "halt"
	KindHold   = "hold"
	KindFreeze = "freeze"
	KindFail   = "fail"
)

// Faults lists the step's faults. A halt's `when` and a hold's `until` are both
// what the arrival waits for, so both stand in Until.
func (s Step) Faults() []Fault {
	var fs []Fault
	if s.Freeze != nil {
		fs = append(fs, Fault{Where: s.Freeze.Where, Kind: KindFreeze, Until: s.Freeze.Until})
	}
	if s.Hold != nil {
		fs = append(fs, Fault{Where: s.Hold.Where, Kind: KindHold, Until: s.Hold.Until})
	}
	if s.Fail != nil {
		fs = append(fs, Fault{Where: s.Fail.Where, Kind: KindFail, Times: max(1, s.Fail.Times)})
	}
	if s.Halt != nil {
		how := s.Halt.How
		def(&how, HowExit)
		fs = append(fs, Fault{Where: s.Halt.Where, Kind: KindHalt, How: how, Until: s.Halt.When})
	}
	return fs
}

// Matches reports whether the fault strikes at an arrival: the seen-th one in
// its process at that checkpoint, among those of the fault's message if it
// names one.
func (f Fault) Matches(seen int) bool {
	first := max(1, f.Arrival)
	if f.Kind == KindFail {
		return seen >= first && seen < first+f.Times
	}
	return seen == first
}

// conditions lists every condition that the step waits for.
func (s Step) conditions() []*Condition {
	var cs []*Condition
	for _, c := range []*Condition{s.After, s.haltWhen(), until(s.Hold), until(s.Freeze)} {
		if c != nil {
			cs = append(cs, c)
		}
	}
	return cs
}

func (s Step) haltWhen() *Condition {
	if s.Halt == nil {
		return nil
	}
	return s.Halt.When
}

func until(h *Hold) *Condition {
	if h == nil {
		return nil
	}
	return h.Until
}
