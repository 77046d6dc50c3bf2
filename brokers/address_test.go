package brokers_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"mqlab/brokers"
)

// password has to be encoded in a URL, and so could leak in two forms.
const password = "s3cr3t/p@ss?#"

// forms are the ways in which the password could be written.
func forms() []string {
	return []string{password, url.QueryEscape(password), url.PathEscape(password),
		strings.TrimPrefix(url.UserPassword("", password).String(), ":"), fmt.Sprintf("%x", password), "s3cr3t"}
}

func address(t testing.TB, s string) brokers.Address {
	t.Helper()
	a, err := brokers.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func secretAddress(t testing.TB) brokers.Address {
	t.Helper()
	u := url.URL{Scheme: "amqp", User: url.UserPassword("guest", password), Host: "127.0.0.1:5672", Path: "/shop",
		RawQuery: url.Values{"management": {"http://admin:" + url.QueryEscape(password) + "@127.0.0.1:15672"}}.Encode()}
	return address(t, u.String())
}

// TestAddressHidesItsPassword, whatever is done to print it.
func TestAddressHidesItsPassword(t *testing.T) {
	a := secretAddress(t)
	type holder struct {
		Public  brokers.Address
		private brokers.Address
		pointer *brokers.Address
	}
	values := map[string]any{
		"value": a, "pointer": &a, "slice": []brokers.Address{a}, "map": map[string]brokers.Address{"a": a},
		"struct": holder{a, a, &a}, "pointer to struct": &holder{a, a, &a}, "any": []any{a, &a},
		"origin": brokers.Origin{Product: "rabbitmq", Provider: "url", Address: a},
		"error":  fmt.Errorf("connect to %s: %w", a, errors.New("refused")),
		"panic":  fmt.Sprintf("%v", fmt.Errorf("panic: %+v", a)),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
			hides(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		j, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		hides(t, name+" JSON", string(j))
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "a", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "a", v)
		hides(t, name+" slog", log.String())
	}
	type element struct{ A brokers.Address }
	x, err := xml.Marshal(element{a})
	if err != nil {
		t.Error(err)
	}
	hides(t, "XML", string(x))
	if got, want := a.String(), "amqp://guest@127.0.0.1:5672/shop"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if u, err := url.Parse(a.Secret()); err != nil {
		t.Error(err)
	} else if got, _ := u.User.Password(); got != password {
		t.Errorf("the secret form has password %q", got)
	}
}

func hides(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range forms() {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			t.Errorf("%s shows %q: %s", what, form, text)
		}
	}
}

func TestParseAddress(t *testing.T) {
	tests := []struct{ text, shown string }{
		{"amqp://guest:guest@127.0.0.1:5672", "amqp://guest@127.0.0.1:5672"},
		{"  amqp://127.0.0.1:5672\n", "amqp://127.0.0.1:5672"},
		{"amqp://guest@[::1]:5672/%2f", "amqp://guest@[::1]:5672/%2f"},
		{"amqp://guest:a@b@host", "amqp://guest@host"},
		{"amqp://:only-a-password@host", "amqp://@host"},
		{"kafka://one:9092?password=x", "kafka://one:9092"},
	}
	for _, tt := range tests {
		if got := address(t, tt.text).String(); got != tt.shown {
			t.Errorf("%s is shown as %s, want %s", tt.text, got, tt.shown)
		}
	}
}

// TestParseAddressErrors do not repeat what was given.
func TestParseAddressErrors(t *testing.T) {
	for _, s := range []string{
		"", "s3cr3t", "s3cr3t:5672", "//guest:s3cr3t@host", "amqp:", "amqp:guest:s3cr3t@host", "amqp:///s3cr3t",
		"amqp://guest:s3cr3t%zz@host", "amqp://guest:s3cr3t x@host", "amqp://host:s3cr3t", "amqp://guest:s3cr3t/x@host:5672",
		"amqp://guest:12#s3cr3t@host:5672", "amqp://guest:12/s3cr3t@host:5672", "amqp://guest:12?s3cr3t@host:5672",
		"amqp://guest:a@b/s3cr3t@host:5672", "amqp://guest:a@host#s3cr3t", "amqp://guest:s3cr3t#x@host", "amqp://guest:s3cr3t?x@host", "amqp://ho st:s3cr3t@", ":s3cr3t", "amqp://guest:s3cr3t@host\x00",
	} {
		a, err := brokers.ParseAddress(s)
		if err == nil {
			t.Errorf("%q is an address: %s", s, a)
			continue
		}
		hides(t, "the error of "+s[:min(len(s), 6)], err.Error())
		if !a.IsZero() {
			t.Errorf("an error and the address %s", a)
		}
	}
}

func TestAddressInEvidence(t *testing.T) {
	for _, a := range []brokers.Address{secretAddress(t), {}} {
		j, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back brokers.Address
		if err := json.Unmarshal(j, &back); err != nil {
			t.Fatal(err)
		}
		if back.String() != a.String() || back.IsZero() != a.IsZero() {
			t.Errorf("%s became %s", a, back)
		}
		if !back.IsZero() && back.Secret() != a.String() {
			t.Errorf("what came back knows more than %s", a)
		}
	}
	var a brokers.Address
	if err := json.Unmarshal([]byte(`"s3cr3t"`), &a); err == nil {
		t.Error("it is an address")
	} else {
		hides(t, "the error", err.Error())
	}
	if err := json.Unmarshal([]byte(`""`), &a); err != nil || !a.IsZero() {
		t.Error(a, err)
	}
}

func TestAddressIsNotShared(t *testing.T) {
	a := secretAddress(t)
	u := a.URL()
	u.Host, u.User = "elsewhere", nil
	if got, want := a.String(), "amqp://guest@127.0.0.1:5672/shop"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestZeroAddress(t *testing.T) {
	var a brokers.Address
	if !a.IsZero() || a.Secret() != "" || a.Scheme() != "" || a.String() != "(no address)" || a.URL().Host != "" {
		t.Errorf("%t %q %q %q", a.IsZero(), a.Secret(), a.Scheme(), a)
	}
}

// FuzzParseAddress: PW stands for a password. What an address shows does not
// depend on its password or its query, and an error does not show them at all.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{
		"amqp://guest:PW@127.0.0.1:5672/%2f?management=http://a:PW@h:1", "amqp://guest:PW@[::1]", "kafka://h:9092",
		"PW", "amqp:guest:PW@h", "amqp://:PW@h", "amqp://h:PW", "%:PW@h", "a://PW@b@c?d#e", "A://x:PW@%41", "a://x:PW@h/%zz",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const secret = "s3cr3t-s3cr3t"
		s = strings.ReplaceAll(s, "PW", secret)
		a, err := brokers.ParseAddress(s)
		if err != nil {
			if strings.Contains(err.Error(), secret) || !a.IsZero() {
				t.Errorf("%v, %s", err, a)
			}
			return
		}
		u := a.URL()
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "another")
		}
		if u.RawQuery != "" {
			u.RawQuery = "another=query"
		}
		b, err := brokers.ParseAddress(u.String())
		if err != nil {
			return // net/url does not read everything that it writes
		}
		if fmt.Sprintf("%v %+v %#v", a, a, a) != fmt.Sprintf("%v %+v %#v", b, b, b) {
			t.Errorf("%q shows more than %q", a, b)
		}
		again, err := brokers.ParseAddress(a.String())
		if err == nil && again.String() != a.String() {
			t.Errorf("%s became %s", a, again)
		}
	})
}
