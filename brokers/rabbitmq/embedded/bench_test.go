package embedded_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers/rabbitmq/embedded"
)

// benchChannel is a channel with a queue on a server of its own.
func benchChannel(b *testing.B) (*amqp.Channel, string) {
	b.Helper()
	s, err := embedded.Open(b.Context(), embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	c, err := amqp.Dial(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	ch, err := c.Channel()
	if err != nil {
		b.Fatal(err)
	}
	q, err := ch.QueueDeclare("bench", true, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
	return ch, q.Name
}

func benchPublish(b *testing.B, ch *amqp.Channel, queue string) *amqp.DeferredConfirmation {
	dc, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{DeliveryMode: 2, Body: []byte("x")})
	if err != nil {
		b.Fatal(err)
	}
	return dc
}

func perSecond(b *testing.B, what string) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), what+"/s")
}

func BenchmarkConfirms(b *testing.B) {
	ch, queue := benchChannel(b)
	for b.Loop() {
		benchPublish(b, ch, queue).Wait()
	}
	perSecond(b, "confirms")
}

func BenchmarkPipelinedConfirms(b *testing.B) {
	ch, queue := benchChannel(b)
	var open []*amqp.DeferredConfirmation
	b.ResetTimer()
	for range b.N { // not b.Loop: the waits at the end count too
		open = append(open, benchPublish(b, ch, queue))
	}
	for _, dc := range open {
		dc.Wait()
	}
	perSecond(b, "confirms")
}

// BenchmarkAcks consumes from a queue as deep as the benchmark is long.
func BenchmarkAcks(b *testing.B) {
	ch, queue := benchChannel(b)
	var last *amqp.DeferredConfirmation
	for range b.N {
		last = benchPublish(b, ch, queue)
	}
	last.Wait()
	if err := ch.Qos(100, 0, false); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	ds, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		d := <-ds
		if err := d.Ack(false); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, "acks")
}
