package labs

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed */*.yaml messages/*.json
var builtin embed.FS

// Builtin is mqlab's own labs and fixtures: BROKER/NAME.yaml and messages/*.json.
func Builtin() fs.FS { return builtin }

// Catalogue finds labs: a scenario and its expected twin, addressed BROKER/NAME.
type Catalogue struct {
	labs, expected    fs.FS
	messages          []fs.FS // searched in order
	labsDir, twinsDir string  // how the folders are shown to the user
}

// NewCatalogue reads mqlab's own labs; expected is the folder of their twins.
func NewCatalogue(expected fs.FS) *Catalogue {
	m, err := fs.Sub(builtin, "messages")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return &Catalogue{labs: builtin, expected: expected, messages: []fs.FS{m}, labsDir: "labs", twinsDir: "expected"}
}

// In reads a user's own labs from dir/labs and dir/expected, with fixtures from
// dir/messages beside ours. It takes the place of c's labs.
func (c *Catalogue) In(dir string) (*Catalogue, error) {
	for _, sub := range []string{"labs", "expected"} {
		if st, err := os.Stat(filepath.Join(dir, sub)); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("read labs from %s: there is no folder %s in it", dir, sub)
		}
	}
	n := &Catalogue{labs: os.DirFS(filepath.Join(dir, "labs")), expected: os.DirFS(filepath.Join(dir, "expected")),
		labsDir: filepath.Join(dir, "labs"), twinsDir: filepath.Join(dir, "expected")}
	n.messages = append([]fs.FS{os.DirFS(filepath.Join(dir, "messages"))}, c.messages...)
	return n, nil
}

// Names lists every lab, sorted.
func (c *Catalogue) Names() ([]string, error) {
	files, err := fs.Glob(c.labs, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the labs in %s: %w", c.labsDir, err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".yaml"))
	}
	slices.Sort(names)
	return names, nil
}

// Match lists the labs that any of the globs names, each once, sorted. A glob
// that matches nothing is an error with the nearest names.
func (c *Catalogue) Match(globs ...string) ([]string, error) {
	names, err := c.Names()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, g := range globs {
		g = strings.TrimSuffix(g, ".yaml")
		n := len(found)
		for _, name := range names {
			ok, err := path.Match(g, name)
			if err != nil {
				return nil, fmt.Errorf("lab pattern %q: %w", g, err)
			}
			if ok {
				found = append(found, name)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("no lab matches %q%s", g, nearestLab(g, names))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// nearestLab compares the whole address and the part behind the slash.
func nearestLab(g string, names []string) string {
	if len(names) == 0 {
		return "; there are none"
	}
	if hint := Nearest(g, names); strings.Contains(hint, "did you mean") {
		return hint
	}
	for _, n := range names {
		if path.Base(n) == path.Base(g) {
			return fmt.Sprintf("; did you mean %q?", n)
		}
	}
	return "; `mqlab list` shows them all"
}

// Lab is a scenario that was read, with its twin and its fixtures.
type Lab struct {
	ID       string // rabbitmq/consumer-crash
	Product  string // rabbitmq
	Name     string // consumer-crash
	File     File
	Expected File
	Scenario Scenario
	Fixtures map[string]Fixture // those that the scenario names
}

// Digest is the SHA-256 of the scenario's text.
func (l *Lab) Digest() string {
	sum := sha256.Sum256([]byte(l.File.Text))
	return hex.EncodeToString(sum[:])
}

// Fixture is a message file.
type Fixture struct {
	Name     string
	Body     []byte // sent byte for byte
	Envelope Envelope
}

// Load reads a lab's files and decodes the scenario strictly. It does not check
// the scenario against a broker: see Check.
func (c *Catalogue) Load(id string) (*Lab, error) {
	product, name, ok := strings.Cut(id, "/")
	if !ok || !kebab.MatchString(name) {
		return nil, fmt.Errorf("lab %q: want BROKER/NAME, the name in kebab-case", id)
	}
	l := &Lab{ID: id, Product: product, Name: name, Fixtures: map[string]Fixture{}}
	var err error
	if l.File, err = read(c.labs, c.labsDir, id); err != nil {
		return nil, fmt.Errorf("read the scenario of %s: %w", id, err)
	}
	l.Expected, err = read(c.expected, c.twinsDir, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{File: l.File.Path, Message: fmt.Sprintf("its expected file %s is missing", l.Expected.Path)}
	}
	if err != nil {
		return nil, fmt.Errorf("read the expected file of %s: %w", id, err)
	}
	if err := Decode(l.File, &l.Scenario); err != nil {
		return nil, err
	}
	return l, c.fixtures(l)
}

func read(from fs.FS, dir, id string) (File, error) {
	f := File{Path: path.Join(filepath.ToSlash(dir), id+".yaml")}
	b, err := fs.ReadFile(from, id+".yaml")
	f.Text = string(b)
	return f, err
}

// fixtures reads the message files that the scenario names.
func (c *Catalogue) fixtures(l *Lab) error {
	lists := l.Scenario.messageLists()
	for _, where := range slices.Sorted(maps.Keys(lists)) {
		for i, name := range lists[where] {
			at := fmt.Sprintf("%s[%d]", where, i)
			if _, ok := l.Fixtures[name]; ok {
				continue
			}
			body, err := c.fixture(name)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
				return l.File.ErrorAt(at, fmt.Sprintf("no fixture is named %q%s", name, Nearest(name, c.FixtureNames())))
			}
			if err != nil {
				return fmt.Errorf("read the fixture %s: %w", name, err)
			}
			if len(body) > maxFile {
				return l.File.ErrorAt(at, fmt.Sprintf("the fixture %s.json has %d bytes, more than the %d that a message may have", name, len(body), maxFile))
			}
			e, err := ReadEnvelope(body)
			if err != nil {
				return l.File.ErrorAt(at, fmt.Sprintf("the fixture %s.json is not a message: %v", name, err))
			}
			if id := e.Payload.OrderID; id != nil && *id != e.AggregateID {
				return l.File.ErrorAt(at, fmt.Sprintf("the fixture %s.json has aggregateId %q and payload.orderId %q: they are one business key", name, e.AggregateID, *id))
			}
			l.Fixtures[name] = Fixture{Name: name, Body: body, Envelope: e}
		}
	}
	return nil
}

func (c *Catalogue) fixture(name string) ([]byte, error) {
	for _, m := range c.messages {
		b, err := fs.ReadFile(m, name+".json")
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return nil, fs.ErrNotExist
}

// FixtureNames lists the fixtures that a scenario can name.
func (c *Catalogue) FixtureNames() []string {
	var names []string
	for _, m := range c.messages {
		files, _ := fs.Glob(m, "*.json") // the pattern is a constant and good
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f, ".json"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// messageLists are the places in a scenario that name fixtures, by path.
func (sc *Scenario) messageLists() map[string][]string {
	lists := map[string][]string{"$.messages": sc.Messages, "$.producer.messages": sc.Producer.Messages}
	for i, s := range sc.Steps {
		lists[fmt.Sprintf("$.steps[%d].producer.messages", i)] = s.Producer.Messages
	}
	return lists
}
