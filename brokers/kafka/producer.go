package kafka

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mqlab/brokers"
)

// producer sends one record after the other.
type producer struct {
	s      *session
	d      brokers.Destination
	closed atomic.Bool
}

// OpenProducer connects an idempotent producer with acks=all.
func (Driver) OpenProducer(ctx context.Context, at brokers.Address, d brokers.Destination, o brokers.ProducerOptions) (brokers.Producer, error) {
	s, err := open(at, o.ClientName, kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return nil, err
	}
	if _, err := s.topic(ctx, d); err != nil {
		s.close()
		return nil, err
	}
	return &producer{s: s, d: d}, nil
}

// The headers of a record, as the origin of the labs named them.
const (
	headerMessage     = "messageId"
	headerType        = "eventType"
	headerCorrelation = "correlationId"
	headerTrace       = "traceId"
)

// Send returns when every replica in sync has the record.
func (p *producer) Send(ctx context.Context, m brokers.Message) (brokers.Receipt, error) {
	if p.closed.Load() {
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, brokers.ErrClosed)
	}
	r := &kgo.Record{Topic: p.d.OnWire(p.d.Topic), Value: m.Body}
	if m.Key != "" {
		r.Key = []byte(m.Key) // an empty one would send every such record to one partition
	}
	for _, h := range [][2]string{{headerMessage, m.ID}, {headerType, m.Type}, {headerCorrelation, m.CorrelationID}, {headerTrace, m.TraceID}} {
		if h[1] != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
		}
	}
	start := time.Now()
	sending, cancel := p.s.during(ctx)
	defer cancel()
	// The answer comes through a channel because a record whose fate is open
	// keeps its promise for as long as the client goes on trying.
	answer := make(chan error, 1)
	p.s.client.Produce(sending, r, func(_ *kgo.Record, err error) { answer <- err })
	select {
	case err := <-answer:
		if err != nil {
			return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, p.s.reason(ctx, err))
		}
	case <-sending.Done():
		return brokers.Receipt{}, fmt.Errorf("send %s: %w", m.ID, p.s.reason(ctx, sending.Err()))
	}
	return brokers.Receipt{Took: time.Since(start), Fields: place(r)}, nil
}

// place is where a record lies.
func place(r *kgo.Record) []brokers.Field {
	return []brokers.Field{{Key: "partitionOrQueue", Value: strconv.Itoa(int(r.Partition))}, {Key: "offset", Value: strconv.FormatInt(r.Offset, 10)}}
}

// Close ends the connection.
func (p *producer) Close(context.Context) error {
	p.closed.Store(true)
	p.s.close()
	return nil
}
