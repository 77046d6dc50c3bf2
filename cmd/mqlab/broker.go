package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"mqlab/compose"
	"mqlab/labs"
)

func (a *app) brokerCommand() *cobra.Command {
	c := &cobra.Command{Use: "broker", Short: "keep a broker running between runs"}
	var want string
	up := &cobra.Command{Use: "up PRODUCT", Short: "start a broker and leave it running; runs adopt it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.openerFor(args[0])
			if err != nil {
				return err
			}
			defer a.close(o)
			start := time.Now()
			k, started, err := o.Up(cmd.Context(), args[0], want)
			if err != nil && cmd.Context().Err() != nil {
				return codeError{exitInterrupted, err}
			}
			if err != nil {
				return environment(err)
			}
			if !started {
				fmt.Fprintf(a.out, "%s %s runs already: %s\n", k.Product, k.Provider, k.Shown()) //nolint:errcheck // a reader that is gone needs no more
				return nil
			}
			fmt.Fprintf(a.out, "%s %s %s is up after %.1f s: %s\n", k.Product, k.Provider, k.Version, time.Since(start).Seconds(), k.Shown()) //nolint:errcheck // as above
			return nil
		}}
	up.Flags().StringVar(&want, "broker", compose.Auto, "container, native or embedded; auto is native")
	down := &cobra.Command{Use: "down PRODUCT", Short: "end a broker that was left running", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.openerFor(args[0])
			if err != nil {
				return err
			}
			defer a.close(o)
			k, err := o.Down(cmd.Context(), args[0])
			if err != nil {
				return environment(err)
			}
			if k == nil {
				fmt.Fprintf(a.out, "no %s is kept running\n", args[0]) //nolint:errcheck // as above
				return nil
			}
			if err := labs.Forget(o.State, k.Shown()); err != nil {
				return environment(err)
			}
			fmt.Fprintf(a.out, "%s %s is down\n", k.Product, k.Provider) //nolint:errcheck // as above
			return nil
		}}
	status := &cobra.Command{Use: "status [PRODUCT]", Short: "show the brokers that are kept running", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.brokerStatus(cmd.Context(), args) }}
	logs := &cobra.Command{Use: "logs PRODUCT", Short: "print what a kept broker has written", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.brokerLogs(cmd.Context(), args[0]) }}
	from := ""
	install := &cobra.Command{Use: "install PRODUCT...", Short: "fetch a broker into the user's cache folder, or its image", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from != compose.Native && from != compose.Container {
				return usage("--broker: native or container can be installed, not %q", from)
			}
			for _, product := range args {
				o, err := a.openerFor(product)
				if err != nil {
					return err
				}
				fetch := o.Install
				if from == compose.Container {
					fetch = o.Pull
				}
				err = fetch(cmd.Context(), product)
				a.close(o)
				if err != nil && cmd.Context().Err() != nil {
					return codeError{exitInterrupted, err}
				} else if err != nil {
					return environment(err)
				}
			}
			return nil
		}}
	install.Flags().StringVar(&from, "broker", compose.Native, "native, or container for its image")
	c.AddCommand(up, down, status, logs, install)
	return c
}

func (a *app) openerFor(product string) (*compose.Opener, error) {
	if _, err := registry().Driver(product); err != nil {
		return nil, usage("%w", err)
	}
	return a.opener()
}

// close lets go of what an opener has used; what is wrong with that changes no
// result.
func (a *app) close(o *compose.Opener) {
	if err := o.Close(); err != nil {
		a.say("mqlab: %v", err)
	}
}

func (a *app) brokerStatus(ctx context.Context, names []string) error {
	if len(names) == 0 {
		names = registry().Names()
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, name := range names {
		o, err := a.openerFor(name)
		if err != nil {
			return err
		}
		k, err := o.Kept(ctx, name)
		if err != nil {
			return environment(err)
		}
		if k == nil {
			fmt.Fprintf(w, "%s\tnot kept running\n", name) //nolint:errcheck // Flush says it
			continue
		}
		u, err := o.Usage(ctx, k)
		a.close(o)
		if err != nil {
			return environment(err)
		}
		fmt.Fprintf(w, "%s\t%s\tpid %d\t%d MB\tup %s\t%s\tports %s\n", name, strings.TrimSpace(k.Provider+" "+k.Version+" "+k.Image), u.PID, u.Memory>>20, //nolint:errcheck // as above
			time.Since(k.Started).Round(time.Second), k.Shown(), strings.Trim(fmt.Sprint(u.Ports), "[]"))
	}
	return w.Flush()
}

func (a *app) brokerLogs(ctx context.Context, product string) error {
	o, err := a.openerFor(product)
	if err != nil {
		return err
	}
	defer a.close(o)
	k, err := o.Kept(ctx, product)
	if err != nil {
		return environment(err)
	}
	if k == nil {
		return environment(fmt.Errorf("no %s is kept running (mqlab broker up %s)", product, product))
	}
	f, err := o.Log(ctx, k)
	if err != nil {
		return environment(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	_, err = io.Copy(a.out, f)
	return err
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "show which brokers can run here, and what is missing", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		o, err := a.opener()
		if err != nil {
			return err
		}
		defer a.close(o)
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "BROKER\tPROVIDER\tSTATE") //nolint:errcheck // Flush says it
		for _, name := range o.Registry.Names() {
			for _, row := range o.Diagnose(cmd.Context(), name) {
				fmt.Fprintf(w, "%s\t%s\t%s\n", name, row.Provider, row.State) //nolint:errcheck // as above
			}
		}
		return w.Flush()
	}}
}
