package labs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// isStopped reports whether a process is stopped by a signal: on Linux from
// /proc (proc(5), state T), elsewhere from ps.
func isStopped(pid int) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		fields := afterName(string(b))
		return len(fields) > 0 && fields[0] == "T", nil
	}
	if _, noProc := os.Stat("/proc/self/stat"); noProc == nil {
		return false, fmt.Errorf("process %d is gone", pid)
	}
	out, err := ps(pid, "stat=")
	return strings.HasPrefix(out, "T"), err
}

// processStart is when a process began, in a form that can only be compared;
// empty when there is no such process.
func processStart(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		if fields := afterName(string(b)); len(fields) > 19 && fields[0] != "Z" {
			return fields[19] // field 22 of proc(5): starttime
		}
		return ""
	}
	out, err := ps(pid, "lstart=")
	if err != nil {
		return ""
	}
	return out
}

// afterName cuts a line of /proc/PID/stat behind the program's name, which may
// hold anything.
func afterName(stat string) []string {
	return strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
}

func ps(pid int, what string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", what, "-p", fmt.Sprint(pid)).Output()
	return strings.TrimSpace(string(out)), err
}
