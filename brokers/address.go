package brokers

import (
	"fmt"
	"net/url"
	"strings"
)

// Address is a broker's URL with everything needed to use it, a password
// included. It prints itself without the password. The second pointer is part
// of that: fmt does not ask a struct's private fields to print themselves, and
// follows one pointer by itself where a verb does not fit.
type Address struct{ u **url.URL }

// ParseAddress reads a broker URL such as
// amqp://user:password@host:5672/vhost?management=http://host:15672.
// Its errors never contain the text, which may hold a password.
func ParseAddress(s string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return Address{}, fmt.Errorf("parse broker URL: it is not a URL")
	}
	if u.Scheme == "" || u.Host == "" {
		return Address{}, fmt.Errorf("parse broker URL: want scheme://host:port, as in amqp://guest:guest@127.0.0.1:5672")
	}
	// An unescaped /, ? or # in a password ends the host too early, and the rest
	// of the password would be printed as a port, a path or a fragment.
	key, _, _ := strings.Cut(u.RawQuery, "=")
	if u.Fragment != "" || strings.Contains(u.EscapedPath()+key, "@") {
		return Address{}, fmt.Errorf("parse broker URL: a password has to be percent-encoded: %%2F for /, %%3F for ?, %%23 for #, %%40 for @")
	}
	return Address{&u}, nil
}

// IsZero reports whether there is no address.
func (a Address) IsZero() bool { return a.u == nil }

// Scheme is the URL's scheme, such as amqp.
func (a Address) Scheme() string {
	if a.u == nil {
		return ""
	}
	return (*a.u).Scheme
}

// URL returns a copy of the whole URL, the password included; that of no
// address is empty.
func (a Address) URL() *url.URL {
	if a.u == nil {
		return &url.URL{}
	}
	c := **a.u
	return &c
}

// Secret is the address as text, the password included. It is for a child's
// environment only: never print it, never store it.
func (a Address) Secret() string {
	if a.u == nil {
		return ""
	}
	return (*a.u).String()
}

// String is the address without its password and without its query, whose
// values may hold another one.
func (a Address) String() string {
	if a.u == nil {
		return "(no address)"
	}
	c := **a.u
	c.RawQuery = ""
	if c.User != nil {
		c.User = url.User(c.User.Username())
	}
	return c.String()
}

// GoString keeps the password out of %#v too.
func (a Address) GoString() string { return a.String() }

// MarshalText keeps the password out of evidence.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads an address back from evidence, without its password.
func (a *Address) UnmarshalText(b []byte) error {
	if string(b) == "" || string(b) == (Address{}).String() {
		*a = Address{}
		return nil
	}
	p, err := ParseAddress(string(b))
	*a = p
	return err
}
