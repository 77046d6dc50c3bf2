package role

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
	"mqlab/labs"
)

const opened = "open consumer-1 prefetch 1 heartbeat 0s"

// failOnce makes the handler fail at the first arrival there.
func failOnce(cp gate.Checkpoint) func(gate.Arrival) gate.Decision {
	failed := false
	return func(a gate.Arrival) gate.Decision {
		if a.Checkpoint == cp && !failed {
			failed = true
			return gate.Fail
		}
		return gate.Pass
	}
}

func TestConsumer(t *testing.T) {
	lost := fmt.Errorf("receive: %w", brokers.ErrConnectionLost)
	tests := map[string]struct {
		consumer string // settings
		deliver  []string
		set      func(*stage)
		code     int
		words    []string
		asked    []string
	}{
		"finish on an empty queue": {
			words: []string{"done"}, asked: []string{opened, "close"}},
		"three and finish": {
			deliver: []string{"order-1001", "order-1002", "order-1003"},
			words:   []string{"received", "business_committed", "received", "business_committed", "received", "business_committed", "done"},
			asked:   []string{opened, "ack order-1001", "ack order-1002", "ack order-1003", "close"}},
		"settings reach the broker": {
			consumer: "name: c-2, prefetch: 5, heartbeat: 2s",
			words:    []string{"done"}, asked: []string{"open c-2 prefetch 5 heartbeat 2s", "close"}},
		"a duplicate": {
			deliver: []string{"order-1001", "again order-1001"},
			words:   []string{"received", "business_committed", "received", "duplicate_skipped", "done"},
			asked:   []string{opened, "ack order-1001", "ack order-1001", "close"}},
		"so many and no more": {
			deliver: []string{"order-1001", "order-1002", "order-1003"},
			set:     func(st *stage) { st.opts.Received = 2 },
			words:   []string{"received", "business_committed", "received", "business_committed", "done"},
			asked:   []string{opened, "ack order-1001", "ack order-1002", "close"}},
		"an order that is invalid is given back for good": {
			deliver: []string{"poison-message", "order-1001"},
			words:   []string{"received", "business_failed", "received", "business_committed", "done"},
			asked:   []string{opened, "nack order-poison requeue=false", "ack order-1001", "close"}},
		"a body that is no message is given back for good": {
			set: func(st *stage) {
				st.broker.queue = []handed{{m: brokers.Message{ID: "m", Key: "k", Body: []byte("\x00{")}}}
			},
			words: []string{"received", "business_failed", "done"},
			asked: []string{opened, "nack k requeue=false", "close"}},
		"an injected failure is tried again": {
			deliver: []string{"order-1001"},
			set:     func(st *stage) { st.decide = failOnce(gate.BeforeCommit) },
			words:   []string{"received", "business_failed", "received", "business_committed", "done"},
			asked:   []string{opened, "nack order-1001 requeue=true", "ack order-1001", "close"}},
		"a failure right after the delivery": {
			deliver: []string{"order-1001"},
			set:     func(st *stage) { st.decide = failOnce(gate.AfterDelivery) },
			words:   []string{"received", "business_failed", "received", "business_committed", "done"},
			asked:   []string{opened, "nack order-1001 requeue=true", "ack order-1001", "close"}},
		"a failure after the commit comes again as a duplicate": {
			deliver: []string{"order-1001"},
			set:     func(st *stage) { st.decide = failOnce(gate.BeforeAck) },
			words:   []string{"received", "business_committed", "business_failed", "received", "duplicate_skipped", "done"},
			asked:   []string{opened, "nack order-1001 requeue=true", "ack order-1001", "close"}},
		"a failure after the ack is too late to give back": {
			deliver: []string{"order-1001", "order-1002"},
			set:     func(st *stage) { st.decide = failOnce(gate.AfterAck) },
			words:   []string{"received", "business_committed", "business_failed", "received", "business_committed", "done"},
			asked:   []string{opened, "ack order-1001", "ack order-1002", "close"}},
		"the work failed after the ack": {
			consumer: "design: ack-first",
			deliver:  []string{"order-1001"},
			set:      func(st *stage) { st.decide = failOnce(gate.BeforeCommit) },
			words:    []string{"received", "business_failed", "done"},
			asked:    []string{opened, "ack order-1001", "close"}},
		"the broker refuses the ack": {
			deliver: []string{"order-1001", "order-1002"},
			set: func(st *stage) {
				st.broker.ackErr = fmt.Errorf("ack: %w: %w: unknown delivery tag", brokers.ErrAckRefused, brokers.ErrRefused)
			},
			code:  ExitRefused,
			words: []string{"received", "business_committed", "ack_refused", "failed"},
			asked: []string{opened, "ack order-1001", "close"}},
		"the broker refuses the ack and says no more": {
			deliver: []string{"order-1001"},
			set:     func(st *stage) { st.broker.ackErr = fmt.Errorf("ack: %w", brokers.ErrAckRefused) },
			code:    ExitRefused,
			words:   []string{"received", "business_committed", "ack_refused", "failed"},
			asked:   []string{opened, "ack order-1001", "close"}},
		"the ack finds no connection": {
			deliver: []string{"order-1001"},
			set: func(st *stage) {
				st.broker.ackErr = fmt.Errorf("ack: %w: %w", brokers.ErrAckRefused, brokers.ErrConnectionLost)
			},
			code:  ExitConnectionLost,
			words: []string{"received", "business_committed", "ack_refused", "failed"},
			asked: []string{opened, "ack order-1001", "close"}},
		"the nack finds no connection": {
			deliver: []string{"poison-message"},
			set:     func(st *stage) { st.broker.nackErr = lost },
			code:    ExitConnectionLost,
			words:   []string{"received", "business_failed", "failed"},
			asked:   []string{opened, "nack order-poison requeue=false", "close"}},
		"the connection is lost": {
			deliver: []string{"order-1001"},
			set:     func(st *stage) { st.broker.broken = true },
			code:    ExitConnectionLost,
			words:   []string{"received", "business_committed", "failed"},
			asked:   []string{opened, "ack order-1001", "close"}},
		"there is no broker": {
			set:  func(st *stage) { st.broker.openErr = lost },
			code: ExitConnectionLost, words: []string{"failed"}, asked: []string{opened}},
		"there is no queue": {
			set:  func(st *stage) { st.broker.openErr = fmt.Errorf("%w: %w", brokers.ErrRefused, brokers.ErrNotFound) },
			code: ExitRefused, words: []string{"failed"}, asked: []string{opened}},
		"the end fails": { // so there is no line that says that it went well
			set:  func(st *stage) { st.broker.closeErr = errors.New("close: broken pipe") },
			code: ExitFailed, words: []string{"failed"}, asked: []string{opened, "close"}},
		"a pool reports what failed in it": {
			consumer: "design: async-pool",
			deliver:  []string{"order-1001"},
			set:      func(st *stage) { st.decide = failOnce(gate.BeforeCommit) },
			code:     ExitFailed,
			words:    []string{"received", "failed"},
			asked:    []string{opened, "ack order-1001", "close"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, scenario(tt.consumer))
			st.deliver(tt.deliver...)
			if tt.set != nil {
				tt.set(st)
			}
			if code := st.run("consumer"); code != tt.code {
				t.Errorf("ended with %d, want %d", code, tt.code)
			}
			st.wantWords(tt.words...)
			asked := st.broker.asked()
			asked = slices.CompactFunc(asked, func(a, b string) bool { return a == "close" && b == "close" }) // it is idempotent
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked the broker %q, want %q", asked, tt.asked)
			}
			if (st.errs.String() != "") != (tt.code != 0) {
				t.Errorf("its error output is %q", st.errs)
			}
			if slices.Contains(tt.words, "done") {
				l := st.lines("done")[0]
				n := strings.Count(strings.Join(tt.words, " "), "received")
				if l.Get("queue") != "orders.crash" || l.Get("received") != fmt.Sprint(n) {
					t.Errorf("the last line is %s, want received=%d", l, n)
				}
			}
		})
	}
}

