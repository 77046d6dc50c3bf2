package brokers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// tryTimeout bounds one try.
	tryTimeout = 5 * time.Second
	// probeTimeout bounds its first question: a broker that is still starting may
	// accept a connection and say nothing.
	probeTimeout = time.Second
)

// Try asks whether a broker is ready in the only sense that counts: a message
// goes through, and the numbers about it can be had. It returns the broker's
// version.
func Try(ctx context.Context, d Driver, at Address) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	probing, stop := context.WithTimeout(ctx, probeTimeout)
	version, err = d.Probe(probing, at)
	stop()
	if err != nil {
		return "", err
	}
	dest := Destination{Topic: "try", Suffix: strings.ToLower(rand.Text()[:10])}
	if slices.Contains(d.Keys(), "destination.queue") {
		dest.Queue, dest.Topic = dest.Topic, ""
	}
	if err := d.Prepare(ctx, at, dest); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Remove(ctx, at, dest)) }()
	return version, through(ctx, d, at, dest)
}

// through sends a message and finds it in the broker's numbers.
func through(ctx context.Context, d Driver, at Address, dest Destination) error {
	p, err := d.OpenProducer(ctx, at, dest, ProducerOptions{ClientName: "mqlab try"})
	if err != nil {
		return err
	}
	_, err = p.Send(ctx, Message{ID: "try", Key: "try", Body: []byte("{}")})
	if err = errors.Join(err, p.Close(ctx)); err != nil {
		return err
	}
	i, err := d.OpenInspector(ctx, at)
	if err != nil {
		return err
	}
	st, err := i.State(ctx, dest)
	if err == nil && st.Left != 1 {
		err = fmt.Errorf("one message was sent, the broker counts %d", st.Left)
	}
	return errors.Join(err, i.Close())
}
