package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"mqlab/assert"
	"mqlab/brokers"
	"mqlab/compose"
	"mqlab/labs"
)

// runFlags are the flags of `mqlab run`.
type runFlags struct {
	broker   []string
	runs     string
	repeat   int
	parallel int
	timeout  time.Duration
	format   string
	keep     bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run LAB...",
		Short: "run labs and judge what they leave behind",
		Long: "run runs labs, named as BROKER/NAME or by globs such as 'rabbitmq/*', and judges each against its expected file.\n" +
			"The report goes to standard output, progress to standard error; each run leaves a folder that can be judged again.\n\n" + exitHelp(),
		Example: "  mqlab run rabbitmq/consumer-crash\n  mqlab run 'rabbitmq/*' --broker native --repeat 5",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
	}
	c.Flags().StringArrayVar(&f.broker, "broker", nil, "auto, container, native, embedded or a `URL`; for one product: rabbitmq=native (default auto; environment MQLAB_BROKER)")
	c.Flags().StringVar(&f.runs, "runs", "runs", "the `DIR` of the run folders")
	c.Flags().BoolVar(&f.keep, "keep", false, "let a broker that was started go on (mqlab broker down ends it)")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "run each lab so many times")
	c.Flags().IntVar(&f.parallel, "parallel", 1, "run so many labs at once")
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "bound each run; default: what the lab says, else 60s")
	c.Flags().StringVar(&f.format, "format", "text", "text or json")
	return c
}

// job is one run of one lab.
type job struct {
	lab      *labs.Lab
	expected *assert.Expected
	round    int
}

// result is what became of a job.
type result struct {
	job
	report *assert.Report
	origin brokers.Origin
	dir    string
	took   time.Duration
	skip   string
	err    error
	code   int
}

func (a *app) run(ctx context.Context, globs []string, f runFlags) error {
	switch {
	case f.repeat < 1 || f.parallel < 1:
		return usage("--repeat and --parallel are at least 1")
	case f.format != "text" && f.format != "json":
		return usage("--format is text or json, not %q", f.format)
	case f.timeout < 0:
		return usage("--timeout is not negative")
	}
	choices, err := compose.ParseChoices(registry(), f.broker)
	if err != nil {
		return usage("--broker: %w", err)
	}
	jobs, err := a.jobs(globs, f.repeat)
	if err != nil {
		return err
	}
	var used []string
	for _, j := range jobs {
		used = append(used, j.lab.Product)
	}
	if name := compose.Unused(choices, used); name != "" && len(f.broker) > 0 { // the environment may name brokers for every day
		return usage("--broker: it is the address of a %s, and no lab of %s was named", name, name)
	}
	opener, err := a.opener()
	if err != nil {
		return err
	}
	defer a.close(opener)
	runners, closeAll, err := a.runners(ctx, opener, jobs, choices, f)
	if err != nil {
		return errors.Join(err, closeAll())
	}
	results := a.runAll(ctx, jobs, f, func(ctx context.Context, j job) *result {
		if j.lab.Scenario.OwnBroker() {
			return a.runOwn(ctx, j, opener, choices, f, len(jobs))
		}
		return a.runOne(ctx, j, runners[j.lab.Product])
	})
	if f.keep && ctx.Err() == nil {
		a.keep(ctx, opener, runners)
	}
	if err := closeAll(); err != nil {
		a.say("mqlab: %v", err)
	}
	return a.conclude(results, f)
}

// keep lets the brokers go on that the runs have shared.
func (a *app) keep(ctx context.Context, o *compose.Opener, runners map[string]*labs.Runner) {
	for product, r := range runners {
		k, _, err := o.Keep(ctx, r.Control)
		if err != nil {
			a.say("mqlab: %v", err)
		}
		if k != nil {
			delete(runners, product) // it is not to be released
			a.say("%s goes on: %s (mqlab broker down %s ends it)", product, k.Shown(), product)
		}
	}
}

