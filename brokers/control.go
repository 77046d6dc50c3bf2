package brokers

import (
	"bytes"
	"context"
	"errors"
	"strings"
)

// Act is something done to a broker's process.
type Act string

// The acts on a broker. A kill is SIGKILL, a stop SIGTERM; both are ended by a
// start on the same data. A pause is SIGSTOP, ended by a resume. A disconnect
// takes the broker off the network, so that its side of the connections learns
// nothing of their end; it is ended by a connect.
const (
	Kill    Act = "kill"
	Stop    Act = "stop"
	Start   Act = "start"
	Restart Act = "restart"
	Pause   Act = "pause"
	Resume  Act = "resume"

	Disconnect Act = "disconnect"
	Connect    Act = "connect"
)

// Acts lists them all, for checking a scenario.
func Acts() []Act { return []Act{Kill, Stop, Start, Restart, Pause, Resume, Disconnect, Connect} }

// ErrNotOurs says that a broker was not started by this run, which therefore
// does nothing to its process.
var ErrNotOurs = errors.New("the broker is not this run's own")

// Origin says where a broker came from; it stands in every report.
type Origin struct {
	Product  string       `json:"product"`
	Provider string       `json:"provider"` // container, native, embedded or url
	Version  string       `json:"version"`  // the broker's own word
	Image    string       `json:"image,omitempty"`
	Address  Address      `json:"address"`
	Adopted  bool         `json:"adopted,omitempty"` // it ran before this run and goes on after it
	Lacks    []Capability `json:"lacks,omitempty"`   // what this provider cannot do though the product can
}

// Simulated reports whether the broker is mqlab's own stand-in.
func (o Origin) Simulated() bool { return o.Provider == "embedded" }

// String is the origin as a report shows it: "native 3.10.8" or
// "embedded (simulated)".
func (o Origin) String() string {
	s := o.Provider
	if o.Simulated() {
		return s + " (simulated)"
	}
	if o.Version != "" {
		s += " " + o.Version
	}
	if o.Image != "" {
		s += " " + o.Image
	}
	if o.Adopted && o.Provider != "url" {
		s += " (kept running)"
	}
	return s
}

// Control is a broker that runs now, as its provider holds it.
type Control interface {
	Origin() Origin
	// Died is closed when a broker process that the provider started has
	// ended; it is nil where the provider cannot know.
	Died() <-chan struct{}
	// Log is what the broker has written so far, its last megabyte at most; may
	// be empty.
	Log() []byte
	// Act does something to the broker's own process and returns when it is
	// done, after Start and Restart when a message goes through again. An
	// adopted broker is ErrNotOurs.
	Act(ctx context.Context, a Act) error
	// Release ends a broker that was started for this run and leaves an
	// adopted one alone. It is idempotent.
	Release() error
}

// The bounds of LastWords.
const lastLines, lastBytes = 12, 4096

// LastWords is the end of a broker's log as one line, for a report.
func LastWords(log []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(log[max(0, len(log)-lastBytes):])), "\n")
	return strings.Join(lines[max(0, len(lines)-lastLines):], " | ")
}
