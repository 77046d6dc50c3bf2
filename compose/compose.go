// Package compose is where brokers come from: the real one in a container or as
// a plain process (native), mqlab's stand-in in a process of its own (embedded), or an address
// that the user gives (url). What it starts runs under a guard, a container under
// a reaper, and is gone when mqlab is gone, however mqlab ends.
package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"mqlab/brokers"
)

// The providers, in the order in which auto tries them; a URL from the
// environment and a kept broker come before.
const (
	Auto      = "auto"
	Container = "container"
	Native    = "native"
	Embedded  = "embedded"
	URL       = "url"
)

// EnvChoice is the variable that chooses a provider or names a broker's URL.
const EnvChoice = "MQLAB_BROKER"

// ErrMissing says that a provider cannot start on this machine; its text says
// what helps.
var ErrMissing = errors.New("not available")

// Opener opens brokers for runs. Close ends what they had in common.
type Opener struct {
	Registry *brokers.Registry
	Program  []string // argv of mqlab's own executable, for guard and embedded
	State    string   // the folder that remembers brokers over runs
	Version  string   // mqlab's own, as the version of its stand-ins
	// Lacks is what a product's stand-in cannot do though the product can.
	Lacks func(product string) []brokers.Capability
	// Note is called with one line about what was taken and why.
	Note func(string)

	engines engines
}

// provider starts brokers of one kind.
type provider interface {
	// missing says why the provider cannot start this product here, or nil.
	missing(ctx context.Context, o *Opener, product string) error
	// start brings a broker up that ends with mqlab.
	start(ctx context.Context, o *Opener, d brokers.Driver) (running, error)
}

// running is a broker that a provider has started.
type running interface {
	brokers.Control
	// record is what a later mqlab needs to find it again, if it is kept.
	record() Kept
	// keep lets it go on when this process ends.
	keep() error
}

func providers() []string { return []string{Container, Native, Embedded} }

func providerOf(name string) (provider, error) {
	switch name {
	case Container:
		return container{}, nil
	case Native:
		return native{}, nil
	case Embedded:
		return embedded{}, nil
	}
	return nil, fmt.Errorf("no provider is named %q: want auto, %s or a URL", name, strings.Join(providers(), ", "))
}

// Choice is what the user asked for: a provider's name or a URL, for all
// products or for one.
type Choice struct {
	product, want string
}

