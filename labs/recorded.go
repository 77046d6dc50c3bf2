package labs

import (
	"errors"
	"io/fs"
)

// Recorded is the lab as it was run, from the run's own record. Fixtures that
// are gone since then are left out.
func (c *Catalogue) Recorded(r *Record) (*Lab, error) {
	l := &Lab{ID: r.Product + "/" + r.Lab, Product: r.Product, Name: r.Lab, File: r.Scenario, Expected: r.Expected, Fixtures: map[string]Fixture{}}
	if err := Decode(l.File, &l.Scenario); err != nil {
		return nil, err
	}
	for _, list := range l.Scenario.messageLists() {
		for _, name := range list {
			body, err := c.fixture(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if e, err := ReadEnvelope(body); err == nil {
				l.Fixtures[name] = Fixture{Name: name, Body: body, Envelope: e}
			}
		}
	}
	return l, nil
}
