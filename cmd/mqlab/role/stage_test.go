package role

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
	"mqlab/labs"
)

// patience bounds what must happen soon; a test that needs it has failed.
const patience = 30 * time.Second

// stage is where one role plays: a lab, a broker in memory, a gate of its own.
type stage struct {
	t      *testing.T
	broker *fakeBroker
	opts   Options
	door   *gate.Server
	guest  *gate.Guest
	lab    *labs.Lab
	out    *outputs
	errs   *outputs

	// decide answers an arrival; the default lets everything pass.
	decide func(gate.Arrival) gate.Decision

	mu   sync.Mutex
	came []gate.Arrival
	exit []int // what was given to os.Exit
}

// outputs is a buffer that several goroutines may write to.
type outputs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *outputs) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *outputs) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// scenario is a lab's text with these settings of the consumer.
func scenario(consumer string) string {
	return "summary: a stage\ndestination: {queue: orders.crash}\nmessages: [order-1001, order-1002, order-1003, poison-message]\nconsumer: {" + consumer + "}\n" +
		"steps:\n  - {name: setup}\n  - {name: producer}\n  - {name: consumer}\n  - {name: inspect-db}\n"
}

// folderOf is a user's own folder with the one lab rabbitmq/consumer-crash.
func folderOf(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"labs/rabbitmq/consumer-crash.yaml": text, "expected/rabbitmq/consumer-crash.yaml": "x: {exit: consumer, want: 0}\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func catalogueOf(t testing.TB, text string) *labs.Catalogue {
	t.Helper()
	dir := folderOf(t, text)
	c, err := labs.NewCatalogue(os.DirFS(dir)).In(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newStage(t *testing.T, text string) *stage {
	t.Helper()
	st := &stage{t: t, broker: &fakeBroker{}, out: &outputs{}, errs: &outputs{}}
	at, err := brokers.ParseAddress("amqp://guest:hush@127.0.0.1:5672")
	if err != nil {
		t.Fatal(err)
	}
	st.opts = Options{Lab: "rabbitmq/consumer-crash", Run: "r1", Store: t.TempDir(), Address: at, Catalogue: catalogueOf(t, text),
		Registry: brokers.NewRegistry(st.broker), Out: st.out, Err: st.errs,
		Exit: func(code int) { // it must not return to a role that goes on
			st.mu.Lock()
			st.exit = append(st.exit, code)
			st.mu.Unlock()
		}}
	if st.lab, err = st.opts.Catalogue.Load(st.opts.Lab); err != nil {
		t.Fatal(err)
	}
	if st.door, err = gate.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.door.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// deliver puts fixtures into the queue; "again order-1001" is one that the
// broker marks as redelivered.
func (st *stage) deliver(fixtures ...string) {
	st.t.Helper()
	for _, name := range fixtures {
		name, again := strings.CutPrefix(name, "again ")
		f, ok := st.lab.Fixtures[name]
		if !ok {
			st.t.Fatalf("no fixture %s", name)
		}
		st.broker.queue = append(st.broker.queue, handed{brokers.Message{ID: f.Envelope.MessageID, Key: f.Envelope.AggregateID, Body: f.Body}, again})
	}
}

// expect makes the gate let the step in, and the environment that leads to it.
func (st *stage) expect(step string, stops ...gate.Checkpoint) []string {
	st.guest = &gate.Guest{Step: step, Stop: stops, Gone: func() {}, Came: func(a gate.Arrival) {
		st.mu.Lock()
		st.came = append(st.came, a)
		st.mu.Unlock()
		do := gate.Pass
		if st.decide != nil {
			do = st.decide(a)
		}
		if do != "" {
			st.guest.Decide(a.N, do) //nolint:errcheck // a role that is gone needs no answer
		}
	}}
	return st.door.Expect(st.guest)
}

// run plays a role to its end in this process and returns its exit code. A
// consumer is told to finish when its queue is empty.
func (st *stage) run(role string) int {
	st.t.Helper()
	step := role
	if st.opts.Step != "" {
		step = st.opts.Step
	}
	for _, kv := range st.expect(step, gate.Checkpoints()...) {
		name, value, _ := strings.Cut(kv, "=")
		st.t.Setenv(name, value)
	}
	if st.broker.onEmpty == nil {
		st.broker.onEmpty = func() {
			if err := st.guest.Finish(); err != nil {
				st.t.Error(err)
			}
		}
	}
	o := st.opts
	o.Role = role
	ended := make(chan int, 1)
	go func() { ended <- Run(st.t.Context(), o) }()
	select {
	case code := <-ended:
		return code
	case <-time.After(patience):
		st.t.Fatalf("%s hangs; its output:\n%s%s", role, st.out, st.errs)
		return -1
	}
}

// arrivals are the checkpoints that were reached for a message, in order, and
// empties the record.
func (st *stage) arrivals() []gate.Checkpoint {
	st.mu.Lock()
	defer st.mu.Unlock()
	var cps []gate.Checkpoint
	for _, a := range st.came {
		cps = append(cps, a.Checkpoint)
	}
	st.came = nil
	return cps
}

// lines are the role's own lines with that status; without one, all of them.
func (st *stage) lines(status string) []labs.Line {
	st.t.Helper()
	var ls []labs.Line
	for text := range strings.SplitSeq(strings.TrimSuffix(st.out.String(), "\n"), "\n") {
		if text == "" {
			continue
		}
		l, own, err := labs.ParseLine(text)
		if !own || err != nil {
			st.t.Errorf("a role wrote %q: %v", text, err)
		}
		if status == "" || l.Get("status") == status {
			ls = append(ls, l)
		}
	}
	return ls
}

// words are the status words of the role's own lines, without the gate's.
func (st *stage) words() []string {
	st.t.Helper()
	var ws []string
	for _, l := range st.lines("") {
		if l.Prefix != "replay-gate" {
			ws = append(ws, l.Get("status"))
		}
	}
	return ws
}

// left opens the default store and says what is in it.
func (st *stage) left() (rows []Row, markers []string) {
	st.t.Helper()
	s, err := OpenStore(st.t.Context(), filepath.Join(st.opts.Store, labs.DefaultStore+".db"), "look")
	if err != nil {
		st.t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it was only read
	if rows, err = s.Rows(st.t.Context()); err != nil {
		st.t.Fatal(err)
	}
	if markers, err = s.Markers(st.t.Context()); err != nil {
		st.t.Fatal(err)
	}
	return rows, markers
}

// paidRows counts the rows whose work is done.
func paidRows(rows []Row) int {
	n := 0
	for _, r := range rows {
		if r.Status == paid {
			n++
		}
	}
	return n
}

func (st *stage) wantWords(want ...string) {
	st.t.Helper()
	if got := st.words(); !slices.Equal(got, want) {
		st.t.Errorf("logged %q, want %q\n%s", got, want, st.errs)
	}
}
