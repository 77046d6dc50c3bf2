package labs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqlab/brokers"
	"mqlab/gate"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	const whole = `"orderId":"o","customerId":"c","currency":"CNY"`
	tests := map[string]struct {
		payload string
		cents   int64
		good    bool
	}{
		"whole":                     {`{` + whole + `,"amount":199.0}`, 19900, true},
		"cents":                     {`{` + whole + `,"amount":89.55}`, 8955, true},
		"a float's own cents":       {`{` + whole + `,"amount":0.29}`, 29, true},
		"nothing to pay":            {`{` + whole + `,"amount":0}`, 0, true},
		"fields of a later version": {`{` + whole + `,"amount":1,"notes":"x"}`, 100, true},
		"no amount":                 {`{` + whole + `}`, 0, false},
		"a null amount":             {`{` + whole + `,"amount":null}`, 0, false},
		"no customer":               {`{"orderId":"o","currency":"CNY","amount":1}`, 0, false},
		"no currency":               {`{"orderId":"o","customerId":"c","amount":1}`, 0, false},
		"no order":                  {`{"customerId":"c","currency":"CNY","amount":1}`, 0, false},
		"less than nothing":         {`{` + whole + `,"amount":-0.01}`, 0, false},
		"less than a cent":          {`{` + whole + `,"amount":0.005}`, 0, false},
		"too much":                  {`{` + whole + `,"amount":1e300}`, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := ReadEnvelope([]byte(`{"messageId":"m","aggregateId":"o","unknown":1,"payload":` + tt.payload + `}`))
			if err != nil {
				t.Fatal(err)
			}
			o, err := e.Payload.Order()
			switch {
			case tt.good && (err != nil || o != Order{ID: "o", CustomerID: "c", Currency: "CNY", Cents: tt.cents}):
				t.Errorf("Order = %+v, %v; want %d cents", o, err, tt.cents)
			case !tt.good && !errors.Is(err, ErrInvalidOrder):
				t.Errorf("Order = %+v, %v; want ErrInvalidOrder", o, err)
			}
		})
	}
}

func TestReadEnvelopeRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "null", "[]", `"x"`, "{}", `{"messageId":"m"}`, `{"aggregateId":"a"}`, `{"messageId":1,"aggregateId":"a"}`, `{"messageId":"m","aggregateId":"a"}x`, "\x00"} {
		if e, err := ReadEnvelope([]byte(body)); err == nil {
			t.Errorf("ReadEnvelope(%q) = %+v", body, e)
		}
	}
}

func FuzzReadEnvelope(f *testing.F) {
	files, err := filepath.Glob("messages/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"messageId":"m","aggregateId":"a","payload":{"amount":1e308}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := ReadEnvelope(body)
		if err != nil {
			return
		}
		if e.MessageID == "" || e.AggregateID == "" {
			t.Errorf("read %+v", e)
		}
		o, err := e.Payload.Order()
		if err == nil && o.Cents < 0 || err != nil && !errors.Is(err, ErrInvalidOrder) {
			t.Errorf("Order = %+v, %v", o, err)
		}
		l := Line{Prefix: "consumer", Pairs: e.Pairs()}
		if _, own, err := ParseLine(l.String()); !own || err != nil {
			t.Errorf("its line %q: %v, %v", l, own, err)
		}
	})
}

func TestToken(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"01JMQ1":         "s-7-before-ack-01JMQ1-3",
		"":               "s-7-before-ack-none-3",
		"a b=c\n\"d\"/é": "s-7-before-ack-a_b_c__d___-3",
	} {
		got := Token("s", 7, gate.Arrival{N: 3, Checkpoint: gate.BeforeAck, Message: message})
		if got != want || strings.ContainsAny(got, " =\"\n") {
			t.Errorf("Token of %q is %s, want %s", message, got, want)
		}
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	b := newFakeBroker("")
	r := &Runner{Control: b}
	l := &Lab{Scenario: Scenario{Requires: []brokers.Capability{brokers.Durable}}}
	if why := r.Skips(l); why != "" {
		t.Errorf("skipped although nothing is lacking: %s", why)
	}
	b.origin.Provider, b.origin.Lacks = "embedded", []brokers.Capability{brokers.Durable}
	if why := r.Skips(l); why != "it requires durable, which embedded (simulated) lacks" {
		t.Errorf("skipped because %q", why)
	}
	if why := r.Skips(&Lab{}); why != "" {
		t.Errorf("a lab that requires nothing is skipped because %q", why)
	}
}
