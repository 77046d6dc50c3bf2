// Package embedded is a stand-in for Kafka: kfake, the Kafka of the client
// library's own tests, set up as mqlab sets up the real broker.
package embedded

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Options configure a Server; the zero value is ready to use.
type Options struct {
	// Dir keeps the messages over a kill of the process; empty: in memory.
	Dir string
	// Port of 127.0.0.1 to listen on; 0: a free one.
	Port int
	// User and Password are the only login (SASL plain); empty: none is asked for.
	User, Password string
}

// Settings are the broker's own, by Kafka's names. They are those of the real
// broker that mqlab starts (compose/kafka), as far as the stand-in knows them.
func Settings() map[string]string {
	return map[string]string{
		"group.initial.rebalance.delay.ms":         "0",
		"group.consumer.session.timeout.ms":        "1000",
		"group.consumer.min.session.timeout.ms":    "1000",
		"group.consumer.heartbeat.interval.ms":     "250",
		"group.consumer.min.heartbeat.interval.ms": "100",
		"auto.create.topics.enable":                "false",
	}
}

// minSession is group.min.session.timeout.ms.
const minSession = time.Second

// Server is a running stand-in.
type Server struct {
	cluster *kfake.Cluster
	user    *url.Userinfo
}

// Open starts a single broker on 127.0.0.1.
func Open(_ context.Context, o Options) (*Server, error) {
	s := &Server{}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(o.Port), kfake.DefaultNumPartitions(1),
		kfake.GroupMinSessionTimeout(minSession), kfake.BrokerConfigs(Settings())}
	if o.Dir != "" {
		opts = append(opts, kfake.DataDir(o.Dir), kfake.SyncWrites())
	}
	if o.User != "" {
		s.user = url.UserPassword(o.User, o.Password)
		opts = append(opts, kfake.EnableSASL(), kfake.Superuser("PLAIN", o.User, o.Password))
	}
	var err error
	if s.cluster, err = kfake.NewCluster(opts...); err != nil {
		return nil, fmt.Errorf("start the embedded kafka: %w", err)
	}
	if o.User != "" {
		s.cluster.ControlKey(int16(kmsg.SASLAuthenticate), s.login(o))
	}
	if host, _, err := net.SplitHostPort(s.cluster.ListenAddrs()[0]); err != nil || !net.ParseIP(host).IsLoopback() {
		s.cluster.Close()
		return nil, fmt.Errorf("start the embedded kafka: it listens on %s", s.cluster.ListenAddrs()[0])
	}
	return s, nil
}

// login answers a wrong password as Kafka does; kfake would hang up.
func (s *Server) login(o Options) func(kmsg.Request) (kmsg.Response, error, bool) {
	want := "\x00" + o.User + "\x00" + o.Password // RFC 4616, without an authorization identity
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		req, ok := r.(*kmsg.SASLAuthenticateRequest)
		if !ok || subtle.ConstantTimeCompare(req.SASLAuthBytes, []byte(want)) == 1 {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		message := "Authentication failed: Invalid username or password"
		res.ErrorCode, res.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &message
		return res, nil, true
	}
}

// URL is the address with the login.
func (s *Server) URL() string {
	u := url.URL{Scheme: "kafka", Host: s.cluster.ListenAddrs()[0], User: s.user}
	return u.String()
}

// Close ends the broker and its connections.
func (s *Server) Close() error {
	s.cluster.Close()
	return nil
}
