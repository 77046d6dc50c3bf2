package brokers

import (
	"fmt"
	"slices"
	"strings"
)

// Registry holds the drivers by name. It is built once in main and passed down.
type Registry struct{ drivers []Driver }

// NewRegistry panics when two drivers share a name or a scheme, which is a
// mistake in the program.
func NewRegistry(drivers ...Driver) *Registry {
	r := &Registry{}
	for _, d := range drivers {
		for _, o := range r.drivers {
			if o.Name() == d.Name() || o.Scheme() == d.Scheme() {
				panic(fmt.Sprintf("brokers: driver %s is registered twice", d.Name()))
			}
		}
		r.drivers = append(r.drivers, d)
	}
	return r
}

// Names lists the products in the order of registration.
func (r *Registry) Names() []string {
	var n []string
	for _, d := range r.drivers {
		n = append(n, d.Name())
	}
	return n
}

// Driver returns the driver of a product.
func (r *Registry) Driver(name string) (Driver, error) {
	if i := slices.IndexFunc(r.drivers, func(d Driver) bool { return d.Name() == name }); i >= 0 {
		return r.drivers[i], nil
	}
	return nil, fmt.Errorf("no driver for broker %q; there is %s", name, strings.Join(r.Names(), ", "))
}
