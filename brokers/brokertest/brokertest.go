// Package brokertest holds a driver to the contract of package brokers.
//
// Run plays some thirty short cases against a running broker. Each has a
// destination of its own and writes what the broker did to a transcript in
// which nothing depends on time, ports or names on the wire: the transcript of
// a stand-in can be compared line by line with that of the real broker.
//
// A driver's test calls Run from a test and Child from TestMain; the children
// are consumers that die in the middle of their work.
package brokertest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqlab/brokers"
)

// Subject is a driver with a running broker, and what is known of the two. The
// first four fields are needed; a case that lacks one of the others is skipped
// and says so.
type Subject struct {
	Driver  brokers.Driver
	Address brokers.Address
	// Destination is a plain destination that keeps messages in order. Its
	// Suffix is replaced, so that cases and runs never meet.
	Destination brokers.Destination
	// Marks are what the driver can know of a message that comes again.
	Marks Marks

	// Lacks lists what this broker cannot do though its product can.
	Lacks []brokers.Capability
	// Transcript gets one line for each thing the broker did, below a line with
	// "# " and the case's name. Nil means that nobody wants to know.
	Transcript io.Writer
	// Consumer are the settings of every consumer; its names and its prefetch are
	// replaced.
	Consumer brokers.ConsumerOptions
	// Habits are what this product does in its own way.
	Habits Habits
	// Other is Destination with settings that contradict it.
	Other brokers.Destination
	// Child makes the command that starts this test binary again, so that its
	// TestMain calls Child with this name. env is to be added to its environment.
	Child func(ctx context.Context, name string, env ...string) *exec.Cmd
	// Cut puts something between a driver and the broker: the address that leads
	// through it, and what breaks every connection there and admits no more. Nil
	// means a TCP proxy in front of the address's host, which will do for a
	// broker that does not send its clients elsewhere.
	Cut func(t *testing.T, at brokers.Address) (through brokers.Address, cut func())
	// Elsewhere is the same broker's address with a vhost or namespace in it
	// that does not exist.
	Elsewhere func(at brokers.Address) brokers.Address
	// Restart kills the broker and starts it again on the same data.
	Restart func(ctx context.Context) error
	// Skip are cases that cannot be played here, with the reason.
	Skip map[string]string
	// Leaks are goroutines that a client library leaves behind, each with a
	// reason where it is listed.
	Leaks []goleak.Option
}

// Marks are the marks of a message that comes again. The field Consumer is not
// looked at.
type Marks struct {
	First  brokers.Marks // it was never handed over before
	Again  brokers.Marks // its consumer ended without settling it
	Nacked brokers.Marks // its consumer gave it back with Nack and requeue
}

// Habits are what products do each in their own way. The zero value is what
// RabbitMQ does.
type Habits struct {
	// LateAckTaken: an ack from a consumer that was cut off, or whose message is
	// in other hands by now, is answered as if it counted.
	LateAckTaken bool
	// SecondAckTaken: a second ack of the same delivery is answered like the
	// first one.
	SecondAckTaken bool
	// OneAtATime: of several consumers one gets all messages of the destination.
	OneAtATime bool
	// OneConsumer: while a destination has a consumer, another one is refused.
	OneConsumer bool
	// Ahead is how many deliveries a client takes beyond its prefetch, at a
	// moment of its own.
	Ahead int64
	// Uncounted: what was handed out is not counted, unacknowledged is always 0.
	Uncounted bool
}

// testCase is one named expectation.
type testCase struct {
	name    string
	run     func(*scene)
	needs   []brokers.Capability
	timeout time.Duration // 0 means caseTimeout
}

// cases lists the suite. The names stand in golden files.
func cases() []testCase {
	return slices.Concat(deliveryCases(), deathCases(), stateCases(),
		contentCases(), endCases(), addressCases())
}

// Run plays every case in a subtest of its own, one after the other.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if s.Transcript == nil {
		s.Transcript = io.Discard
	}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			// Registered first and so run last: when everything that the case
			// opened is closed, nothing of it may go on.
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if err := goleak.Find(append(slices.Clone(s.Leaks), before)...); err != nil {
					t.Error(err)
				}
			})
			if _, err := fmt.Fprintf(s.Transcript, "# %s\n", c.name); err != nil {
				t.Fatal(err)
			}
			sc := newScene(t, s, cmp.Or(c.timeout, caseTimeout))
			if reason, ok := s.Skip[c.name]; ok {
				sc.skip(reason)
			}
			for _, need := range c.needs {
				if slices.Contains(s.Lacks, need) {
					sc.skip("this broker lacks " + string(need))
				}
			}
			c.run(sc)
		})
	}
}
