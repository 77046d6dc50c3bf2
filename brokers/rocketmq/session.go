package rocketmq

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

const (
	// watchEvery is the pause between two questions of a role's watch, and
	// watchTimeout its patience: a broker that is frozen is lost after both.
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 2 * time.Second
	// closeTimeout bounds the end of a consumer's client, and then its wait for the
	// broker to notice.
	closeTimeout = 2 * time.Second
	// indexTimeout bounds a wait for the broker's index.
	indexTimeout = 2 * time.Second
	// askAgain is the pause before a question is asked again whose answer is
	// about to change.
	askAgain = time.Millisecond
)

// session is the driver's own connections: to the name server of the address
// and to the broker that it names.
type session struct {
	at      brokers.Address
	cred    primitive.Credentials
	names   *link
	broker  *link
	cluster string
	addr    string // the broker's

	alive   context.Context // ends when the watch has seen the broker's end, or is over
	stop    context.CancelFunc
	running sync.WaitGroup
}

// settings are the address's parts: rocketmq://access:secret@host:port, of which
// the port is that of a name server, 9876 by default.
func settings(u *url.URL) (hostPort string, cred primitive.Credentials, err error) {
	for key := range u.Query() {
		return "", cred, fmt.Errorf("read the broker URL: there is no setting %q", key)
	}
	if u.Path != "" && u.Path != "/" {
		return "", cred, errors.New("read the broker URL: a path has no meaning for RocketMQ")
	}
	if u.User != nil {
		secret, _ := u.User.Password()
		cred = primitive.Credentials{AccessKey: u.User.Username(), SecretKey: secret}
		if cred.IsEmpty() {
			return "", cred, errors.New("read the broker URL: want both parts of the credentials, as in rocketmq://ACCESS:SECRET@host:port")
		}
	}
	port := u.Port()
	if port == "" {
		port = "9876"
	}
	return net.JoinHostPort(u.Hostname(), port), cred, nil
}

// open connects to the name server and to a broker: the one that has the topic,
// or, without a topic, the first one by name. A missing topic is ErrNotFound.
func open(ctx context.Context, at brokers.Address, topic string) (*session, error) {
	hostPort, cred, err := settings(at.URL())
	if err != nil {
		return nil, err
	}
	s := &session{at: at, cred: cred, stop: func() {}}
	if s.names, err = dial(ctx, hostPort, cred); err != nil {
		return nil, err
	}
	var b brokerData
	if topic == "" {
		b, err = s.anyBroker(ctx)
	} else {
		var r route
		if r, err = s.route(ctx, topic); err == nil {
			b, err = r.broker()
		}
	}
	if err == nil {
		s.cluster, s.addr = b.Cluster, b.Addrs["0"]
		s.broker, err = dial(ctx, s.addr, cred)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// brokerData is a broker as the name server lists it; "0" is the master.
type brokerData struct {
	Cluster string            `json:"cluster"`
	Name    string            `json:"brokerName"`
	Addrs   map[string]string `json:"brokerAddrs"`
}

// route is where a topic is.
type route struct {
	Queues []struct {
		Broker string `json:"brokerName"`
		Read   int    `json:"readQueueNums"`
		Write  int    `json:"writeQueueNums"`
		Perm   int    `json:"perm"`
	} `json:"queueDatas"`
	Brokers []brokerData `json:"brokerDatas"`
}

func (r route) broker() (brokerData, error) {
	for _, b := range r.Brokers {
		if b.Addrs["0"] != "" {
			return b, nil
		}
	}
	return brokerData{}, fmt.Errorf("%w: the name server lists no master broker", brokers.ErrConnectionLost)
}

// route asks the name server where a topic is; a missing one is ErrNotFound.
func (s *session) route(ctx context.Context, topic string) (route, error) {
	a, err := s.names.ask(ctx, reqRoute, fields{"topic": topic, "acceptStandardJsonOnly": "true"}, nil)
	var r route
	if err == nil {
		err = decode(a.body, &r)
	}
	return r, err
}

// anyBroker is the first master by name. A broker that has just started is not
// listed until it has registered, which can take 10 s.
func (s *session) anyBroker(ctx context.Context) (brokerData, error) {
	a, err := s.names.ask(ctx, reqClusterInfo, nil, nil)
	if err != nil {
		return brokerData{}, err
	}
	var info struct {
		Table map[string]brokerData `json:"brokerAddrTable"`
	}
	if err := decode(a.body, &info); err != nil {
		return brokerData{}, err
	}
	var r route
	for _, name := range slices.Sorted(maps.Keys(info.Table)) {
		r.Brokers = append(r.Brokers, info.Table[name])
	}
	return r.broker()
}

// bareKey is a number as an object's key, which fastjson leaves without quotes.
var bareKey = regexp.MustCompile(`([{,])(\d+):`)

// decode reads what a server calls JSON.
func decode(body []byte, v any) error {
	if err := json.Unmarshal(bareKey.ReplaceAll(body, []byte(`$1"$2":`)), v); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// watch asks the broker now and then until the session is closed: the client
// tries for ever and tells nobody, so that only a connection of the driver's own
// can say that the broker is gone. It also keeps that connection from being
// closed as idle.
func (s *session) watch(topic string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.alive, s.stop = ctx, cancel
	s.running.Go(func() {
		defer cancel()
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.broker.lost:
				return
			case <-tick.C:
				patience, cancel := context.WithTimeout(ctx, watchTimeout)
				s.broker.call(patience, reqMaxOffset, fields{"topic": topic, "queueId": "0"}, nil) //nolint:errcheck // its failure ends the connection
				cancel()
			}
		}
	})
}

// lost is closed when the broker is gone.
func (s *session) lost() <-chan struct{} { return s.broker.lost }

// gone reports whether the broker is gone.
func (s *session) gone() bool { return isClosed(s.broker.lost) }

// nameServer is the name server's address with the host as a number, as the
// client wants it.
func (s *session) nameServer() string { return s.names.nc.RemoteAddr().String() }

// runtimeInfo is what the broker says about itself, by name.
func (s *session) runtimeInfo(ctx context.Context) (map[string]string, error) {
	a, err := s.broker.ask(ctx, reqRuntimeInfo, nil, nil)
	if err != nil {
		return nil, err
	}
	var info struct {
		Table map[string]string `json:"table"`
	}
	return info.Table, decode(a.body, &info)
}

// awaitCounted waits until the message at an offset counts in maxOffset: the
// broker confirms it before, by about a millisecond (ReputMessageService of its
// store). It is confirmed in any case, so that a wait in vain is no error.
func (s *session) awaitCounted(ctx context.Context, topic string, offset int64) {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	for {
		if end, err := s.maxOffset(ctx, topic); err != nil || end > offset || pause(ctx, askAgain) != nil {
			return
		}
	}
}

// awaitIndexed returns when all that the broker has stored so far counts. It is
// for a message whose offset is not known: the question makes the broker look at
// all slots of its timer, which takes a small one 80 ms.
func (s *session) awaitIndexed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, indexTimeout,
		fmt.Errorf("%w: the broker did not index what it had stored within %v", brokers.ErrRefused, indexTimeout))
	defer cancel()
	for stored := int64(-1); ; {
		info, err := s.runtimeInfo(ctx)
		if err != nil {
			return err
		}
		end, err := strconv.ParseInt(info["commitLogMaxOffset"], 10, 64)
		behind, err2 := strconv.ParseInt(info["dispatchBehindBytes"], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("read how far the broker has indexed: %w", err)
		}
		if stored < 0 {
			stored = end
		}
		if end-behind >= stored {
			return nil
		}
		if pause(ctx, askAgain) != nil {
			return context.Cause(ctx)
		}
	}
}

