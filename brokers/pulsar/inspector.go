package pulsar

import (
	"context"
	"fmt"
	"time"

	"mqlab/brokers"
)

// inspector asks the admin API.
type inspector struct{ a *admin }

// OpenInspector connects to the broker and to its admin API, whose address
// stands in the URL's query as admin=http://host:port, default port 8080 of
// the broker's host.
func (Driver) OpenInspector(ctx context.Context, at brokers.Address) (brokers.Inspector, error) {
	a, err := enter(ctx, at)
	if err != nil {
		return nil, err
	}
	return &inspector{a}, nil
}

// State is what the broker counts at the moment of the question. A topic
// without the subscription is a missing destination too: nobody is owed
// anything.
func (i *inspector) State(ctx context.Context, d brokers.Destination) (brokers.State, error) {
	start := time.Now()
	st, err := i.a.stats(ctx, d)
	if err != nil {
		return brokers.State{}, err
	}
	sub, ok := st.Subscriptions[d.OnWire(d.Readers())]
	if !ok {
		return brokers.State{}, fmt.Errorf("look at topic %s: %w: %w: it has no subscription %s", d.Topic, brokers.ErrRefused, brokers.ErrNotFound, d.Readers())
	}
	consumers := int64(len(sub.Consumers))
	return brokers.State{Left: sub.Backlog, Idle: consumers == 0 && sub.Unacknowledged == 0, Took: time.Since(start), Figures: map[string]*int64{
		"backlog": &sub.Backlog, "unacknowledged": &sub.Unacknowledged, "pending": &sub.Delayed, "consumers": &consumers,
	}}, nil
}

// Close ends the connections.
func (i *inspector) Close() error {
	i.a.close()
	return nil
}