// On SIGTERM the subscription is cancelled before the delivery in hand is
// acknowledged, so that its ack does not bring the next one.
func TestConsumerOnSIGTERM(t *testing.T) {
	st := newStage(t, scenario(""))
	st.deliver("order-1001", "order-1002")
	cancelled := make(chan struct{})
	st.decide = func(a gate.Arrival) gate.Decision {
		if a.Checkpoint != gate.BeforeAck {
			return gate.Pass
		}
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(patience); !slices.Contains(st.broker.asked(), "cancel"); {
			if time.Now().After(end) {
				t.Error("the subscription was not cancelled")
				break
			}
			time.Sleep(time.Millisecond)
		}
		close(cancelled)
		return gate.Pass
	}
	if code := st.run("consumer"); code != 0 {
		t.Fatalf("ended with %d: %s", code, st.errs)
	}
	<-cancelled
	asked := slices.Compact(st.broker.asked())
	if want := []string{opened, "cancel", "ack order-1001", "close"}; !slices.Equal(asked, want) {
		t.Errorf("asked the broker %q, want %q", asked, want)
	}
	st.wantWords("received", "business_committed", "stopping", "done")
	if len(st.broker.queue) != 1 {
		t.Errorf("%d deliveries are left, want the one that was never taken", len(st.broker.queue))
	}
}

