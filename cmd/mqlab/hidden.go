package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"mqlab/compose"
)

// embeddedCommand serves a stand-in until it is killed by its guard.
func (a *app) embeddedCommand() *cobra.Command {
	var announce, dir string
	c := &cobra.Command{Use: "embedded PRODUCT", Hidden: true, Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		p, ok := productNamed(args[0])
		if !ok {
			return usage("no embedded server for %q", args[0])
		}
		var err error
		o := standInOptions{dir: dir}
		if o.port, err = announced(announce); err != nil {
			return environment(err)
		}
		s, err := p.standIn(cmd.Context(), o)
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
	c.Flags().StringVar(&dir, "dir", "", "the `FOLDER` for what is kept over a kill")
	return c
}

// announced is the port that a stand-in listened on before it was killed; its
// clients know no other.
func announced(file string) (int, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || file == "" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the address of the killed broker: %w", err)
	}
	u, err := url.Parse(string(b))
	if err != nil {
		return 0, fmt.Errorf("read the address of the killed broker: %w", err)
	}
	return strconv.Atoi(u.Port())
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
