package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers"
)

const (
	// handshakeTimeout bounds the connection's opening; a broker answers a wrong
	// password after three seconds.
	handshakeTimeout = 10 * time.Second
	// closeTimeout bounds the polite end of a connection.
	closeTimeout = 2 * time.Second
)

// session is one connection with one channel on it.
type session struct {
	conn *amqp.Connection
	ch   *amqp.Channel
	raw  net.Conn

	closed chan *amqp.Error // why the broker closed the channel

	calls sync.Mutex // the client hands a channel's answers to whoever waits first
}

type options struct {
	name      string
	heartbeat time.Duration
}

// open connects and opens the channel.
func open(ctx context.Context, at brokers.Address, o options) (*session, error) {
	s := &session{}
	u := at.URL()
	vhost := strings.TrimPrefix(u.Path, "/")
	if vhost == "" {
		vhost = "/"
	}
	u.Path, u.RawPath, u.RawQuery = "", "", ""
	stop := func() bool { return true }
	conn, err := amqp.DialConfig(u.String(), amqp.Config{
		Vhost: vhost, Heartbeat: o.heartbeat, Locale: "en_US",
		Properties: amqp.Table{"connection_name": o.name, "product": "mqlab"},
		Dial: func(network, addr string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			s.raw = c
			stop = context.AfterFunc(ctx, func() { c.Close() })       //nolint:errcheck // cutting it ends the handshake
			return c, c.SetDeadline(time.Now().Add(handshakeTimeout)) // the client lifts it
		},
	})
	if !stop() {
		if err == nil {
			conn.CloseDeadline(time.Now()) //nolint:errcheck // its socket is cut already
		}
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", at, translate(err))
	}
	s.conn = conn
	if err := s.reopen(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// reopen opens a new channel, the first or one after a channel error.
func (s *session) reopen(ctx context.Context) error {
	return s.call(ctx, func() (err error) {
		if s.ch, err = s.conn.Channel(); err != nil {
			return fmt.Errorf("open a channel: %w", err)
		}
		s.closed = s.ch.NotifyClose(make(chan *amqp.Error, 1))
		return nil
	})
}

// reason says why the channel is closed: with the broker's own words if it
// closed the channel alone, else by the loss of the connection.
func (s *session) reason() error {
	select {
	case e := <-s.closed:
		if e != nil {
			return translate(e)
		}
	default:
	}
	return brokers.ErrConnectionLost
}

// call runs a synchronous request of a client that knows no context: when ctx
// ends first, the socket is cut, which ends the request.
func (s *session) call(ctx context.Context, f func() error) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	stop := context.AfterFunc(ctx, func() { s.raw.Close() }) //nolint:errcheck // cutting it is the point
	err := f()
	if !stop() {
		return errors.Join(ctx.Err(), translate(err))
	}
	return translate(err)
}

// barrier is a synchronous request that goes through the queue's own process:
// when it is answered the broker has taken what this channel sent before it.
func (s *session) barrier(ctx context.Context, queue string) error {
	return s.call(ctx, func() error {
		_, err := s.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		return err
	})
}

// close ends the connection politely if the broker takes part, else at once. A
// connection that is lost already is closed, whether or not the client has
// noticed yet.
func (s *session) close(ctx context.Context) error {
	deadline := time.Now().Add(closeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	err := translate(s.conn.CloseDeadline(deadline))
	s.raw.Close() //nolint:errcheck // it is closed already after a polite end
	if err == nil || errors.Is(err, brokers.ErrConnectionLost) {
		return nil
	}
	return fmt.Errorf("close the connection: %w", err)
}

// translate wraps what the client says in the contract's errors. The codes are
// those of the AMQP 0-9-1 reference, section 1.2.
func translate(err error) error {
	var e *amqp.Error
	var network net.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, brokers.ErrConnectionLost), errors.Is(err, brokers.ErrRefused):
		return err
	case errors.As(err, &e):
		switch e.Code {
		case amqp.NotFound:
			return fmt.Errorf("%w: %w: %s", brokers.ErrRefused, brokers.ErrNotFound, e.Reason)
		case amqp.AccessRefused, amqp.ResourceLocked, amqp.PreconditionFailed, amqp.NotAllowed, amqp.NotImplemented:
			return fmt.Errorf("%w: %d %s", brokers.ErrRefused, e.Code, e.Reason)
		}
		return fmt.Errorf("%w: %d %s", brokers.ErrConnectionLost, e.Code, e.Reason)
	case errors.As(err, &network), errors.Is(err, amqp.ErrClosed):
		return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
	}
	return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
}
