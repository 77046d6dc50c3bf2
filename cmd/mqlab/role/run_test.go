package role

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqlab/brokers"
	"mqlab/gate"
	"mqlab/labs"
)

func TestUsage(t *testing.T) {
	tests := map[string]struct {
		role string
		set  func(*Options)
		want string
	}{
		"a lab that nobody has":       {"consumer", func(o *Options) { o.Lab = "rabbitmq/no-such" }, "rabbitmq/no-such"},
		"a lab that is no address":    {"consumer", func(o *Options) { o.Lab = "basic" }, "want BROKER/NAME"},
		"a scenario that was changed": {"consumer", func(o *Options) { o.Digest = strings.Repeat("0", 64) }, "was changed while the run went on"},
		"a step of another role":      {"consumer", func(o *Options) { o.Step = "producer" }, "has no step producer with the role consumer"},
		"a step that nobody has":      {"consumer", func(o *Options) { o.Step = "consumer-9" }, "has no step consumer-9"},
		"a role that the lab lacks":   {"relay", func(*Options) {}, "with the role relay"},
		"no broker":                   {"consumer", func(o *Options) { o.Address = brokers.Address{} }, "set " + EnvBroker},
		"no driver":                   {"consumer", func(o *Options) { o.Registry = brokers.NewRegistry() }, `no driver for broker "rabbitmq"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, scenario(""))
			tt.set(&st.opts)
			o := st.opts
			o.Role = tt.role
			if code := Run(t.Context(), o); code != ExitUsage {
				t.Errorf("ended with %d, want %d", code, ExitUsage)
			}
			if got := st.errs.String(); !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("it says %q, want one line with %q in it", got, tt.want)
			}
			if st.out.String() != "" {
				t.Errorf("it logged %q", st.out)
			}
		})
	}
}

func TestLabThatCannotRun(t *testing.T) {
	st := newStage(t, strings.Replace(scenario(""), "consumer: {", "consumer: {design: no-such-design", 1))
	o := st.opts
	o.Role = "consumer"
	if code := Run(t.Context(), o); code != ExitUsage || !strings.Contains(st.errs.String(), "no-such-design") {
		t.Errorf("ended with %d: %s", code, st.errs)
	}
}

// Without a gate in the environment every checkpoint is open.
func TestRoleByHand(t *testing.T) {
	st := newStage(t, scenario(""))
	t.Setenv(gate.EnvAddress, "")
	st.opts.Role, st.opts.Received = "consumer", 1
	st.deliver("order-1001")
	if code := Run(t.Context(), st.opts); code != 0 {
		t.Fatalf("ended with %d: %s", code, st.errs)
	}
	st.wantWords("received", "business_committed", "done")
	if got := st.lines(""); len(got) != 3 {
		t.Errorf("it wrote %v", got)
	}
}

func TestRoleWithAWrongSecret(t *testing.T) {
	st := newStage(t, scenario(""))
	st.expect("consumer")
	t.Setenv(gate.EnvAddress, "tcp:127.0.0.1:1")
	t.Setenv(gate.EnvKey, "wrong")
	o := st.opts
	o.Role = "consumer"
	if code := Run(t.Context(), o); code != ExitGateLost {
		t.Errorf("ended with %d, want %d", code, ExitGateLost)
	}
	if _, there := os.LookupEnv(gate.EnvKey); there {
		t.Error("the secret is still in the environment")
	}
}

func TestProducer(t *testing.T) {
	tests := map[string]struct {
		sendErr error
		decide  func(gate.Arrival) gate.Decision
		code    int
		words   []string
		kind    string
	}{
		"all of them":        {words: []string{"confirmed", "confirmed", "confirmed", "confirmed", "done"}},
		"no place for it":    {sendErr: fmt.Errorf("publish: %w: %w", brokers.ErrRefused, brokers.ErrUnroutable), code: ExitRefused, words: []string{"returned", "failed"}, kind: "refused"},
		"no place, in short": {sendErr: fmt.Errorf("publish: %w", brokers.ErrUnroutable), code: ExitRefused, words: []string{"returned", "failed"}, kind: "refused"},
		"no connection":      {sendErr: fmt.Errorf("publish: %w", brokers.ErrConnectionLost), code: ExitConnectionLost, words: []string{"failed"}, kind: "connection_lost"},
		"something else":     {sendErr: errors.New("out of ink"), code: ExitFailed, words: []string{"failed"}, kind: "error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, scenario(""))
			st.broker.sendErr, st.decide = tt.sendErr, tt.decide
			if code := st.run("producer"); code != tt.code {
				t.Errorf("ended with %d, want %d: %s", code, tt.code, st.errs)
			}
			st.wantWords(tt.words...)
			if tt.kind != "" && st.lines("failed")[0].Get("errorType") != tt.kind {
				t.Errorf("the last line is %s, want errorType=%s", st.lines("failed")[0], tt.kind)
			}
			if tt.code == 0 {
				once := []gate.Checkpoint{gate.BeforePublish, gate.BeforeConfirm, gate.AfterConfirm}
				if got, want := st.arrivals(), slices.Repeat(once, 4); !slices.Equal(got, want) {
					t.Errorf("it passed %v, want %v", got, want)
				}
				for i, h := range st.broker.queue {
					f := st.lab.Fixtures[st.lab.Scenario.Messages[i]]
					if string(h.m.Body) != string(f.Body) || h.m.ID != f.Envelope.MessageID || h.m.Key != f.Envelope.AggregateID || h.m.TraceID != f.Envelope.TraceID {
						t.Errorf("message %d went out as %+v", i, h.m)
					}
				}
			}
		})
	}
}

// What a design needs to find is seeded for every message that a producer can
// send, whichever list names it.
func TestSetupSeeds(t *testing.T) {
	const steps = "  - {name: setup}\n  - {name: producer}\n  - {name: producer-more, role: producer, producer: {messages: [order-1002, order-1003]}}\n  - {name: consumer}\n" +
		"  - {name: consumer-other, role: consumer, consumer: {store: other}}\n"
	for name, head := range map[string]string{
		"the scenario's": "messages: [order-1001, order-1002, poison-message]\n",
		"the producers'": "producer: {messages: [order-1001, order-1002, poison-message]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, "summary: a stage\ndestination: {queue: q}\n"+head+"consumer: {design: state-machine}\nsteps:\n"+steps)
			if code := st.run("setup"); code != 0 {
				t.Fatalf("ended with %d: %s", code, st.errs)
			}
			rows, _ := st.left()
			var got []string
			for _, r := range rows {
				got = append(got, r.Order.ID+" "+r.Status)
			}
			if want := []string{"order-1001 WAIT_PAY", "order-1002 WAIT_PAY", "order-1003 WAIT_PAY"}; !slices.Equal(got, want) {
				t.Errorf("seeded %q, want %q", got, want)
			}
			if _, err := os.Stat(filepath.Join(st.opts.Store, "other.db")); err != nil {
				t.Errorf("the second store: %v", err)
			}
			if st.broker.prepared != 1 {
				t.Errorf("prepared %d times", st.broker.prepared)
			}
		})
	}
}

func TestInspectDB(t *testing.T) {
	st := newStage(t, scenario(""))
	if code := st.run("inspect-db"); code != ExitFailed {
		t.Errorf("a store that no consumer opened: ended with %d, want %d", code, ExitFailed)
	}
	if _, err := os.Stat(filepath.Join(st.opts.Store, labs.DefaultStore+".db")); err == nil {
		t.Error("looking made a store")
	}
	st.deliver("order-1001", "order-1002")
	st.run("consumer")
	st.out.b.Reset()
	if code := st.run("inspect-db"); code != 0 {
		t.Fatalf("ended with %d: %s", code, st.errs)
	}
	st.wantWords("row", "row", "row", "row", "snapshot")
	l := st.lines("snapshot")[0]
	if l.Prefix != "inspect" || l.Get("business_rows") != "2" || l.Get("processed_rows") != "2" {
		t.Errorf("the last line is %s", l)
	}
	if row := st.lines("row")[0]; row.Get("aggregateId") != "order-1001" || row.Get("amountCents") != "19900" || row.Get("state") != paid || row.Get("customerId") != "customer-42" {
		t.Errorf("the first row is %s", row)
	}
}
