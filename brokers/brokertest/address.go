package brokertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"mqlab/brokers"
)

func addressCases() []testCase {
	return []testCase{
		{name: "wrong-password", run: wrongPassword},
		{name: "elsewhere", run: elsewhere},
		{name: "nobody-listens", run: nobodyListens},
		{name: "nobody-answers", run: nobodyAnswers},
	}
}

// quickly bounds what needs no answer from anybody.
const quickly = 2 * time.Second

// entry is one way into a driver.
type entry struct {
	name string
	open func(context.Context, brokers.Address) error
}

// entries are all of them. A broker that lets a stranger in is a failure of
// the case; what was opened by mistake is closed.
func (sc *scene) entries() []entry {
	d := sc.s.Driver
	return []entry{
		{"probe", func(ctx context.Context, at brokers.Address) error { _, err := d.Probe(ctx, at); return err }},
		{"prepare", func(ctx context.Context, at brokers.Address) error { return d.Prepare(ctx, at, sc.dest) }},
		{"remove", func(ctx context.Context, at brokers.Address) error { return d.Remove(ctx, at, sc.dest) }},
		{"producer", func(ctx context.Context, at brokers.Address) error {
			p, err := d.OpenProducer(ctx, at, sc.dest, brokers.ProducerOptions{})
			if err == nil {
				return p.Close(ctx)
			}
			return err
		}},
		{"consumer", func(ctx context.Context, at brokers.Address) error {
			c, err := d.OpenConsumer(ctx, at, sc.dest, sc.consumerOptions("c", 1))
			if err == nil {
				return c.Close(ctx)
			}
			return err
		}},
		{"inspector", func(ctx context.Context, at brokers.Address) error {
			i, err := d.OpenInspector(ctx, at)
			if err == nil {
				return i.Close()
			}
			return err
		}},
	}
}

// enter tries every entry with an address that must not work. They go at the
// same time: some brokers make a wrong password wait.
func (sc *scene) enter(ctx context.Context, at brokers.Address) []error {
	entries := sc.entries()
	errs := make([]error, len(entries))
	var wg sync.WaitGroup
	for n, e := range entries {
		wg.Go(func() { errs[n] = e.open(ctx, at) })
	}
	wg.Wait()
	for n, e := range entries {
		if errs[n] == nil {
			sc.Errorf("%s: it worked", e.name)
			continue
		}
		sc.silent(at, errs[n])
	}
	return errs
}

// silent looks for the address's password in every form of an error.
func (sc *scene) silent(at brokers.Address, err error) {
	sc.Helper()
	user := at.URL().User
	password, _ := user.Password()
	if password == "" || password == user.Username() || len(password) < 4 {
		return // it cannot be told from other words
	}
	_, encoded, _ := strings.Cut(user.String(), ":")
	for _, form := range []string{password, encoded, url.QueryEscape(password), url.PathEscape(password)} {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			if strings.Contains(text, form) {
				sc.Errorf("the password stands in an error: %s", strings.ReplaceAll(text, form, "[password]"))
			}
		}
	}
}

func wrongPassword(sc *scene) {
	u := sc.s.Address.URL()
	if u.User == nil {
		sc.skip("the address has no password")
	}
	// One that has to be encoded in a URL, and so can leak in two forms.
	u.User = url.UserPassword(u.User.Username(), "wr/ng p@ss?"+rand.Text())
	at, err := brokers.ParseAddress(u.String())
	sc.must(err)
	for n, err := range sc.enter(sc.ctx, at) {
		sc.say("%s: %s", sc.entries()[n].name, class(err))
		sc.want(sc.entries()[n].name, err, brokers.ErrRefused)
	}
}

func elsewhere(sc *scene) {
	if sc.s.Elsewhere == nil {
		sc.skip("the subject knows no place that does not exist")
	}
	for n, err := range sc.enter(sc.ctx, sc.s.Elsewhere(sc.s.Address)) {
		sc.say("%s: %s", sc.entries()[n].name, class(err))
		sc.want(sc.entries()[n].name, err, brokers.ErrRefused)
	}
}

// nobodyListens uses a port that was free a moment ago.
func nobodyListens(sc *scene) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	sc.must(err)
	sc.must(ln.Close())
	start := time.Now()
	for n, err := range sc.enter(sc.ctx, moved(sc.T, sc.s.Address, ln.Addr().String())) {
		sc.want(sc.entries()[n].name, err, brokers.ErrConnectionLost)
		sc.say("%s: %s", sc.entries()[n].name, class(err))
	}
	if took := time.Since(start); took > quickly {
		sc.Errorf("it took %v", took)
	}
}

// nobodyAnswers: the connection is made and then nothing comes. The caller's
// patience is the context, not the driver's own.
func nobodyAnswers(sc *scene) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody else
	sc.must(err)
	defer ln.Close() //nolint:errcheck // nothing depends on it
	ctx, cancel := context.WithTimeout(sc.ctx, 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	for n, err := range sc.enter(ctx, moved(sc.T, sc.s.Address, ln.Addr().String())) {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, brokers.ErrConnectionLost) {
			sc.Errorf("%s: got error %v, want the end of the context or a lost connection", sc.entries()[n].name, err)
		}
	}
	if took := time.Since(start); took > quickly {
		sc.Errorf("the context ended after 200 ms, the last entry returned after %v", took)
	}
	sc.say("every entry ends with its context")
}
