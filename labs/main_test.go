package labs

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envPart makes the test binary play a part instead of testing: a role of a
// run, or a runner of its own.
const envPart = "MQLAB_LABS_TEST_PART"

func TestMain(m *testing.M) {
	switch part := os.Getenv(envPart); part {
	case "":
		goleak.VerifyTestMain(m)
	case partRole:
		os.Exit(act(os.Args[1:]))
	case partNobody:
		os.Exit(runAsNobody(os.Args[1]))
	default:
		fmt.Fprintf(os.Stderr, "no part is called %q\n", part)
		os.Exit(64)
	}
}