// jobs loads and checks every lab before any broker is touched.
func (a *app) jobs(globs []string, repeat int) ([]job, error) {
	c, err := a.catalogue()
	if err != nil {
		return nil, usage("%w", err)
	}
	ids, err := c.Match(globs...)
	if err != nil {
		return nil, usage("%w", err)
	}
	var jobs []job
	var errs []error
	for _, id := range ids {
		l, e, err := load(c, id)
		errs = append(errs, err)
		for n := range repeat {
			jobs = append(jobs, job{l, e, n + 1})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, codeError{exitUsage, err}
	}
	return jobs, nil
}

// load reads and checks both files of a lab.
func load(c *labs.Catalogue, id string) (*labs.Lab, *assert.Expected, error) {
	l, err := c.Load(id)
	if err != nil {
		return nil, nil, err
	}
	d, err := registry().Driver(l.Product)
	if err != nil {
		return nil, nil, err
	}
	checked := l.Check(d)
	e, err := assert.ReadLab(l, d.Figures())
	return l, e, errors.Join(checked, err)
}

// runners opens one broker per product.
func (a *app) runners(ctx context.Context, o *compose.Opener, jobs []job, choices []compose.Choice, f runFlags) (map[string]*labs.Runner, func() error, error) {
	rs := map[string]*labs.Runner{}
	closeAll := func() error {
		var errs []error
		for _, r := range rs {
			errs = append(errs, r.Control.Release())
		}
		return errors.Join(errs...)
	}
	for _, j := range jobs {
		if rs[j.lab.Product] != nil || j.lab.Scenario.OwnBroker() {
			continue
		}
		control, err := o.Open(ctx, j.lab.Product, choices)
		if err != nil && ctx.Err() != nil {
			return rs, closeAll, codeError{exitInterrupted, err}
		}
		if err != nil {
			return rs, closeAll, environment(err)
		}
		r := a.runner(o, j.lab.Product, control, f, len(jobs))
		rs[j.lab.Product] = r
		n, err := r.Sweep(ctx)
		if err != nil {
			a.say("mqlab: %v", err)
		}
		if n > 0 {
			a.say("removed what %d killed run(s) had left on the broker", n)
		}
	}
	return rs, closeAll, nil
}

func (a *app) runner(o *compose.Opener, product string, control brokers.Control, f runFlags, jobs int) *labs.Runner {
	p, _ := productNamed(product)
	r := &labs.Runner{Driver: p.driver, Control: control, Program: o.Program, Env: roleEnv(), Root: f.runs, State: o.State,
		Timeout: f.timeout, Version: version, Client: clientVersion(p.client), Progress: a.progress(jobs)}
	if a.labsDir != "" {
		r.Args = []string{"--labs", a.labsDir}
	}
	return r
}

// runOwn runs a lab that does something to its broker on one of its own, which
// ends with the run.
func (a *app) runOwn(ctx context.Context, j job, o *compose.Opener, choices []compose.Choice, f runFlags, jobs int) *result {
	control, err := o.OpenOwn(ctx, j.lab.Product, choices)
	if err != nil {
		res := &result{job: j, origin: brokers.Origin{Product: j.lab.Product}, err: err, code: exitEnvironment}
		switch {
		case ctx.Err() != nil:
			res.code = exitInterrupted
		case errors.Is(err, brokers.ErrNotOurs):
			res.err, res.skip, res.code = nil, err.Error(), exitInconclusive
		}
		return res
	}
	res := a.runOne(ctx, j, a.runner(o, j.lab.Product, control, f, jobs))
	if err := control.Release(); err != nil && res.err == nil {
		res.err, res.code = err, exitEnvironment
	}
	return res
}

// roleEnv is the environment of a role: ours, without what chooses brokers.
func roleEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := bytes.Cut([]byte(kv), []byte("=")); string(name) != compose.EnvChoice && string(name) != labs.EnvBroker {
			env = append(env, kv)
		}
	}
	return env
}

// progress shows each step of a single run; several runs show their results.
func (a *app) progress(jobs int) func(labs.Progress) {
	if jobs > 1 {
		return nil
	}
	return func(p labs.Progress) {
		if p.Ends {
			a.say("%-14s exit %-3d  %s", p.Step, p.Exit, p.Took.Round(time.Millisecond))
		}
	}
}

// runAll runs the jobs, as many at once as asked for, and reports each as it
// ends. After an interruption no more are started.
func (a *app) runAll(ctx context.Context, jobs []job, f runFlags, one func(context.Context, job) *result) []*result {
	results := make([]*result, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(f.parallel, len(jobs)) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue // both were ready, the interruption wins
				}
				results[i] = one(ctx, jobs[i])
				if f.format == "text" {
					a.print(results[i], len(jobs))
				}
			}
		})
	}
send:
	for i := range jobs {
		select {
		case next <- i:
		case <-ctx.Done():
			break send
		}
	}
	close(next)
	workers.Wait()
	return results
}