// A role whose gate breaks ends at once with 70, also between two checkpoints.
func TestRoleWhoseGateBreaks(t *testing.T) {
	st := newStage(t, scenario(""))
	gone := make(chan struct{})
	st.opts.Exit = func(code int) {
		if code == ExitGateLost {
			close(gone)
		}
	}
	st.broker.onEmpty = func() { // it waits for a delivery, not for a decision
		if err := st.door.Close(); err != nil {
			t.Error(err)
		}
		<-gone
		st.broker.broken = true
	}
	st.run("consumer")
	select {
	case <-gone:
	default:
		t.Error("it did not end")
	}
}

// A halt is os.Exit: the last line is crash_injected, nothing is acknowledged,
// and the store holds what was committed, nothing else.
func TestHalt(t *testing.T) {
	for cp, wantRows := range map[gate.Checkpoint]int{gate.AfterDelivery: 0, gate.AfterClaim: 0, gate.BeforeCommit: 0, gate.AfterCommit: 1, gate.BeforeAck: 1} {
		t.Run(string(cp), func(t *testing.T) {
			st := newStage(t, scenario(""))
			st.decide = func(a gate.Arrival) gate.Decision {
				if a.Checkpoint == cp {
					return gate.Halt
				}
				return gate.Pass
			}
			dir := folderOf(t, scenario(""))
			c := command(t, partConsumer, dir, st.opts.Store, "order-1001")
			c.Env = append(c.Env, st.expect("consumer", gate.Checkpoints()...)...)
			c.Stdout, c.Stderr = st.out, io.Discard
			c.Run() //nolint:errcheck // the code is what counts
			if code := c.ProcessState.ExitCode(); code != ExitHalt {
				t.Errorf("ended with %d, want %d", code, ExitHalt)
			}
			all := st.lines("")
			if last := all[len(all)-1]; last.Get("status") != "crash_injected" || last.Get("aggregateId") != "order-1001" {
				t.Errorf("its last line is %s", last)
			}
			rows, markers := st.left()
			if len(rows) != wantRows || len(markers) != wantRows {
				t.Errorf("left are the rows %v and the markers %v, want %d of each", rows, markers, wantRows)
			}
		})
	}
}

// What a role writes has only words and keys of the tables.
func TestWordsAndKeys(t *testing.T) {
	for design := range labs.Designs() {
		st := stageOf(t, design)
		st.deliver("order-1001", "again order-1001", "poison-message")
		st.broker.ackErr = nil
		st.run("consumer")
		st.run("inspect-db")
		for _, l := range st.lines("") {
			if _, ok := labs.Words()[l.Get("status")]; !ok {
				t.Errorf("%s: no word is %q: %s", design, l.Get("status"), l)
			}
			for _, p := range l.Pairs {
				if !slices.Contains(labs.Keys(), p.Key) {
					t.Errorf("%s: no key is %q: %s", design, p.Key, l)
				}
			}
		}
	}
}
