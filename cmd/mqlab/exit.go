package main

import (
	"errors"
	"fmt"
	"slices"

	"mqlab/assert"
)

// The exit codes. Over several labs the first of precedence wins.
const (
	exitHeld         = 0
	exitViolated     = 1
	exitUsage        = 2
	exitEnvironment  = 3
	exitInconclusive = 4
	exitInterrupted  = 130
)

// exitMeaning is the one table of exit codes, for the help text and the README.
func exitMeaning() []struct {
	Code int
	Text string
} {
	return []struct {
		Code int
		Text string
	}{
		{exitHeld, "every assertion held"},
		{exitViolated, "an assertion was violated"},
		{exitUsage, "wrong usage, or a lab file with a mistake"},
		{exitEnvironment, "the environment: no broker, no place to write"},
		{exitInconclusive, "inconclusive: nothing was proved; or every selected lab was skipped"},
		{exitInterrupted, "interrupted"},
	}
}

// precedence orders the codes over several labs.
func precedence() []int {
	return []int{exitInterrupted, exitUsage, exitViolated, exitEnvironment, exitInconclusive, exitHeld}
}

// worst is the code that stands for all of them.
func worst(codes ...int) int {
	for _, c := range precedence() {
		if slices.Contains(codes, c) {
			return c
		}
	}
	return exitHeld
}

// codeError is an error with its exit code; without text nothing is printed.
type codeError struct {
	code int
	err  error
}

func (e codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e codeError) Unwrap() error { return e.err }

func environment(err error) error { return codeError{exitEnvironment, err} }

func usage(format string, a ...any) error { return codeError{exitUsage, fmt.Errorf(format, a...)} }

// code is the exit code of an error; what nobody classified is wrong usage,
// since cobra's own errors are about flags and arguments, and those of labs
// about files.
func code(err error) int {
	var c codeError
	switch {
	case err == nil:
		return exitHeld
	case errors.As(err, &c):
		return c.code
	}
	return exitUsage
}

// codeOf is the exit code of a judged run.
func codeOf(o assert.Outcome) int {
	switch o {
	case assert.Violated:
		return exitViolated
	case assert.Inconclusive, assert.Skipped:
		return exitInconclusive
	}
	return exitHeld
}
