package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mqlab/assert"
	"mqlab/labs"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{Use: "list [GLOB...]", Short: "list the labs", RunE: func(_ *cobra.Command, globs []string) error {
		c, err := a.catalogue()
		if err != nil {
			return usage("%w", err)
		}
		if len(globs) == 0 {
			globs = []string{"*/*"}
		}
		ids, err := c.Match(globs...)
		if err != nil {
			return usage("%w", err)
		}
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		var broken []error
		for _, id := range ids {
			l, err := c.Load(id)
			if err != nil {
				broken = append(broken, err)
				fmt.Fprintf(w, "%s\t(broken, see below)\n", id) //nolint:errcheck // Flush says it
				continue
			}
			fmt.Fprintf(w, "%s\t%s\n", id, l.Scenario.Summary) //nolint:errcheck // as above
		}
		return errors.Join(append(broken, w.Flush())...)
	}}
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{Use: "show LAB", Short: "show a lab: its scenario and what is expected of it", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
		c, err := a.catalogue()
		if err != nil {
			return usage("%w", err)
		}
		ids, err := c.Match(args[0])
		if err != nil {
			return usage("%w", err)
		}
		for _, id := range ids {
			l, err := c.Load(id)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "# %s\n%s\n# %s\n%s", l.File.Path, l.File.Text, l.Expected.Path, l.Expected.Text) //nolint:errcheck // a reader that is gone needs no more
			if _, _, err := load(c, id); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (a *app) assertCommand() *cobra.Command {
	var format string
	var partial bool
	c := &cobra.Command{
		Use:   "assert RUN...",
		Short: "judge saved runs again",
		Long: "assert judges run folders, also such as another program has written: logs named STEP.out.txt without a run.json.\n" +
			"With a run.json the lab's files as they were run are taken; without one those of the catalogue.\n\n" + exitHelp(),
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if format != "text" && format != "json" {
				return usage("--format is text or json, not %q", format)
			}
			var codes []int
			for _, dir := range dirs {
				r, err := a.judgeSaved(dir, partial)
				if err != nil {
					a.say("mqlab: %v", err)
					codes = append(codes, code(err))
					continue
				}
				codes = append(codes, codeOf(r.Outcome()))
				if err := a.printSaved(r, format, len(dirs) > 1); err != nil {
					return environment(err)
				}
			}
			if w := worst(codes...); w != exitHeld {
				return codeError{w, nil}
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	c.Flags().BoolVar(&partial, "partial", false, "judge a run that was never completed, too")
	return c
}

func (a *app) judgeSaved(dir string, partial bool) (*assert.Report, error) {
	run, err := labs.LoadRun(dir, partial)
	if errors.Is(err, labs.ErrPartial) {
		return nil, codeError{exitInconclusive, fmt.Errorf("%w (--partial judges it all the same)", err)}
	}
	if err != nil {
		return nil, environment(err)
	}
	l, err := a.labOf(run)
	if err != nil {
		return nil, err
	}
	d, err := registry().Driver(run.Product)
	if err != nil {
		return nil, usage("%w", err)
	}
	e, err := assert.ReadLab(l, d.Figures())
	if err != nil {
		return nil, err
	}
	return assert.Judge(run, e), nil
}

// labOf is the lab as it was run, or that of the catalogue for a folder without
// a record.
func (a *app) labOf(run *labs.Run) (*labs.Lab, error) {
	if run.Record != nil {
		return labs.Recorded(run.Record)
	}
	c, err := a.catalogue()
	if err != nil {
		return nil, usage("%w", err)
	}
	return c.Load(run.Product + "/" + run.Lab)
}

func (a *app) printSaved(r *assert.Report, format string, several bool) error {
	if format == "json" {
		b, err := r.JSON()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.out, string(b))
		return err
	}
	if several {
		if _, err := fmt.Fprintf(a.out, "%s/%s  run: %s\n", r.Product, r.Lab, r.Dir); err != nil {
			return err
		}
	}
	return r.Text(a.out)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the versions of mqlab and its clients", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		fmt.Fprintln(a.out, "mqlab", version) //nolint:errcheck // a reader that is gone needs no more
		for _, p := range products() {
			fmt.Fprintln(a.out, p.driver.Name(), clientVersion(p.client)) //nolint:errcheck // as above
		}
		return nil
	}}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{Use: "schema scenario|expected|run|replay", Short: "print the JSON Schema of a file", ValidArgs: []string{"scenario", "expected", "run", "replay"},
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), RunE: func(_ *cobra.Command, args []string) error {
			var b []byte
			var err error
			if args[0] == "expected" {
				b, err = assert.Schema()
			} else {
				b, err = labs.Schema(args[0])
			}
			if err != nil {
				return environment(err)
			}
			_, err = fmt.Fprintln(a.out, string(b))
			return err
		}}
}
