package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"mqlab/brokers"
)

// site is what an address says: where the broker is, how to get in, and the
// namespace that the topics lie in.
type site struct {
	host      string // host:port of the binary protocol
	admin     url.URL
	token     string // empty means no authentication
	namespace string // tenant/namespace
}

// locate reads an address: pulsar://:TOKEN@host:port/tenant/namespace, with the
// admin API in the query as admin=http://host:port. Defaults are port 6650, no
// token, public/default, and port 8080 of the broker's host.
func locate(at brokers.Address) (site, error) {
	u := at.URL()
	s := site{host: u.Host, namespace: strings.Trim(u.Path, "/")}
	if u.Port() == "" {
		s.host = net.JoinHostPort(u.Hostname(), "6650")
	}
	if s.namespace == "" {
		s.namespace = "public/default"
	}
	if parts := strings.Split(s.namespace, "/"); len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return site{}, errors.New("read the broker URL: its path is not /tenant/namespace")
	}
	if password, ok := u.User.Password(); ok {
		s.token = password
	} else if u.User.Username() != "" {
		return site{}, errors.New("read the broker URL: a token stands behind a colon, as in pulsar://:TOKEN@127.0.0.1:6650")
	}
	for key := range u.Query() {
		if key != "admin" {
			return site{}, fmt.Errorf("read the broker URL: there is no setting %q, only admin", key)
		}
	}
	text := u.Query().Get("admin")
	if text == "" {
		text = "http://" + net.JoinHostPort(u.Hostname(), "8080")
	}
	admin, err := url.Parse(text)
	if err != nil || admin.Host == "" || admin.Scheme != "http" && admin.Scheme != "https" {
		return site{}, errors.New("read the broker URL: admin is not a URL such as http://127.0.0.1:8080")
	}
	s.admin = url.URL{Scheme: admin.Scheme, Host: admin.Host, Path: strings.TrimSuffix(admin.Path, "/")}
	return s, nil
}

// topic is a topic's full name.
func (s site) topic(d brokers.Destination) string {
	return "persistent://" + s.namespace + "/" + d.OnWire(d.Topic)
}

// enter is the first thing on every way into the driver: it finds out that the
// broker speaks, lets us in and has the namespace. The client library would
// hide all three behind "connection error" and its own patience.
func enter(ctx context.Context, at brokers.Address) (*admin, error) {
	s, err := locate(at)
	if err != nil {
		return nil, err
	}
	if err := greet(ctx, s); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", at, err)
	}
	a := newAdmin(s)
	if err := a.namespace(ctx); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}