// runOne runs, judges and seals.
func (a *app) runOne(ctx context.Context, j job, r *labs.Runner) *result {
	res := &result{job: j, origin: r.Control.Origin()}
	if res.skip = r.Skips(j.lab); res.skip != "" {
		res.code = exitInconclusive
		return res
	}
	start := time.Now()
	ev, err := r.Run(ctx, j.lab)
	if err != nil {
		res.err, res.code = err, exitEnvironment
		if ev != nil {
			res.dir = ev.Dir()
		}
		return res
	}
	res.dir = ev.Dir()
	if res.err = res.judge(ev); res.err != nil {
		res.code = exitEnvironment
	}
	if ev.Record.Interrupted {
		res.code = exitInterrupted
	}
	res.took = time.Since(start)
	return res
}

// judge reads the evidence back from the folder, as `mqlab assert` does later.
func (r *result) judge(ev *labs.Evidence) error {
	run, err := labs.LoadRun(ev.Dir(), true)
	if err != nil {
		return err
	}
	r.report = assert.Judge(run, r.expected)
	r.code = codeOf(r.report.Outcome())
	var text bytes.Buffer
	err = r.report.Text(&text)
	if err == nil {
		err = ev.WriteFile(labs.ReportFile, text.Bytes())
	}
	if err == nil {
		err = ev.Seal()
	}
	r.dir = ev.Dir()
	r.report.Dir = r.dir
	return err
}

// print writes one result: a single run whole, of several those that held as
// one line.
func (a *app) print(r *result, jobs int) {
	name := r.lab.ID
	if r.round > 1 || jobs > 1 {
		name += fmt.Sprintf(" #%d", r.round)
	}
	if r.err != nil {
		a.say("mqlab: %s: %v", name, r.err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var b bytes.Buffer
	switch {
	case r.skip != "":
		fmt.Fprintf(&b, "SKIP %s: %s\n", name, r.skip)
	case jobs > 1 && r.code == exitHeld:
		fmt.Fprintf(&b, "HELD %s  broker: %s  %s  %s\n", name, r.origin, r.took.Round(time.Millisecond), filepath.ToSlash(r.dir))
	default:
		fmt.Fprintf(&b, "%s  broker: %s  run: %s\n", name, r.origin, filepath.ToSlash(r.dir))
		r.report.Text(&b) //nolint:errcheck // a buffer takes everything
	}
	a.out.Write(b.Bytes()) //nolint:errcheck // a reader that is gone does not change the verdict
}

// conclude sums up and returns the exit code as an error.
func (a *app) conclude(results []*result, f runFlags) error {
	var codes []int
	counts := map[int]int{}
	skipped := 0
	for _, r := range results {
		switch {
		case r == nil:
			codes = append(codes, exitInterrupted)
		case r.skip != "":
			skipped++
		default:
			codes = append(codes, r.code)
			counts[r.code]++
		}
	}
	total := worst(codes...)
	if skipped == len(results) {
		total = exitInconclusive
	}
	if f.format == "json" {
		if err := a.printJSON(results, total); err != nil {
			return err
		}
	} else if len(results) > 1 {
		fmt.Fprintf(a.out, "RESULT: %d run(s): %d held, %d violated, %d inconclusive, %d without a verdict, %d skipped\n", //nolint:errcheck // as in print
			len(results), counts[exitHeld], counts[exitViolated], counts[exitInconclusive],
			len(results)-skipped-counts[exitHeld]-counts[exitViolated]-counts[exitInconclusive], skipped)
	}
	if total == exitHeld {
		return nil
	}
	return codeError{total, nil}
}

// jsonRun is one run in `--format json`.
type jsonRun struct {
	Lab    string          `json:"lab"`
	Round  int             `json:"round"`
	Broker brokers.Origin  `json:"broker"`
	Dir    string          `json:"dir,omitempty"`
	Took   float64         `json:"seconds"`
	Exit   int             `json:"exit"`
	Skip   string          `json:"skip,omitempty"`
	Error  string          `json:"error,omitempty"`
	Report json.RawMessage `json:"report,omitempty"`
}

func (a *app) printJSON(results []*result, total int) error {
	doc := struct {
		Exit int       `json:"exit"`
		Runs []jsonRun `json:"runs"`
	}{Exit: total, Runs: []jsonRun{}}
	for _, r := range results {
		if r == nil {
			continue
		}
		j := jsonRun{Lab: r.lab.ID, Round: r.round, Broker: r.origin, Dir: filepath.ToSlash(r.dir), Took: r.took.Seconds(), Exit: r.code, Skip: r.skip}
		if r.err != nil {
			j.Error = r.err.Error()
		}
		if r.report != nil {
			b, err := r.report.JSON()
			if err != nil {
				return err
			}
			j.Report = b
		}
		doc.Runs = append(doc.Runs, j)
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, string(b))
	return err
}
