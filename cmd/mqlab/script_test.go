package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the transcripts in testdata/script. UPDATE=1 rewrites what
// they compare with.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("MQLAB_STATE", e.WorkDir+"/state")
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"stable": stable,
			"exits":  exits,
		},
	})
}

// stable FILE writes to stable.txt what of a file does not depend on time, port
// or path.
func stable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stable FILE")
	}
	s := ts.ReadFile(args[0])
	for _, r := range []struct{ pattern, with string }{
		{`\d{8}T\d{6}Z-[a-z2-7]{10}`, "RUN"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`, "TIMESTAMP"},
		{`\b\d\d:\d\d:\d\d\.\d{3}\b`, "TIME"},
		{`127\.0\.0\.1:\d+`, "HOST:PORT"},
		{`(consumer-run\d|consumer|producer)-\d+-(after|before)`, "$1-PID-$2"},
		{`durationMs=\d+`, "durationMs=N"},
		{`\b\d+(\.\d+)?(ms|s)\b`, "DURATION"},
	} {
		s = regexp.MustCompile(r.pattern).ReplaceAllString(s, r.with)
	}
	s = strings.ReplaceAll(s, ts.Getenv("WORK"), "$WORK")
	ts.Check(os.WriteFile(ts.MkAbs("stable.txt"), []byte(s), 0o644))
}

// exits CODE COMMAND... runs mqlab and demands the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var c interface{ ExitCode() int }
		if !asExit(err, &c) {
			ts.Fatalf("%v", err)
		}
		got = c.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}
