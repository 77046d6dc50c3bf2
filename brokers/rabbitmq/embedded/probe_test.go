package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers/rabbitmq/embedded"
)

// realBroker names a RabbitMQ on which the probe is to be run as well.
const realBroker = "MQLAB_TEST_BROKER_RABBITMQ"

const golden = "testdata/probe.txt"

var update = flag.Bool("update", false, "write the probe's transcript to "+golden)

// TestProbe compares what a client sees on this server with the transcript,
// which a real RabbitMQ gives as well.
func TestProbe(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	got := runProbe(t, s.URL())
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, got)
}

// TestProbeOnRealBroker is the same on RabbitMQ itself.
func TestProbeOnRealBroker(t *testing.T) {
	url := os.Getenv(realBroker)
	if url == "" {
		t.Skip(realBroker + " is not set")
	}
	compare(t, runProbe(t, url))
}

// compare shows every line that differs.
func compare(t *testing.T, transcript string) {
	t.Helper()
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(raw), "\n"), strings.Split(transcript, "\n")
	differ := 0
	section := ""
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if strings.HasPrefix(w, "#") {
			section = w
		}
		if w != g {
			differ++
			t.Errorf("line %d (%s)\nwant %s\ngot  %s", i+1, section, w, g)
		}
	}
	t.Logf("%d of %d lines differ", differ, len(want)-1)
}

// probe is one run. It writes down what a client sees, never how long it took.
type probe struct {
	t   *testing.T
	url string
	out bytes.Buffer
	c   *amqp.Connection
	ch  *amqp.Channel // in confirm mode
}

// bound is how long a thing may take that is sure to happen.
const bound = 15 * time.Second

const prefix = "mqlab-probe."

func name(s string) string { return prefix + s }

func runProbe(t *testing.T, url string) string {
	p := &probe{t: t, url: url}
	p.c = p.dial(amqp.Config{})
	defer func() { _ = p.c.Close() }()
	p.ch = p.channel(p.c)
	p.must(p.ch.Confirm(false))
	p.clean()
	defer p.clean()
	for _, section := range sections() {
		p.say("# %s", section.title)
		section.run(p)
	}
	return p.out.String()
}

type section struct {
	title string
	run   func(*probe)
}

func sections() []section {
	var all []section
	for _, part := range [][]section{deliverySections(), deathSections(), routingSections(), contentSections(), errorSections()} {
		all = append(all, part...)
	}
	return all
}

// clean removes what a probe leaves or a broken one left.
func (p *probe) clean() {
	for _, q := range append(queueNames(), patternNames()...) {
		_, _ = p.ch.QueueDelete(name(q), false, false, false) // one that is not there is no error
	}
	for _, x := range exchangeNames() {
		_ = p.ch.ExchangeDelete(name(x), false, false)
	}
}

func queueNames() []string {
	return []string{"a", "b", "work", "retry", "dlq", "ttl", "max", "bytes", "cycle", "cc1", "cc2", "big", "many",
		"frozen", "auto", "args", "x", "excl", "bound", "cut"}
}

func exchangeNames() []string {
	return []string{"dlx", "direct", "topic", "headers", "fanout", "auto", "gone", "internal", "x"}
}

func (p *probe) say(format string, args ...any) {
	fmt.Fprintf(&p.out, format+"\n", args...)
}

func (p *probe) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *probe) dial(config amqp.Config) *amqp.Connection {
	p.t.Helper()
	c, err := amqp.DialConfig(p.url, config)
	p.must(err)
	return c
}

func (p *probe) channel(c *amqp.Connection) *amqp.Channel {
	p.t.Helper()
	ch, err := c.Channel()
	p.must(err)
	return ch
}

// client is a connection of its own with a channel.
func (p *probe) client() (*amqp.Connection, *amqp.Channel) {
	p.t.Helper()
	c := p.dial(amqp.Config{})
	return c, p.channel(c)
}

// queue declares a fresh durable queue.
func (p *probe) queue(q string, args amqp.Table) {
	p.t.Helper()
	_, err := p.ch.QueueDelete(name(q), false, false, false)
	p.must(err)
	_, err = p.ch.QueueDeclare(name(q), true, false, false, false, args)
	p.must(err)
}

