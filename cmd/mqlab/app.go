package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"mqlab/compose"
	"mqlab/expected"
	"mqlab/labs"
)

// version is mqlab's own; the linker may set another.
var version = "0.1.0"

// app is what the commands share. Rules for what is printed: the report and
// what a command was asked for go to standard output; progress, notes and
// errors go to standard error, an error as `mqlab: what was attempted: why`.
type app struct {
	out     *output
	err     io.Writer
	mu      sync.Mutex // of both, since labs can run in parallel
	labsDir string
}

func newApp(out, err io.Writer) *app { return &app{out: &output{w: out}, err: err} }

// output is standard output; it remembers that something could not be written,
// so that no command has to ask at each line.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("write to standard output: %w", err)
	}
	return n, err
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:           "mqlab",
		Short:         "crash message consumers at exactly the chosen point and judge what was left behind",
		Long:          "mqlab crashes message consumers at exactly the chosen point, on real brokers, and judges what was left behind.\n\n" + exitHelp(),
		SilenceErrors: true, SilenceUsage: true, Version: version,
	}
	c.SetOut(a.out)
	c.SetErr(a.err)
	c.PersistentFlags().StringVar(&a.labsDir, "labs", "", "read labs from `DIR`/labs and DIR/expected, more fixtures from DIR/messages")
	c.AddCommand(a.runCommand(), a.listCommand(), a.showCommand(), a.assertCommand(), a.brokerCommand(),
		a.doctorCommand(), a.schemaCommand(), a.versionCommand(), a.embeddedCommand(), a.guardCommand())
	return c
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range exitMeaning() {
		fmt.Fprintf(&b, "  %3d  %s\n", e.Code, e.Text)
	}
	return b.String()
}

// exitCode prints an error and returns its code.
func (a *app) exitCode(err error) int {
	if a.out.err != nil {
		// A report that nobody could read is no report; only an interruption and
		// a violation say more.
		a.say("mqlab: %v", a.out.err)
		if c := code(err); c == exitInterrupted || c == exitViolated {
			return c
		}
		return exitEnvironment
	}
	if err == nil {
		return exitHeld
	}
	if text := err.Error(); text != "" {
		a.say("mqlab: %s", text)
	}
	return code(err)
}

// say writes one note to standard error.
func (a *app) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.err, format+"\n", args...) //nolint:errcheck // nowhere left to say it
}

func (a *app) catalogue() (*labs.Catalogue, error) {
	c := labs.NewCatalogue(expected.Files())
	if a.labsDir == "" {
		return c, nil
	}
	return c.In(a.labsDir)
}

func (a *app) opener() (*compose.Opener, error) {
	state, err := stateDir()
	if err != nil {
		return nil, environment(err)
	}
	self, err := program()
	if err != nil {
		return nil, environment(err)
	}
	o := &compose.Opener{Registry: registry(), Program: self, State: state, Version: version, Lacks: lacks, Note: func(s string) { a.say("%s", s) }}
	if err := o.Sweep(); err != nil {
		a.say("mqlab: %v", err)
	}
	return o, nil
}

// stateDir is where mqlab remembers brokers and runs between its processes.
func stateDir() (string, error) {
	if dir := os.Getenv("MQLAB_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mqlab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for mqlab's state: %w (set MQLAB_STATE)", err)
	}
	return filepath.Join(home, ".local", "state", "mqlab"), nil
}

// program is the command line that runs mqlab again.
func program() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find mqlab's own executable: %w", err)
	}
	return []string{self}, nil
}

// clientVersion is the version of a linked module.
func clientVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return module
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return module + " " + m.Version
		}
	}
	return module
}
