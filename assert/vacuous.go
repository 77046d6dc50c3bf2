package assert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mqlab/labs"
)

// beyond is a number that nothing ever reaches.
const beyond = 1 << 53

// numberKeys are the keys of log lines whose values are numbers from 0.
func numberKeys() []string {
	return []string{"business_rows", "processed_rows", "received", "confirmed", "produced", "durationMs", "attempt", "affected", "amountCents"}
}

// vacuous refuses a want that every run fulfils: it claims nothing.
func (d *decoder) vacuous(a Assertion, s shape, want *node) {
	if want == nil {
		return
	}
	w, key := a.Want, a.Last+a.First
	if key != "" && !slices.Contains(labs.Keys(), key) {
		return
	}
	numeric := slices.Contains(numberKeys(), key)
	about := s.String()
	if numeric {
		about = key + ", " + aCount.String()
	}
	switch {
	case w.Max != nil && w.Min == nil && s != anExit && *w.Max >= beyond:
		d.fail(want.get("max").at, "a bound of %d says nothing about %s", *w.Max, about)
	case w.Min != nil && w.Max == nil && (numeric || s == aFigure) && *w.Min <= 0:
		d.fail(want.get("min").at, "a bound of %d says nothing about %s", *w.Min, about)
	case w.Min != nil || w.Max != nil:
	case key != "":
		d.vacuousWord(key, numeric, about, *want)
	case s == aFigure && w.Not:
		if n, ok := w.Value.(int64); ok && n < 0 {
			d.fail(want.get("not").at, "not %d says nothing about %s: it is never below 0", n, about)
		}
	}
}

// vacuousWord refuses a value that the key never has: it is never found, and
// `not` always holds.
func (d *decoder) vacuousWord(key string, numeric bool, about string, n node) {
	if not := n.get("not"); not != nil {
		n = *not
	}
	if !n.scalar() || n.text == "" {
		return // refused before
	}
	if !numeric {
		d.valueOf(key, n)
		return
	}
	// The text in the line is compared, and no line says 0x3 or 3.0.
	if i, err := strconv.ParseInt(n.text, 10, 64); err != nil || i < 0 || strconv.FormatInt(i, 10) != n.text {
		d.fail(n.at, "want is %s here, not %s", about, printable(n.text, '?'))
	}
}

// silent refuses a status word that none of the steps can log.
func (d *decoder) silent(a Assertion, e node) {
	for _, key := range []string{"count", "where"} {
		pairs, in := e.get(key), e.get("in")
		if pairs == nil || in == nil {
			continue
		}
		word := pairs.get("status")
		if word == nil || word.text == "row" || word.text == "snapshot" {
			continue // inspectOnly speaks of these
		}
		d.logs(*word, a.In)
	}
	if a.Duration == nil {
		return
	}
	for key, m := range map[string]Moment{"from": a.Duration.From, "to": a.Duration.To} {
		if n := e.get("duration").get(key); n != nil && n.get("status") != nil {
			d.logs(*n.get("status"), []string{m.Step})
		}
	}
}

// logs refuses a word that no role of these steps logs.
func (d *decoder) logs(word node, steps []string) {
	may := labs.WordRoles()[word.text]
	var roles []string
	for _, name := range steps {
		s, ok := d.sc.Step(name)
		if !ok || s.RoleName() == "" || slices.Contains(may, s.RoleName()) {
			return
		}
		if !slices.Contains(roles, s.RoleName()) {
			roles = append(roles, s.RoleName())
		}
	}
	if len(may) == 0 || len(roles) == 0 {
		return
	}
	d.fail(word.at, "%s; that is a word of %s", neverLog(roles, word.text), strings.Join(may, ", "))
}

func neverLog(roles []string, word string) string {
	if len(roles) == 1 {
		return fmt.Sprintf("%s never logs %s", roles[0], word)
	}
	return fmt.Sprintf("%s never log %s", strings.Join(roles, " and "), word)
}
