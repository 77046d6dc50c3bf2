package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mqlab/brokers"
)

// maxAnswer bounds a management answer, in bytes.
const maxAnswer = 16 << 20

// askAgain is the pause before answers that did not agree are asked for again;
// a classic queue's totals are at most 8 ms behind the queue here.
const askAgain = 2 * time.Millisecond

// inspector asks the queue itself (AMQP, passive declare) for ready messages
// and consumers, and the management API for the unacknowledged ones.
type inspector struct {
	s     *session
	admin *url.URL
	vhost string
	http  *http.Client
}

// OpenInspector connects to the broker and to its management API, whose
// address stands in the URL's query as management=http://host:port, default
// port 15672 of the broker's host.
func (Driver) OpenInspector(ctx context.Context, at brokers.Address) (brokers.Inspector, error) {
	admin, err := adminURL(at.URL())
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, at, options{name: "mqlab inspector"})
	if err != nil {
		return nil, err
	}
	i := &inspector{s: s, admin: admin, vhost: strings.TrimPrefix(at.URL().Path, "/"),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
	if i.vhost == "" {
		i.vhost = "/"
	}
	if _, err := i.queues(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ask the management API at %s (the broker's URL names it as ?management=http://HOST:PORT): %w", admin.Host, err), i.Close())
	}
	return i, nil
}

func adminURL(u *url.URL) (*url.URL, error) {
	for key := range u.Query() {
		if key != "management" {
			return nil, fmt.Errorf("read the broker URL: there is no setting %q, only management", key)
		}
	}
	text := u.Query().Get("management")
	if text == "" {
		text = "http://" + net.JoinHostPort(u.Hostname(), "15672")
	}
	admin, err := url.Parse(text)
	if err != nil || admin.Host == "" {
		return nil, errors.New("read the broker URL: management is not a URL such as http://127.0.0.1:15672")
	}
	if admin.User == nil {
		admin.User = u.User
	}
	if admin.User == nil {
		admin.User = url.UserPassword("guest", "guest") // AMQP's own default
	}
	return admin, nil
}

// queue is what the management API says of one queue.
type queue struct {
	Name           string `json:"name"`
	Ready          int64  `json:"messages_ready"`
	Unacknowledged int64  `json:"messages_unacknowledged"`
}

// queues reads the totals of every queue of the vhost. With disable_stats and
// enable_queue_totals they come from the queues' own counters; the ordinary
// numbers are seconds old (https://www.rabbitmq.com/docs/management).
func (i *inspector) queues(ctx context.Context) ([]queue, error) {
	u := *i.admin
	u.User = nil
	u.Path = strings.TrimSuffix(u.Path, "/") + "/api/queues/" + i.vhost
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), i.vhost) + url.PathEscape(i.vhost)
	u.RawQuery = "disable_stats=true&enable_queue_totals=true"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the queues: %w", err)
	}
	password, _ := i.admin.User.Password()
	req.SetBasicAuth(i.admin.User.Username(), password)
	res, err := i.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for the queues: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end or is of no use
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("ask for the queues: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for the queues: %w: HTTP %s", brokers.ErrRefused, res.Status)
	}
	var qs []queue
	if err := json.Unmarshal(body, &qs); err != nil {
		return nil, fmt.Errorf("ask for the queues: %w", err)
	}
	return qs, nil
}

// State is taken between two looks at the queue itself: it is an answer only
// when both, and the management API between them, agree on what is ready.
func (i *inspector) State(ctx context.Context, d brokers.Destination) (brokers.State, error) {
	start := time.Now()
	for {
		before, consumers, err := i.look(ctx, d)
		if err != nil {
			return brokers.State{}, err
		}
		qs, err := i.queues(ctx)
		if err != nil {
			return brokers.State{}, err
		}
		after, consumersAfter, err := i.look(ctx, d)
		if err != nil {
			return brokers.State{}, err
		}
		for _, q := range qs {
			if q.Name == d.OnWire(d.Queue) && before == q.Ready && after == q.Ready && consumers == consumersAfter {
				return state(q, consumers, time.Since(start)), nil
			}
		}
		select {
		case <-ctx.Done():
			return brokers.State{}, fmt.Errorf("queue %s and the management API did not agree about it: %w", d.Queue, ctx.Err())
		case <-time.After(askAgain):
		}
	}
}

// look asks the queue's own process.
func (i *inspector) look(ctx context.Context, d brokers.Destination) (ready, consumers int64, err error) {
	err = i.s.call(ctx, func() error {
		if i.s.ch.IsClosed() { // a missing queue has closed it
			ch, err := i.s.conn.Channel()
			if err != nil {
				return err
			}
			i.s.ch = ch
		}
		q, err := i.s.ch.QueueDeclarePassive(d.OnWire(d.Queue), false, false, false, false, nil)
		ready, consumers = int64(q.Messages), int64(q.Consumers)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look at queue %s: %w", d.Queue, err)
	}
	return ready, consumers, nil
}

func state(q queue, consumers int64, took time.Duration) brokers.State {
	depth, pending := q.Ready+q.Unacknowledged, int64(0)
	return brokers.State{Left: depth, Idle: consumers == 0 && q.Unacknowledged == 0, Took: took, Figures: map[string]*int64{
		"ready": &q.Ready, "unacknowledged": &q.Unacknowledged, "depth": &depth, "pending": &pending, "consumers": &consumers,
	}}
}

// Close ends the connections.
func (i *inspector) Close() error {
	i.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return i.s.close(ctx)
}
