package brokers_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"mqlab/brokers"
)

// fake is a driver that does as it is told; what it was not told panics.
type fake struct {
	brokers.Driver
	name, scheme string

	probe, prepare, send, state, remove error
	left                                int64
	calls                               []string
}

func (f *fake) Keys() []string { return []string{"destination.queue"} }
func (f *fake) Name() string   { return f.name }
func (f *fake) Scheme() string { return f.scheme }

func (f *fake) did(what string, err error) error {
	f.calls = append(f.calls, what)
	return err
}

func (f *fake) Probe(context.Context, brokers.Address) (string, error) {
	return "1.2.3", f.did("probe", f.probe)
}

func (f *fake) Prepare(context.Context, brokers.Address, brokers.Destination) error {
	return f.did("prepare", f.prepare)
}

func (f *fake) Remove(context.Context, brokers.Address, brokers.Destination) error {
	return f.did("remove", f.remove)
}

func (f *fake) OpenProducer(context.Context, brokers.Address, brokers.Destination, brokers.ProducerOptions) (brokers.Producer, error) {
	return fakeProducer{f}, nil
}

func (f *fake) OpenInspector(context.Context, brokers.Address) (brokers.Inspector, error) {
	return fakeInspector{f}, nil
}

type fakeProducer struct{ f *fake }

func (p fakeProducer) Send(context.Context, brokers.Message) (brokers.Receipt, error) {
	return brokers.Receipt{}, p.f.did("send", p.f.send)
}
func (p fakeProducer) Close(context.Context) error { return p.f.did("close producer", nil) }

type fakeInspector struct{ f *fake }

func (i fakeInspector) State(context.Context, brokers.Destination) (brokers.State, error) {
	return brokers.State{Left: i.f.left}, i.f.did("state", i.f.state)
}
func (i fakeInspector) Close() error { return i.f.did("close inspector", nil) }

// TestTry: ready means that a message went through and was counted; whatever
// happens, what was made is removed and what was opened is closed.
func TestTry(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name  string
		f     fake
		calls string
		want  string // in the error; "" means none
	}{
		{"ready", fake{left: 1}, "probe prepare send close-producer state close-inspector remove", ""},
		{"no probe", fake{probe: boom}, "probe", "boom"},
		{"no destination", fake{prepare: boom}, "probe prepare", "boom"},
		{"no send", fake{send: boom}, "probe prepare send close-producer remove", "boom"},
		{"no state", fake{state: boom}, "probe prepare send close-producer state close-inspector remove", "boom"},
		{"not counted", fake{left: 0}, "probe prepare send close-producer state close-inspector remove", "counts 0"},
		{"not removed", fake{left: 1, remove: boom}, "probe prepare send close-producer state close-inspector remove", "boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			version, err := brokers.Try(t.Context(), &tt.f, brokers.Address{})
			if got := strings.ReplaceAll(strings.Join(tt.f.calls, "+"), " ", "-"); strings.ReplaceAll(got, "+", " ") != tt.calls {
				t.Errorf("did %s, want %s", got, tt.calls)
			}
			switch {
			case tt.want == "" && (err != nil || version != "1.2.3"):
				t.Errorf("%q, %v", version, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	a, b := &fake{name: "rabbitmq", scheme: "amqp"}, &fake{name: "kafka", scheme: "kafka"}
	r := brokers.NewRegistry(a, b)
	if got := r.Names(); !slices.Equal(got, []string{"rabbitmq", "kafka"}) {
		t.Errorf("%v is not the order of registration", got)
	}
	for _, want := range []*fake{a, b} {
		if got, err := r.Driver(want.name); err != nil || got != brokers.Driver(want) {
			t.Errorf("%s: %v, %v", want.name, got, err)
		}
	}
	for _, name := range []string{"", "nats", "RabbitMQ"} {
		if _, err := r.Driver(name); err == nil || !strings.Contains(err.Error(), "rabbitmq, kafka") {
			t.Errorf("%q: %v does not say what there is", name, err)
		}
	}
	if len(brokers.NewRegistry().Names()) != 0 {
		t.Error("an empty registry has names")
	}
}

func TestRegistryRefusesTwins(t *testing.T) {
	for _, twin := range []*fake{{name: "rabbitmq", scheme: "other"}, {name: "other", scheme: "amqp"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s with scheme %s was taken", twin.name, twin.scheme)
				}
			}()
			brokers.NewRegistry(&fake{name: "rabbitmq", scheme: "amqp"}, twin)
		}()
	}
}

func TestOrigin(t *testing.T) {
	tests := []struct {
		o    brokers.Origin
		want string
	}{
		{brokers.Origin{Provider: "native", Version: "3.10.8"}, "native 3.10.8"},
		{brokers.Origin{Provider: "native", Version: "3.10.8", Adopted: true}, "native 3.10.8 (kept running)"},
		{brokers.Origin{Provider: "container", Version: "4.1.4", Image: "rabbitmq:4.1.4-management"}, "container 4.1.4 rabbitmq:4.1.4-management"},
		{brokers.Origin{Provider: "url", Version: "3.10.8", Adopted: true}, "url 3.10.8"},
		{brokers.Origin{Provider: "url"}, "url"},
		// The version that a stand-in claims is not a broker's.
		{brokers.Origin{Provider: "embedded", Version: "3.10.8"}, "embedded (simulated)"},
	}
	for _, tt := range tests {
		if got := tt.o.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		if got := tt.o.Simulated(); got != (tt.o.Provider == "embedded") {
			t.Errorf("%s: simulated is %t", tt.want, got)
		}
	}
}

func TestOriginInEvidence(t *testing.T) {
	o := brokers.Origin{Product: "rabbitmq", Provider: "url", Version: "3.10.8", Address: secretAddress(t), Adopted: true, Lacks: []brokers.Capability{brokers.Durable}}
	j, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"product":"rabbitmq","provider":"url","version":"3.10.8","address":"amqp://guest@127.0.0.1:5672/shop","adopted":true,"lacks":["durable"]}`
	if string(j) != want {
		t.Errorf("%s\nwant %s", j, want)
	}
}

func TestDestination(t *testing.T) {
	d := brokers.Destination{Queue: "orders"}
	if d.Name() != "orders" || d.OnWire(d.Queue) != "orders" {
		t.Errorf("%q is %q on the wire", d.Name(), d.OnWire(d.Queue))
	}
	d.Suffix = "7f3k"
	if d.Name() != "orders" || d.OnWire(d.Queue) != "orders-mqlab-7f3k" {
		t.Errorf("%q is %q on the wire", d.Name(), d.OnWire(d.Queue))
	}
	j, err := json.Marshal(d)
	if err != nil || string(j) != `{"queue":"orders"}` {
		t.Errorf("%s, %v: a run's suffix is no part of a scenario", j, err)
	}
}

func TestCapabilities(t *testing.T) {
	if got := brokers.Capabilities(); !slices.Equal(got, []brokers.Capability{brokers.Durable, brokers.Quorum, brokers.Network}) {
		t.Error(got)
	}
}
