package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"mqlab/brokers"
)

const (
	// dialTimeout bounds one attempt to connect.
	dialTimeout = 2 * time.Second
	// pingTimeout is how long a broker may be silent, after a connection to it
	// was lost, before it counts as gone.
	pingTimeout = time.Second
	// closeTimeout bounds a goodbye.
	closeTimeout = 2 * time.Second
)

// session is one client with what is known of its connections. The client
// connects again by itself and for ever; a session ends at the first time that
// no broker can be reached.
type session struct {
	client *kgo.Client
	admin  *kadm.Client

	trouble chan error    // a connection could not be made
	lost    chan struct{} // closed when the broker cannot be reached
	why     error         // set before lost is closed
	stop    context.CancelFunc
	watched chan struct{} // closed when watch has ended
	once    sync.Once
}

// open makes a client, which connects when it is first used.
func open(at brokers.Address, name string, more ...kgo.Opt) (*session, error) {
	opts, err := addressOpts(at.URL())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{trouble: make(chan error, 1), lost: make(chan struct{}), stop: cancel, watched: make(chan struct{})}
	opts = append(opts, kgo.WithHooks(s), kgo.ClientID(name), kgo.DialTimeout(dialTimeout),
		// A new topic is looked up at once; the defaults suit a crowd of clients.
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.DisableClientMetrics())
	if s.client, err = kgo.NewClient(append(opts, more...)...); err != nil {
		cancel()
		return nil, fmt.Errorf("make a client: %w", err)
	}
	s.admin = kadm.NewClient(s.client)
	go s.watch(ctx) // ends with close
	return s, nil
}

// addressOpts reads kafka://[USER:PASSWORD@]HOST:PORT[?sasl=MECHANISM][&tls=true].
func addressOpts(u *url.URL) ([]kgo.Opt, error) {
	port := u.Port()
	if port == "" {
		port = "9092"
	}
	opts := []kgo.Opt{kgo.SeedBrokers(net.JoinHostPort(u.Hostname(), port))}
	if u.Path != "" && u.Path != "/" {
		return nil, errors.New("read the broker URL: a Kafka address has no path")
	}
	for key := range u.Query() {
		if key != "sasl" && key != "tls" {
			return nil, fmt.Errorf("read the broker URL: there is no setting %q, only sasl and tls", key)
		}
	}
	switch u.Query().Get("tls") {
	case "":
	case "true":
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{ServerName: u.Hostname()}))
	default:
		return nil, errors.New("read the broker URL: tls is true or left out")
	}
	password, _ := u.User.Password()
	user := u.User.Username()
	switch mechanism := u.Query().Get("sasl"); {
	case u.User == nil && mechanism == "":
	case u.User == nil:
		return nil, errors.New("read the broker URL: sasl needs a user and a password")
	case mechanism == "" || mechanism == "plain":
		opts = append(opts, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case mechanism == "scram-sha-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case mechanism == "scram-sha-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	default:
		return nil, errors.New("read the broker URL: sasl is plain, scram-sha-256 or scram-sha-512")
	}
	return opts, nil
}

// administer runs one piece of work with a client of its own.
func administer(at brokers.Address, name string, work func(*session) error) error {
	s, err := open(at, name)
	if err != nil {
		return err
	}
	err = work(s)
	s.close()
	return err
}

// OnBrokerConnect is the client's word about an attempt to connect.
func (s *session) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		return
	}
	select {
	case s.trouble <- err:
	default: // one is being looked into
	}
}

// watch looks, when a connection could not be made, whether any broker answers.
func (s *session) watch(ctx context.Context) {
	defer close(s.watched)
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-s.trouble:
			ping, cancel := context.WithTimeout(ctx, pingTimeout)
			err := s.client.Ping(ping)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.why = why
				close(s.lost)
				return
			}
		}
	}
}

// during is a context that ends when the broker is lost too.
func (s *session) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with cancel
		select {
		case <-s.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// reason tells an error's kind in the contract.
func (s *session) reason(ctx context.Context, err error) error {
	var refusal *kerr.Error
	var failed *kgo.ErrGroupSession
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return fmt.Errorf("%w: %w", errNotFound, err)
	case errors.As(err, &failed) && errors.As(failed.Err, &refusal), errors.As(err, &refusal):
		return fmt.Errorf("%w: %w", brokers.ErrRefused, err)
	}
	select {
	case <-s.lost:
		if errors.As(s.why, &refusal) {
			return fmt.Errorf("%w: %w", brokers.ErrRefused, s.why)
		}
		return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, s.why)
	default:
		return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
	}
}

// errNotFound is both of the contract's errors about a missing destination.
var errNotFound = fmt.Errorf("%w: %w", brokers.ErrRefused, brokers.ErrNotFound)

// close ends the client. It is idempotent.
func (s *session) close() {
	s.once.Do(func() {
		s.stop()
		s.client.CloseAllowingRebalance()
		<-s.watched
	})
}
