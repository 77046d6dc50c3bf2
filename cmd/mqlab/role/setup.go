package role

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mqlab/labs"
)

// setup makes the destination, and the orders that a design needs to find.
func (r *role) setup(ctx context.Context) error {
	if err := r.driver.Prepare(ctx, r.o.Address, r.dest); err != nil {
		return fmt.Errorf("prepare the destination: %w", err)
	}
	r.log.line("prepared", labs.Pair{Key: "destination", Value: r.dest.Name()})
	var stores []string
	for _, s := range r.lab.Scenario.Steps {
		c := r.lab.Scenario.ConsumerOf(s)
		if s.RoleName() == labs.RoleConsumer && labs.Designs()[c.Design].Seeded && !slices.Contains(stores, c.Store) {
			stores = append(stores, c.Store)
		}
	}
	for _, name := range stores {
		if err := r.seed(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// seed writes an order that waits for its payment for each message.
func (r *role) seed(ctx context.Context, store string) (err error) {
	s, err := OpenStore(ctx, r.storePath(store), r.lab.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, m := range r.sent() {
		o, err := r.lab.Fixtures[m].Envelope.Payload.Order()
		if err != nil {
			continue // a poison message has no order to wait for
		}
		if err := s.Seed(ctx, o); err != nil {
			return err
		}
		r.log.line("seeded", labs.Pair{Key: "aggregateId", Value: o.ID}, labs.Pair{Key: "table", Value: "orders"}, labs.Pair{Key: "state", Value: waitPay})
	}
	return nil
}

// sent lists the scenario's fixtures and those of its producers, each once.
func (r *role) sent() []string {
	names := slices.Clone(r.lab.Scenario.Messages)
	for _, s := range r.lab.Scenario.Steps {
		if s.RoleName() != labs.RoleProducer {
			continue
		}
		for _, m := range r.lab.Scenario.ProducerOf(s).Messages {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	return names
}
