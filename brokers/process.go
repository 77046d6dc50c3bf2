package brokers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ProcessStart is when a process began, in a form that can only be compared:
// together with the pid it names one process for ever. It is empty when there
// is no such process. On Linux it comes from /proc (proc(5), field 22), where
// there is none from ps.
func ProcessStart(pid int) string {
	if fields := procStat(pid); len(fields) > 19 && fields[0] != "Z" {
		return fields[19]
	}
	if hasProc() {
		return ""
	}
	out, err := ps(pid, "lstart=")
	if err != nil {
		return ""
	}
	return out
}

// ProcessStopped reports whether a process is stopped by a signal.
func ProcessStopped(pid int) (bool, error) {
	if fields := procStat(pid); len(fields) > 0 {
		return fields[0] == "T", nil
	}
	if hasProc() {
		return false, fmt.Errorf("process %d is gone", pid)
	}
	out, err := ps(pid, "stat=")
	return strings.HasPrefix(out, "T"), err
}

// procStat is /proc/PID/stat behind the program's name, which may hold anything.
func procStat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	s := string(b)
	return strings.Fields(s[strings.LastIndex(s, ")")+1:])
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

func ps(pid int, what string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", what, "-p", fmt.Sprint(pid)).Output()
	return strings.TrimSpace(string(out)), err
}
