package embedded_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers/rabbitmq/embedded"
)

func TestOptions(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:5672", "nonsense"} {
		for _, o := range []embedded.Options{{AMQPAddr: addr}, {AdminAddr: addr}} {
			if s, err := embedded.Open(t.Context(), o); err == nil {
				t.Errorf("%+v was accepted", o)
				_ = s.Close()
			}
		}
	}
	s, err := embedded.Open(t.Context(), embedded.Options{AMQPAddr: "localhost:0", User: "me", Password: "a b/c"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, err := amqp.Dial(s.URL())
	if err != nil {
		t.Fatal(s.URL(), err)
	}
	_ = c.Close()
}

// TestStart: a lab must not wait for its broker. The best of several counts,
// for the machine has other work to do.
func TestStart(t *testing.T) {
	best := time.Hour
	for range 100 { // a busy machine may need several tries to show it once
		if best <= 10*time.Millisecond {
			break
		}
		start := time.Now()
		s, err := embedded.Open(t.Context(), embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := amqp.Dial(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
		_ = c.Close()
		_ = s.Close()
	}
	if t.Logf("%v", best); best > 10*time.Millisecond {
		t.Errorf("%v from nothing to a connected client", best)
	}
}

// TestClose cuts busy clients, also through the context, and may come twice.
func TestClose(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := embedded.Open(ctx, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		newAdmin(t, s).do("GET", "/api/overview", nil) // leaves an idle connection
		var clients sync.WaitGroup
		running := make(chan struct{}, 4)
		for range 4 {
			clients.Go(func() { busy(t, s.URL(), running) })
		}
		for range 4 {
			<-running
		}
		silent, err := net.Dial("tcp", amqpAddr(t, s)) // never says a word
		if err != nil {
			t.Fatal(err)
		}
		if byContext {
			cancel()
			clients.Wait() // ends without any Close
		}
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(func() { _ = s.Close() })
		}
		closers.Wait()
		clients.Wait()
		_ = silent.Close()
		if c, err := amqp.Dial(s.URL()); err == nil {
			_ = c.Close()
			t.Error("still there")
		}
	}
}

func amqpAddr(t *testing.T, s *embedded.Server) string {
	t.Helper()
	u, err := amqp.ParseURI(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
}

// busy publishes to itself until it is cut.
func busy(t *testing.T, url string, running chan<- struct{}) {
	c, err := amqp.Dial(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	ch, err := c.Channel()
	if err != nil {
		t.Error(err)
		return
	}
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Error(err)
		return
	}
	ds, err := ch.Consume(q.Name, "", false, false, false, false, nil)
	if err != nil {
		t.Error(err)
		return
	}
	if ch.Publish("", q.Name, false, false, amqp.Publishing{}) != nil {
		return
	}
	first := true
	for d := range ds {
		if first {
			running <- struct{}{}
			first = false
		}
		if d.Ack(false) != nil || ch.Publish("", q.Name, false, false, amqp.Publishing{Body: d.Body}) != nil {
			return
		}
	}
}

// TestManyClients is for the race detector: several connections on the same
// queues, some of which are cut.
func TestManyClients(t *testing.T) {
	s, _, ch := open(t)
	if _, err := ch.QueueDeclare("shared", false, false, false, false, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("dead", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	const n = 500
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { produce(t, s.URL(), n) })
		clients.Go(func() { consumeSome(t, s.URL(), i) })
	}
	clients.Wait()
	shared, err := ch.QueueDeclarePassive("shared", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := ch.QueueDeclarePassive("dead", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shared.Messages+dead.Messages, 4*n-4*100; got != want {
		t.Errorf("%d messages, want %d", got, want)
	}
}

func produce(t *testing.T, url string, n int) {
	c, err := amqp.Dial(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	ch, err := c.Channel()
	if err != nil {
		t.Error(err)
		return
	}
	if err := ch.Confirm(false); err != nil {
		t.Error(err)
		return
	}
	for range n {
		dc, err := ch.PublishWithDeferredConfirm("", "shared", false, false, amqp.Publishing{Body: []byte("x")})
		if err != nil || !dc.Wait() {
			t.Error(err)
			return
		}
	}
}

// consumeSome settles 200 messages: a hundred acknowledged, fifty given back,
// fifty dead; then it ends with some unsettled.
func consumeSome(t *testing.T, url string, i int) {
	c, err := amqp.Dial(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	ch, err := c.Channel()
	if err != nil {
		t.Error(err)
		return
	}
	if err := ch.Qos(5+i, 0, false); err != nil {
		t.Error(err)
		return
	}
	ds, err := ch.Consume("shared", "", false, false, false, false, nil)
	if err != nil {
		t.Error(err)
		return
	}
	for k := range 200 {
		d := <-ds
		switch {
		case k%2 == 0:
			err = d.Ack(false)
		case k%4 == 1:
			err = d.Nack(false, true)
		default:
			err = d.Reject(false)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}
