package assert

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqlab/expected"
	"mqlab/labs"
)

var update = flag.Bool("update", false, "write the golden reports")

// figures are those that the RabbitMQ driver's state has.
func figures() []string { return []string{"depth", "ready", "unacknowledged", "consumers"} }

func catalogue() *labs.Catalogue { return labs.NewCatalogue(expected.Files()) }

func loadLab(t testing.TB, id string) *labs.Lab {
	t.Helper()
	l, err := catalogue().Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func loadRun(t testing.TB, dir string) *labs.Run {
	t.Helper()
	run, err := labs.LoadRun(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// expectedOf reads the files with which a run was made; for a folder without a
// record those of the catalogue.
func expectedOf(t testing.TB, run *labs.Run) *Expected {
	t.Helper()
	l := loadLab(t, run.Product+"/"+run.Lab)
	if run.Record != nil {
		l.Scenario = labs.Scenario{}
		if err := labs.Decode(run.Record.Scenario, &l.Scenario); err != nil {
			t.Fatal(err)
		}
		l.Expected = run.Record.Expected
	}
	e, err := ReadLab(l, figures())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// claim reads one assertion for a run's lab.
func claim(t testing.TB, run *labs.Run, text string) *Expected {
	t.Helper()
	e := expectedOf(t, run)
	got, err := read(labs.File{Path: "test.yaml", Text: text}, e.scenario, figures(), e.keys)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func textOf(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// copyRun is a copy of a recorded run that a test may spoil.
func copyRun(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit changes the record of a copied run.
func edit(t testing.TB, dir string, change func(*labs.Record)) {
	t.Helper()
	r := loadRun(t, dir).Record
	change(r)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	// brokers.Address writes itself as text; an absent one stays absent.
	b = bytes.Replace(b, []byte(`"address":"(no address)"`), []byte(`"adopted":false`), 1)
	if err := os.WriteFile(filepath.Join(dir, labs.RecordFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// step finds a step in the record.
func step(r *labs.Record, name string) *labs.StepRecord {
	for i := range r.Steps {
		if r.Steps[i].Name == name {
			return &r.Steps[i]
		}
	}
	panic("no step " + name)
}

// rewrite changes a file of a copied run.
func rewrite(t testing.TB, dir, file string, change func(string) string) {
	t.Helper()
	path := filepath.Join(dir, file)
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(b))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir, file string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
}

// without drops the lines that hold a text.
func without(text string) func(string) string {
	return func(s string) string {
		var out []string
		for _, l := range strings.Split(s, "\n") {
			if !strings.Contains(l, text) {
				out = append(out, l)
			}
		}
		return strings.Join(out, "\n")
	}
}

func reasons(r *Report) string { return strings.Join(r.Spoiled, "\n") }
