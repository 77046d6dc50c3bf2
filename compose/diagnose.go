package compose

import (
	"context"
	"fmt"
)

// Diagnosis is what a provider can do for a product on this machine.
type Diagnosis struct {
	Provider string
	State    string // ready, or what is missing and the command that helps
}

// Diagnose looks at every provider of a product.
func (o *Opener) Diagnose(ctx context.Context, product string) []Diagnosis {
	ctx, cancel := context.WithTimeout(ctx, engineNamed)
	defer cancel()
	var ds []Diagnosis
	for _, name := range providers() {
		d := Diagnosis{Provider: name, State: "ready"}
		if p, err := providerOf(name); err != nil {
			d.State = err.Error()
		} else if err := p.missing(ctx, o, product); err != nil {
			d.State = err.Error()
		} else if name == Embedded {
			d.State = "ready (simulated)"
		} else if name == Container {
			d.State = o.ready(ctx, product)
		}
		ds = append(ds, d)
	}
	switch k, err := o.Kept(ctx, product); {
	case err != nil:
		ds = append(ds, Diagnosis{"kept", err.Error()})
	case k != nil:
		ds = append(ds, Diagnosis{"kept", fmt.Sprintf("%s %s runs at %s", k.Provider, k.Version, k.Shown())})
	default:
		ds = append(ds, Diagnosis{"kept", fmt.Sprintf("none (mqlab broker up %s)", product)})
	}
	return ds
}
