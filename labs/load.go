package labs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLine bounds what is parsed of one line, in bytes; a longer one is foreign.
const maxLine = 256 << 10

// Run is the evidence of one run as the judge reads it.
type Run struct {
	Dir     string
	Record  *Record // nil for a folder written by another program
	Product string
	Lab     string
	Steps   []StepLog // in the order of the plan; without a record, by name
	// Altered says which log lines are not those that the runner saw, by the
	// SHA-256 sums of replay.json; empty where there is no replay.json.
	Altered []string
}

// StepLog is a step's structured log.
type StepLog struct {
	Name  string
	File  string // relative to the run folder
	Lines []LogLine
}

// LogLine is one line of a step's standard output.
type LogLine struct {
	Line          // empty when the line is foreign or broken
	Step   string // whose it is
	File   string // relative to the run folder
	Number int    // from 1
	Text   string // without the end of line
	Broken error  // one of our own lines that does not follow the grammar
}

// Own reports whether the line is one of ours and well formed.
func (l LogLine) Own() bool { return l.Prefix != "" && l.Broken == nil }

// ReadLine parses one line of a step's output.
func ReadLine(step, file string, number int, text string) LogLine {
	l := LogLine{Step: step, File: file, Number: number, Text: text}
	if len(text) > maxLine {
		return l
	}
	parsed, own, err := ParseLine(text)
	if own {
		l.Line, l.Broken = parsed, err
	}
	return l
}

// ErrPartial says that a run folder was never completed.
var ErrPartial = errors.New("the run is not complete")

// LoadRun reads a run folder, also one written by another program, which has
// logs and no run.json. A folder of a run that did not complete is ErrPartial
// unless partialToo.
func LoadRun(dir string, partialToo bool) (*Run, error) {
	r := &Run{Dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, RecordFile))
	switch {
	case err == nil:
		r.Record = &Record{}
		if err := json.Unmarshal(b, r.Record); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, RecordFile), err)
		}
		if r.Record.Schema != RecordSchema {
			return nil, fmt.Errorf("read %s: schema %d, this mqlab reads %d", filepath.Join(dir, RecordFile), r.Record.Schema, RecordSchema)
		}
		r.Product, r.Lab = r.Record.Product, r.Record.Lab
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the run: %w", err)
	}
	clean := filepath.Clean(dir)
	if !partialToo && (strings.HasSuffix(clean, partial) || r.Record != nil && !r.Record.Complete) {
		return nil, fmt.Errorf("read the run in %s: %w", dir, ErrPartial)
	}
	if err := r.logs(); err != nil {
		return nil, err
	}
	if r.Record != nil {
		if err := r.compare(); err != nil {
			return nil, err
		}
	}
	return r, r.identify()
}

// compare holds the logs against what the runner saw.
func (r *Run) compare() error {
	b, err := os.ReadFile(filepath.Join(r.Dir, ReplayFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a record that another program wrote
	}
	var replay Replay
	if err == nil {
		err = json.Unmarshal(b, &replay)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(r.Dir, ReplayFile), err)
	}
	seen := map[string][]string{}
	for _, m := range replay.Moments {
		if m.Kind == "line" {
			seen[m.File] = append(seen[m.File], m.SHA256)
		}
	}
	for _, s := range r.Steps {
		r.compareStep(s, seen[s.File])
	}
	return nil
}

func (r *Run) compareStep(s StepLog, sums []string) {
	for i, l := range s.Lines {
		switch {
		case l.Text == "" && i >= len(sums):
			// an empty log reads as one empty line
		case i >= len(sums):
			r.Altered = append(r.Altered, fmt.Sprintf("%s:%d was added after the run", s.File, l.Number))
			return
		case digest(l.Text) != sums[i]:
			r.Altered = append(r.Altered, fmt.Sprintf("%s:%d was changed after the run", s.File, l.Number))
			return
		}
	}
	if len(s.Lines) < len(sums) {
		r.Altered = append(r.Altered, fmt.Sprintf("%s lacks lines that the runner saw", s.File))
	}
}

// digest is the SHA-256 of a line, of a very long one that of its beginning.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text[:min(len(text), maxLine)]))
	return hex.EncodeToString(sum[:])
}

func (r *Run) logs() error {
	files, err := os.ReadDir(r.Dir) // sorted; a glob would stumble over a [ in the path
	if err != nil {
		return fmt.Errorf("read the run: %w", err)
	}
	for _, f := range files {
		name := f.Name()
		if name == ReportFile || !strings.HasSuffix(name, outSuffix) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(r.Dir, name))
		if err != nil {
			return fmt.Errorf("read the run's logs: %w", err)
		}
		r.Steps = append(r.Steps, readLog(strings.TrimSuffix(name, outSuffix), name, b))
	}
	if len(r.Steps) == 0 && r.Record == nil {
		hint := ""
		if _, err := os.Stat(filepath.Join(r.Dir, "latest")); err == nil {
			hint = "; did you mean " + filepath.Join(r.Dir, "latest") + "?"
		}
		return fmt.Errorf("read the run in %s: it holds neither %s nor a *%s%s", r.Dir, RecordFile, outSuffix, hint)
	}
	if r.Record != nil {
		slices.SortStableFunc(r.Steps, func(a, b StepLog) int { return r.place(a.Name) - r.place(b.Name) })
	}
	return nil
}

func readLog(step, file string, b []byte) StepLog {
	log := StepLog{Name: step, File: file}
	for i, text := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		log.Lines = append(log.Lines, ReadLine(step, file, i+1, string(bytes.TrimSuffix(text, []byte("\r")))))
	}
	return log
}

// place is a step's position in the plan.
func (r *Run) place(step string) int {
	return slices.IndexFunc(r.Record.Steps, func(s StepRecord) bool { return s.Name == step })
}

// identify takes product and lab from the lines of a folder without a record.
func (r *Run) identify() error {
	for _, s := range r.Steps {
		for _, l := range s.Lines {
			product, lab := l.Get("product"), l.Get("lab")
			if product == "" || lab == "" {
				continue
			}
			if r.Product == "" {
				r.Product, r.Lab = product, lab
			}
			if r.Record == nil && (product != r.Product || lab != r.Lab) {
				return fmt.Errorf("read the run in %s: %s:%d speaks of %s/%s, the lines before it of %s/%s", r.Dir, l.File, l.Number, product, lab, r.Product, r.Lab)
			}
		}
	}
	if r.Product == "" {
		return fmt.Errorf("read the run in %s: no line says product= and lab=, so nobody knows which lab it is", r.Dir)
	}
	return nil
}

// Step returns a step's log; ok is false when it left none.
func (r *Run) Step(name string) (StepLog, bool) {
	for _, s := range r.Steps {
		if s.Name == name {
			return s, true
		}
	}
	return StepLog{}, false
}

// Wrote reports whether the step wrote at least one structured line.
func (s StepLog) Wrote() bool { return slices.ContainsFunc(s.Lines, LogLine.Own) }
