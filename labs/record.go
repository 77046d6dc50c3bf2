package labs

import (
	"time"

	"mqlab/brokers"
)

// RecordSchema is the version of run.json and replay.json.
const RecordSchema = 1

// Record is run.json: everything about a run that is not a log line.
type Record struct {
	Schema   int            `json:"schema"`
	Complete bool           `json:"complete"` // false while the run goes on and after an interruption
	Run      string         `json:"run"`      // the run's id, as it stands in names on the wire
	Product  string         `json:"product"`
	Lab      string         `json:"lab"` // the name behind the slash
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended"`
	Broker   brokers.Origin `json:"broker"`
	Version  string         `json:"mqlab"`
	Client   string         `json:"client"` // the client library with its version
	Scenario File           `json:"scenario"`
	Expected File           `json:"expected"`
	// Fixtures are the bodies of the messages that the scenario names.
	Fixtures map[string]string `json:"fixtures,omitempty"`
	Steps    []StepRecord      `json:"steps"`
	Faults   []FaultRecord     `json:"faults"`
	States   []StateRecord     `json:"states"`
	// Spoiled says why nothing can be concluded from the run, whatever the
	// lines say; empty for a run that went as planned.
	Spoiled []string `json:"spoiled,omitempty"`
	// Left says what could not be removed from a broker that goes on; the next
	// run there does it.
	Left        string `json:"left,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
}

// StepRecord is one step as it was run.
type StepRecord struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Store   string    `json:"store,omitempty"` // the database it writes or reads
	Command []string  `json:"command,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Exit is the exit code, or 128 + the signal; nil while the step runs and
	// when it never started.
	Exit    *int   `json:"exit"`
	Signal  string `json:"signal,omitempty"`
	Planned int    `json:"planned"` // the exit that the scenario leads to
}

// FaultRecord is one declared fault and whether it struck.
type FaultRecord struct {
	Step    string `json:"step"`
	Kind    string `json:"kind"`
	How     string `json:"how,omitempty"`
	At      string `json:"at"`
	Message string `json:"message,omitempty"` // the fixture's name
	Arrival int    `json:"arrival,omitempty"`
	Struck  int    `json:"struck"` // how often
	Wanted  int    `json:"wanted"` // how often it should have
	Seen    int    `json:"seen"`   // matching arrivals, for the reason why it did not strike
}

// StateRecord is the broker's answer at one instant.
type StateRecord struct {
	Seq        int            `json:"seq"`           // the runner's own order
	At         string         `json:"at"`            // end, inspect or checkpoint
	Step       string         `json:"step"`          // whose arrival or inspection; empty at the end
	Checkpoint string         `json:"checkpoint"`    // empty unless at is checkpoint
	Message    string         `json:"message"`       // the message's id
	Key        string         `json:"key"`           // its business key
	Of         string         `json:"of"`            // the destination's plain name
	Time       time.Time      `json:"time"`          // when it answered
	State      *brokers.State `json:"state"`         // nil when the broker did not answer
	Err        string         `json:"err,omitempty"` // why it did not
}

// The places at which the broker is asked for its state.
const (
	AtEnd        = "end"
	AtInspect    = "inspect"
	AtCheckpoint = "checkpoint"
)

// Moment is one entry of replay.json: what the runner saw or did, in its order.
type Moment struct {
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // line, start, arrival, state, decision, signal, finish, exit
	Step string    `json:"step,omitempty"`

	// Of a line: where it stands and its text's SHA-256.
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Content string `json:"content,omitempty"`

	// Of an arrival and of the decision about it.
	N          int    `json:"n,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Message    string `json:"message,omitempty"`
	Key        string `json:"key,omitempty"`

	Do    string         `json:"do,omitempty"`    // of a decision or a signal
	Exit  *int           `json:"exit,omitempty"`  // of an exit
	State *brokers.State `json:"state,omitempty"` // of a state
	Err   string         `json:"err,omitempty"`
}

// Replay is replay.json.
type Replay struct {
	Schema  int      `json:"schema"`
	Run     string   `json:"run"`
	Moments []Moment `json:"moments"`
}

// The names of the files in a run folder beside STEP.out.txt and STEP.err.txt.
const (
	RecordFile = "run.json"
	ReplayFile = "replay.json"
	ReportFile = "assert.out.txt"
	// BrokerLogFile is what the broker wrote, in the folder of a run that proves
	// nothing.
	BrokerLogFile = "broker.log"
	outSuffix     = ".out.txt"
	errSuffix     = ".err.txt"
	partial       = ".partial"
)