// publish waits for the confirm, so the message is in its queues.
func (p *probe) publish(exchange, key, id string, change func(*amqp.Publishing)) {
	p.t.Helper()
	m := amqp.Publishing{MessageId: id, DeliveryMode: 2, Body: []byte("body of " + id)}
	if change != nil {
		change(&m)
	}
	dc, err := p.ch.PublishWithDeferredConfirm(exchange, key, false, false, m)
	p.must(err)
	p.confirmed(dc)
}

func (p *probe) confirmed(dc *amqp.DeferredConfirmation) bool {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	ok, err := dc.WaitContext(ctx)
	p.must(err)
	return ok
}

// fill publishes messages m0, m1 and so on.
func (p *probe) fill(q string, n int) {
	p.t.Helper()
	for i := range n {
		p.publish("", name(q), fmt.Sprint("m", i), nil)
	}
}

func (p *probe) consume(ch *amqp.Channel, q, tag string) <-chan amqp.Delivery {
	p.t.Helper()
	ds, err := ch.Consume(name(q), tag, false, false, false, false, nil)
	p.must(err)
	return ds
}

// next writes down the next delivery.
func (p *probe) next(ds <-chan amqp.Delivery) amqp.Delivery {
	p.t.Helper()
	select {
	case d, ok := <-ds:
		if !ok {
			p.say("  delivery channel closed")
			return d
		}
		p.say("  %s got %s redelivered=%v tag=%d exchange=%q key=%q", d.ConsumerTag, d.MessageId, d.Redelivered, d.DeliveryTag,
			strings.TrimPrefix(d.Exchange, prefix), strings.TrimPrefix(d.RoutingKey, prefix))
		return d
	case <-time.After(bound):
		p.t.Fatal("no delivery")
		return amqp.Delivery{}
	}
}

// counts polls until the queue has the two figures and writes down the last ones.
func (p *probe) counts(label, q string, ready, consumers int) {
	p.t.Helper()
	end := time.Now().Add(bound)
	for {
		st, err := p.ch.QueueDeclarePassive(name(q), true, false, false, false, nil)
		p.must(err)
		if st.Messages == ready && st.Consumers == consumers || time.Now().After(end) {
			p.say("%s: ready=%d consumers=%d", label, st.Messages, st.Consumers)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// get polls until there is a message and writes it down.
func (p *probe) get(q string, autoAck bool) amqp.Delivery {
	p.t.Helper()
	end := time.Now().Add(bound)
	for {
		d, ok, err := p.ch.Get(name(q), autoAck)
		p.must(err)
		if ok {
			p.say("  get %s: %s redelivered=%v left=%d exchange=%q key=%q", q, d.MessageId, d.Redelivered, d.MessageCount,
				strings.TrimPrefix(d.Exchange, prefix), strings.TrimPrefix(d.RoutingKey, prefix))
			return d
		}
		if time.Now().After(end) {
			p.t.Fatalf("nothing in %s", q)
		}
		time.Sleep(time.Millisecond)
	}
}

// reason words an error of the client.
func reason(err error) string {
	var ae *amqp.Error
	if errors.As(err, &ae) {
		return fmt.Sprintf("%d %s", ae.Code, ae.Reason)
	}
	return fmt.Sprint(err)
}

// cuttable is a connection that can lose its socket, or fall silent.
type cuttable struct {
	net.Conn
	frozen chan struct{}
}

// Write swallows everything once the client is frozen.
func (c *cuttable) Write(b []byte) (int, error) {
	select {
	case <-c.frozen:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func (p *probe) cuttable(heartbeat time.Duration) (*amqp.Channel, *cuttable, func()) {
	p.t.Helper()
	raw := &cuttable{frozen: make(chan struct{})}
	c := p.dial(amqp.Config{Heartbeat: heartbeat, Dial: func(network, addr string) (net.Conn, error) {
		nc, err := amqp.DefaultDial(bound)(network, addr)
		raw.Conn = nc
		return raw, err
	}})
	return p.channel(c), raw, func() { _ = c.Close() }
}