// ParseChoices reads --broker values: auto, container, native, embedded, a URL, or any of
// them behind PRODUCT=. Without any, the environment's is taken. A text that
// may hold a password is never part of an error.
func ParseChoices(r *brokers.Registry, flags []string) ([]Choice, error) {
	if env := os.Getenv(EnvChoice); len(flags) == 0 && env != "" {
		flags = strings.Split(env, ",")
	}
	var cs []Choice
	for _, f := range flags {
		c := Choice{want: f}
		if product, want, ok := strings.Cut(f, "="); ok && slices.Contains(r.Names(), product) {
			c = Choice{product, want}
		}
		if strings.Contains(c.want, "://") {
			a, err := brokers.ParseAddress(c.want)
			if err != nil {
				return nil, err
			}
			product := productOf(r, a)
			if product == "" || c.product != "" && c.product != product {
				return nil, fmt.Errorf("broker URL with scheme %s: no driver takes it here", a.Scheme())
			}
			c.product = product
		} else if c.want != Auto {
			if _, err := providerOf(c.want); err != nil {
				return nil, err
			}
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// Unused returns the product of an address that was given although no lab of
// that product is run, or nothing.
func Unused(cs []Choice, products []string) string {
	for _, c := range cs {
		if strings.Contains(c.want, "://") && !slices.Contains(products, c.product) {
			return c.product
		}
	}
	return ""
}

func productOf(r *brokers.Registry, a brokers.Address) string {
	for _, name := range r.Names() {
		if d, err := r.Driver(name); err == nil && d.Scheme() == a.Scheme() {
			return name
		}
	}
	return ""
}

// Open brings up or adopts a broker of a product. A provider that was named
// never falls back to another.
func (o *Opener) Open(ctx context.Context, product string, choices []Choice) (brokers.Control, error) {
	d, err := o.Registry.Driver(product)
	if err != nil {
		return nil, err
	}
	want := choose(product, choices)
	if strings.Contains(want, "://") {
		return o.adopt(ctx, d, want)
	}
	kept, err := o.Kept(ctx, product)
	if err != nil {
		return nil, err
	}
	if kept != nil && (want == Auto || want == kept.Provider) {
		return o.adoptKept(ctx, kept, d)
	}
	return o.startFresh(ctx, d, want)
}

// OpenOwn brings up a broker for one run that does something to its process:
// never one that runs already. For an address it is brokers.ErrNotOurs.
func (o *Opener) OpenOwn(ctx context.Context, product string, choices []Choice) (brokers.Control, error) {
	d, err := o.Registry.Driver(product)
	if err != nil {
		return nil, err
	}
	want := choose(product, choices)
	if strings.Contains(want, "://") {
		return nil, fmt.Errorf("it does something to the broker's process, and %w: it was given as a URL", brokers.ErrNotOurs)
	}
	kept, err := o.Kept(ctx, product)
	if err != nil {
		return nil, err
	}
	if kept != nil && want == Auto {
		want = kept.Provider
	}
	return o.startFresh(ctx, d, want)
}

// choose finds what the user asked for about a product.
func choose(product string, choices []Choice) string {
	want := Auto
	for _, c := range choices {
		if c.product == product || c.product == "" && want == Auto {
			want = c.want
		}
	}
	return want
}

func (o *Opener) startFresh(ctx context.Context, d brokers.Driver, want string) (brokers.Control, error) {
	if want == Auto {
		return o.auto(ctx, d)
	}
	p, err := providerOf(want)
	if err != nil {
		return nil, err
	}
	if err := p.missing(ctx, o, d.Name()); err != nil && !errors.Is(err, errNotPulled) {
		return nil, err
	}
	o.note(taken(want, d.Name()))
	return p.start(ctx, o, d)
}

// taken says which provider was taken.
func taken(provider, product string) string {
	if provider == Embedded {
		product += " (simulated)"
	}
	return fmt.Sprintf("broker: %s for %s", provider, product)
}

// auto takes the first provider that is ready and says why not the others.
func (o *Opener) auto(ctx context.Context, d brokers.Driver) (brokers.Control, error) {
	var why []string
	for _, name := range providers() {
		p, err := providerOf(name)
		if err != nil {
			return nil, err
		}
		asked, cancel := context.WithTimeout(ctx, engineAuto)
		err = p.missing(asked, o, d.Name())
		cancel()
		if err != nil {
			why = append(why, fmt.Sprintf("%s is %v", name, err))
			continue
		}
		o.note(strings.Join(append([]string{taken(name, d.Name())}, why...), "; "))
		return p.start(ctx, o, d)
	}
	return nil, fmt.Errorf("no broker for %s: %s", d.Name(), strings.Join(why, "; "))
}

func (o *Opener) note(s string) {
	if o.Note != nil {
		o.Note(s)
	}
}

// adoptTimeout bounds the first question to a broker that the user runs; one of
// another kind may never answer it.
const adoptTimeout = 5 * time.Second

// adopt takes a broker that the user runs.
func (o *Opener) adopt(ctx context.Context, d brokers.Driver, url string) (brokers.Control, error) {
	a, err := brokers.ParseAddress(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	version, err := d.Probe(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("reach the %s at %s: %w", d.Name(), a, err)
	}
	return adopted{brokers.Origin{Product: d.Name(), Provider: URL, Version: version, Address: a, Adopted: true}}, nil
}

// adopted is a broker that runs without mqlab.
type adopted struct{ origin brokers.Origin }

func (a adopted) Origin() brokers.Origin { return a.origin }
func (a adopted) Died() <-chan struct{}  { return nil }
func (a adopted) Log() []byte            { return nil }
func (a adopted) Release() error         { return nil }

// Act does nothing to a broker that somebody else runs.
func (a adopted) Act(_ context.Context, act brokers.Act) error {
	return fmt.Errorf("%s the broker: %w", act, brokers.ErrNotOurs)
}