// maxOffset is where the next message of a topic's only queue will lie, as far
// as the broker has indexed.
func (s *session) maxOffset(ctx context.Context, topic string) (int64, error) {
	a, err := s.broker.ask(ctx, reqMaxOffset, fields{"topic": topic, "queueId": "0"}, nil)
	if err != nil {
		return 0, err
	}
	return a.offset()
}

// committed is the group's offset in a topic's only queue, nil for none yet.
func (s *session) committed(ctx context.Context, group, topic string) (*int64, error) {
	a, err := s.broker.call(ctx, reqQueryOffset, fields{"consumerGroup": group, "topic": topic, "queueId": "0", "setZeroIfNotFound": "false"}, nil)
	switch {
	case err != nil:
		return nil, err
	case a.Code == resQueryNotFound:
		return nil, nil
	case a.refused() != nil:
		return nil, a.refused()
	}
	n, err := a.offset()
	return &n, err
}

func (a answer) offset() (int64, error) {
	n, err := strconv.ParseInt(a.Ext["offset"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the answer's offset: %w", err)
	}
	return n, nil
}

// consumers are the client ids of a group's members. The broker answers with a
// system error when it has none.
func (s *session) consumers(ctx context.Context, group string) ([]string, error) {
	a, err := s.broker.call(ctx, reqConsumerList, fields{"consumerGroup": group}, nil)
	if err != nil || a.Code == resSystemError {
		return nil, err
	}
	if err := a.refused(); err != nil {
		return nil, err
	}
	var list struct {
		IDs []string `json:"consumerIdList"`
	}
	return list.IDs, decode(a.body, &list)
}

// instance is a client's name on the broker when nobody has given it one: no two
// are equal, or they would share one client. Names sort by age, and the client
// shares out queues in the order of the names: who comes later takes nothing
// away from who is there.
func instance(clientName string) string {
	return fmt.Sprintf("%019d-%s-%s", time.Now().UnixNano(), rand.Text()[:6], strings.ReplaceAll(clientName, " ", "-"))
}

// pause waits a moment, or reports that ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// close ends both connections and the watch. It may be called again.
func (s *session) close() {
	s.stop()
	s.running.Wait()
	s.names.close()
	s.broker.close()
}
