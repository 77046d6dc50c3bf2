package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"mqlab/brokers"
	"mqlab/cmd/mqlab/role"
	"mqlab/expected"
	"mqlab/labs"
)

// roleMain is the hidden command that a step's process runs. It parses its own
// flags: five of them start in every run, and cobra's tree is not needed.
func roleMain(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return 0, fmt.Errorf("usage: %s=URL mqlab role ROLE --lab BROKER/NAME [--step STEP] [--store DIR] [--received N]; there is %s",
			role.EnvBroker, strings.Join(labs.Roles(), ", "))
	}
	o := role.Options{Role: args[0], Registry: registry(), Catalogue: labs.NewCatalogue(expected.Files()),
		Out: os.Stdout, Err: os.Stderr, Exit: os.Exit}
	if !slices.Contains(labs.Roles(), o.Role) {
		return 0, fmt.Errorf("no role is named %q%s", o.Role, labs.Nearest(o.Role, labs.Roles()))
	}
	fs := flag.NewFlagSet("mqlab role "+o.Role, flag.ContinueOnError)
	fs.StringVar(&o.Lab, "lab", "", "BROKER/NAME")
	fs.StringVar(&o.Step, "step", "", "the lab's step; default: its first with this role")
	fs.StringVar(&o.Run, "run", "", "the run's id, a suffix of every name on the broker")
	fs.StringVar(&o.Store, "store", ".", "the folder of the databases")
	fs.IntVar(&o.Received, "received", 0, "end after so many deliveries")
	fs.StringVar(&o.Digest, "digest", "", "SHA-256 that the scenario's file must have")
	dir := fs.String("labs", "", "a folder with labs of one's own")
	if err := fs.Parse(args[1:]); err != nil {
		return role.ExitUsage, nil // flag has printed it
	}
	if *dir != "" {
		c, err := o.Catalogue.In(*dir)
		if err != nil {
			return 0, err
		}
		o.Catalogue = c
	}
	if url := os.Getenv(role.EnvBroker); url != "" {
		a, err := brokers.ParseAddress(url)
		if err != nil {
			return 0, err
		}
		o.Address = a
	}
	return role.Run(ctx, o), nil
}
