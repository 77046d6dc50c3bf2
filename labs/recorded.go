package labs

import "fmt"

// Recorded is the lab as it was run, from the run's own record: nothing in the
// catalogue can change the verdict about a run that is over.
func Recorded(r *Record) (*Lab, error) {
	l := &Lab{ID: r.Product + "/" + r.Lab, Product: r.Product, Name: r.Lab, File: r.Scenario, Expected: r.Expected, Fixtures: map[string]Fixture{}}
	if l.File.Text == "" || l.Expected.Text == "" {
		return nil, fmt.Errorf("%s holds no scenario or no expected file", RecordFile)
	}
	if err := Decode(l.File, &l.Scenario); err != nil {
		return nil, err
	}
	for name, body := range r.Fixtures {
		e, err := ReadEnvelope([]byte(body))
		if err != nil {
			return nil, fmt.Errorf("the fixture %s in %s: %w", name, RecordFile, err)
		}
		l.Fixtures[name] = Fixture{Name: name, Body: []byte(body), Envelope: e}
	}
	return l, nil
}
