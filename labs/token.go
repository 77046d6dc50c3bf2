package labs

import (
	"fmt"
	"strings"

	"mqlab/gate"
)

// Token names one arrival in the log: STEP-PID-CHECKPOINT-MESSAGE-N. Role and
// runner build it alike, so that the runner can wait for the line.
func Token(step string, pid int, a gate.Arrival) string {
	message := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, a.Message)
	if message == "" {
		message = "none"
	}
	return fmt.Sprintf("%s-%d-%s-%s-%d", step, pid, a.Checkpoint, message, a.N)
}
