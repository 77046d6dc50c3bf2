package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mqlab/compose"
)

// embeddedCommand serves a stand-in until it is killed by its guard.
func (a *app) embeddedCommand() *cobra.Command {
	var announce string
	c := &cobra.Command{Use: "embedded PRODUCT", Hidden: true, Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		p, ok := productNamed(args[0])
		if !ok {
			return usage("no embedded server for %q", args[0])
		}
		s, err := p.standIn(cmd.Context())
		if err != nil {
			return environment(err)
		}
		if announce == "" {
			fmt.Fprintln(a.out, s.URL()) //nolint:errcheck // for a reader at a terminal
		} else if err := writeWhole(announce, s.URL()); err != nil {
			return environment(errors.Join(err, s.Close()))
		}
		<-cmd.Context().Done()
		return s.Close()
	}}
	c.Flags().StringVar(&announce, "announce", "", "the `FILE` to write the address into")
	return c
}

// writeWhole writes a file so that a reader never finds half of it.
func writeWhole(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return fmt.Errorf("announce the address: %w", err)
	}
	return os.Rename(path+".new", path)
}

func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{Use: "guard", Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		if err := compose.Guard(os.Stdin, os.Stdout); err != nil {
			return environment(err)
		}
		return nil
	}}
}
