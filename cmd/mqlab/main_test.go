package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// envMain makes the test binary be mqlab, so that the children of a run (role,
// embedded, guard) are this binary too.
const envMain = "MQLAB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"mqlab": main})
}
