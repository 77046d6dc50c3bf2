package labs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqlab/brokers"
)

// Evidence is the folder of one run while it is written. It belongs to the
// goroutine that runs the lab.
type Evidence struct {
	Record Record
	dir    string // ends in .partial until Seal
	replay Replay
	latest string
}

// newEvidence makes ROOT/PRODUCT/LAB/TIME-RUN.partial.
func newEvidence(root string, l *Lab, run string, started time.Time) (*Evidence, error) {
	parent := filepath.Join(root, l.Product, l.Name)
	dir := filepath.Join(parent, started.UTC().Format("20060102T150405Z")+"-"+run+partial)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the run folder: %w", err)
	}
	e := &Evidence{dir: dir, latest: filepath.Join(parent, "latest"), replay: Replay{Schema: RecordSchema, Run: run},
		Record: Record{Schema: RecordSchema, Run: run, Product: l.Product, Lab: l.Name, Started: started.UTC(), Scenario: l.File, Expected: l.Expected,
			Fixtures: map[string]string{}, Steps: []StepRecord{}, Faults: []FaultRecord{}, States: []StateRecord{}}}
	for name, f := range l.Fixtures {
		e.Record.Fixtures[name] = string(f.Body)
	}
	// A first record, so that a folder whose run was killed says what it was.
	if err := e.writeJSON(RecordFile, e.Record); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e, nil
}

// Dir is the folder as it is called now.
func (e *Evidence) Dir() string { return e.dir }

// note adds a moment and returns its number.
func (e *Evidence) note(m Moment) int {
	m.Seq = len(e.replay.Moments) + 1
	m.Time = time.Now().UTC()
	e.replay.Moments = append(e.replay.Moments, m)
	return m.Seq
}

// line adds a log line.
func (e *Evidence) line(l LogLine) {
	content := l.Text
	if len(content) > maxLine {
		content = content[:maxLine]
	}
	e.note(Moment{Kind: "line", Step: l.Step, File: l.File, Line: l.Number, SHA256: digest(l.Text), Content: strings.ToValidUTF8(content, "\uFFFD")})
}

// state adds the broker's answer, or that there was none.
func (e *Evidence) state(r StateRecord, s brokers.State, err error) {
	m := Moment{Kind: "state", Step: r.Step, Checkpoint: r.Checkpoint, Message: r.Message, Key: r.Key}
	if err != nil {
		r.Err, m.Err = err.Error(), err.Error()
	} else {
		r.State, m.State = &s, &s
	}
	r.Time = time.Now().UTC() // the answer's; State.Took says how long before it was asked
	r.Seq = e.note(m)
	e.Record.States = append(e.Record.States, r)
}

// spoil adds a reason why nothing can be concluded, once.
func (e *Evidence) spoil(format string, a ...any) {
	reason := fmt.Sprintf(format, a...)
	if !slices.Contains(e.Record.Spoiled, reason) {
		e.Record.Spoiled = append(e.Record.Spoiled, reason)
	}
}

// write puts what is known into the folder, each file whole or not at all.
func (e *Evidence) write() error {
	return errors.Join(e.writeJSON(ReplayFile, e.replay), e.writeJSON(RecordFile, e.Record))
}

func (e *Evidence) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return e.WriteFile(name, append(b, '\n'))
}

// WriteFile puts a file into the folder: whole and on disk, or not at all.
func (e *Evidence) WriteFile(name string, b []byte) (err error) {
	f, err := os.CreateTemp(e.dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(e.dir, name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
	}
	return nil
}

// Seal gives a complete run its final name and points `latest` to it. The
// folder of an interrupted run stays partial.
func (e *Evidence) Seal() error {
	if !e.Record.Complete {
		return nil
	}
	final := strings.TrimSuffix(e.dir, partial)
	if err := os.Rename(e.dir, final); err != nil {
		return fmt.Errorf("name the run folder: %w", err)
	}
	e.dir = final
	// Made beside and renamed, so that two runs at once never find it missing.
	tmp := e.latest + "-" + e.Record.Run
	if err := os.Symlink(filepath.Base(final), tmp); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("point latest to the run: %w", err)
	}
	if err := os.Rename(tmp, e.latest); err != nil {
		return fmt.Errorf("point latest to the run: %w", err)
	}
	return nil
}
