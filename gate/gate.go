// Package gate is where a process that handles messages waits for a decision.
//
// A role that reaches a named checkpoint sends an arrival and stands still
// until the runner decides. The package knows nothing of brokers, log lines or
// scenarios: an arrival says who came where and with which message, a decision
// says what happens there. How a process is stopped from outside (a signal)
// is not the gate's business, so that arrivals can come from something other
// than mqlab's own roles.
//
// The protocol is one JSON object a line over loopback TCP:
//
//	role  > {"hello":{"step":"consumer-run1","pid":4711,"key":"<secret>"}}
//	runner> {"welcome":{"stop":["after-delivery","before-ack"]}}
//	role  > {"arrive":{"n":7,"checkpoint":"before-ack","message":"01JMQ...1","key":"order-1001"}}
//	runner> {"decide":{"n":7,"do":"pass"}}
//	runner> {"do":"finish"}
//
// Only the checkpoints named in welcome wait; all others are open and cost
// nothing. Decisions come in any order; no answer means held. The connection is
// the role's lifeline: when it ends, at a checkpoint or between two, the role
// must not go on.
package gate

import (
	"fmt"
	"slices"
)

// Checkpoint is a named moment in handling one delivery or one send.
type Checkpoint string

// The checkpoints, named by the operation before or after them.
const (
	AfterDelivery Checkpoint = "after-delivery" // the role has the delivery in hand, nothing was done
	AfterClaim    Checkpoint = "after-claim"    // a dedupe marker is written
	BeforeCommit  Checkpoint = "before-commit"  // inside the business transaction, its end is next
	AfterCommit   Checkpoint = "after-commit"   // the business row is durable
	BeforeAck     Checkpoint = "before-ack"     // the next operation is the acknowledgement
	AfterAck      Checkpoint = "after-ack"      // the broker has the acknowledgement
	BeforePublish Checkpoint = "before-publish" // the next operation is the send
	BeforeConfirm Checkpoint = "before-confirm" // sent, the confirm is not handled yet
	AfterConfirm  Checkpoint = "after-confirm"  // the broker has confirmed
)

// Checkpoints lists every name, in the order in which a delivery can meet them.
func Checkpoints() []Checkpoint {
	return []Checkpoint{BeforePublish, BeforeConfirm, AfterConfirm,
		AfterDelivery, AfterClaim, BeforeCommit, AfterCommit, BeforeAck, AfterAck}
}

// ParseCheckpoint reads a name; before-offset-commit is read as before-ack.
func ParseCheckpoint(s string) (Checkpoint, error) {
	if s == "before-offset-commit" {
		return BeforeAck, nil
	}
	if slices.Contains(Checkpoints(), Checkpoint(s)) {
		return Checkpoint(s), nil
	}
	return "", fmt.Errorf("no checkpoint is named %q", s)
}

// Arrival is a process getting to a checkpoint.
type Arrival struct {
	N          int        `json:"n"` // counts the arrivals of one process from 1
	Checkpoint Checkpoint `json:"checkpoint"`
	Message    string     `json:"message"`       // the message's id
	Key        string     `json:"key,omitempty"` // its business key
}

// Decision is what happens to an arrival.
type Decision string

// The decisions. The role knows no others: kill, term and freeze come from
// outside as signals.
const (
	Pass Decision = "pass" // go on
	Halt Decision = "halt" // end the process here, at once
	Fail Decision = "fail" // the handler returns an error here
)

// ExitGateLost is the exit code of a process whose gate broke.
const ExitGateLost = 70

// ExitHalt is the exit code of a process that was halted at a checkpoint.
const ExitHalt = 137

// The environment variables of the handshake.
const (
	EnvAddress = "MQLAB_GATE"     // tcp:127.0.0.1:PORT
	EnvKey     = "MQLAB_GATE_KEY" // the process's secret, good for one connection
)

// wire is one line in either direction.
type wire struct {
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Arrive  *Arrival `json:"arrive,omitempty"`
	Decide  *decide  `json:"decide,omitempty"`
	Do      string   `json:"do,omitempty"`
}

type hello struct {
	Step string `json:"step"`
	PID  int    `json:"pid"`
	Key  string `json:"key"`
}

type welcome struct {
	Stop []Checkpoint `json:"stop"`
}

type decide struct {
	N  int      `json:"n"`
	Do Decision `json:"do"`
}

const (
	doFinish = "finish"
	doCut    = "cut"
)

// maxLine bounds one protocol line; ids and keys are short, so more is an error.
const maxLine = 64 << 10
