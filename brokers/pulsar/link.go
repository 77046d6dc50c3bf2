package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"mqlab/brokers"
)

const (
	// answerTimeout is how long the library waits for an answer of the broker.
	answerTimeout = 5 * time.Second
	// keepAlive is the pause between two pings; after twice as long without a
	// word of the broker the library takes it for dead.
	keepAlive = 600 * time.Millisecond
	// dialTimeout bounds the library's own dial; the broker has just answered.
	dialTimeout = 2 * time.Second
	// closeTimeout bounds the polite end of a connection.
	closeTimeout = 2 * time.Second
	// never is longer than any run.
	never = 24 * time.Hour
)

// link is one client of the library with one producer or consumer on it. The
// library would reconnect by itself for ever, hold every call up meanwhile and
// make a deleted topic again; a link is kept from that and ends with its first
// connection.
type link struct {
	client pulsar.Client
	lost   chan struct{} // closed when the connection is gone
	once   sync.Once

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // calls of the library under way
}

// newLink connects nothing yet.
func newLink(s site, clientName string) (*link, error) {
	o := pulsar.ClientOptions{
		URL: "pulsar://" + s.host, ConnectionTimeout: dialTimeout, OperationTimeout: answerTimeout, KeepAliveInterval: keepAlive,
		ConnectionMaxIdleTime: -1, // the idle check is a goroutine that has no end
		Logger:                log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(), Description: clientName,
	}
	if s.token != "" {
		o.Authentication = pulsar.NewAuthenticationToken(s.token)
	}
	client, err := pulsar.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &link{client: client, lost: make(chan struct{})}, nil
}

// reconnecting is the library's BackOffPolicyFunc. It is asked for at the
// moment when the library begins to reconnect, which is the only word that it
// says about a lost connection; see also noReconnect.
func (l *link) reconnecting() backoff.Policy {
	l.once.Do(func() { close(l.lost) })
	return backoff.NewDefaultBackoff()
}

// noReconnect is the library's MaxReconnectToBroker.
func noReconnect() *uint { return new(uint) }

// alive reports whether the library has not noticed the end of the connection.
func (l *link) alive() bool {
	select {
	case <-l.lost:
		return false
	default:
		return true
	}
}

// call runs a call of the library, which knows no context. When ctx ends first
// the call goes on until the library's own timeout; close waits for it, since
// the library never answers a call that meets its end.
func (l *link) call(ctx context.Context, f func() error) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return brokers.ErrConnectionLost
	}
	done := make(chan error, 1)
	l.running.Go(func() { done <- f() })
	l.mu.Unlock()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return translate(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection; the broker has taken note when it returns. A
// broker that does not answer ends it with ctx or after closeTimeout at the
// latest, and the library goes on in the background for answerTimeout at most.
func (l *link) close(ctx context.Context, end func()) {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if !first {
		return
	}
	done := make(chan struct{})
	go func() { // ends with the library's answerTimeout at the latest
		defer close(done)
		l.running.Wait()
		end()
		l.client.Close()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// translate wraps what the library says in the contract's errors. The broker's
// own words come through it as text only: "server error: CODE: MESSAGE", or
// the bare code of a lookup. The library's own timeouts are ends of a context
// that the caller has never seen, so nothing is wrapped.
func translate(err error) error {
	if err == nil || errors.Is(err, brokers.ErrConnectionLost) || errors.Is(err, brokers.ErrRefused) {
		return err
	}
	text := strings.ReplaceAll(err.Error(), "\n", ": ")
	for _, word := range []string{"TopicNotFound", "SubscriptionNotFound"} {
		if strings.Contains(text, word) {
			return fmt.Errorf("%w: %w: %s", brokers.ErrRefused, brokers.ErrNotFound, text)
		}
	}
	for _, word := range []string{"server error: ", "ack response error: ", "AuthenticationError", "AuthorizationError"} {
		if strings.Contains(text, word) {
			return fmt.Errorf("%w: %s", brokers.ErrRefused, text)
		}
	}
	return fmt.Errorf("%w: %s", brokers.ErrConnectionLost, text)
}
