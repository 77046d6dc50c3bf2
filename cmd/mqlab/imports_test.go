package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// allowed is the import graph: which of our packages each one may import.
// Test files may also use what they test against.
func allowed() map[string][]string {
	return map[string][]string{
		"mqlab/gate":                      {},
		"mqlab/brokers":                   {},
		"mqlab/expected":                  {},
		"mqlab/brokers/brokertest":        {"mqlab/brokers"},
		"mqlab/brokers/rabbitmq":          {"mqlab/brokers"},
		"mqlab/brokers/rabbitmq/embedded": {},
		"mqlab/brokers/kafka":             {"mqlab/brokers"},
		"mqlab/brokers/kafka/embedded":    {},
		"mqlab/brokers/pulsar":            {"mqlab/brokers"},
		"mqlab/brokers/pulsar/embedded":   {},
		"mqlab/brokers/rocketmq":          {"mqlab/brokers"},
		"mqlab/brokers/rocketmq/embedded": {},
		"mqlab/labs":                      {"mqlab/gate", "mqlab/brokers"},
		"mqlab/assert":                    {"mqlab/labs", "mqlab/expected"},
		"mqlab/compose":                   {"mqlab/brokers"},
		"mqlab/compose/reaper":            {},
		"mqlab/cmd/mqlab/role":            {"mqlab/labs", "mqlab/gate", "mqlab/brokers", "mqlab/cmd/mqlab/role/designs"},
		"mqlab/cmd/mqlab/role/designs":    {"mqlab/labs", "mqlab/gate"},
		"mqlab/cmd/mqlab": {"mqlab/labs", "mqlab/gate", "mqlab/brokers", "mqlab/brokers/rabbitmq", "mqlab/brokers/rabbitmq/embedded",
			"mqlab/brokers/kafka", "mqlab/brokers/kafka/embedded",
			"mqlab/brokers/pulsar", "mqlab/brokers/pulsar/embedded", "mqlab/brokers/rocketmq", "mqlab/brokers/rocketmq/embedded",
			"mqlab/brokers/brokertest", "mqlab/assert", "mqlab/expected", "mqlab/compose", "mqlab/cmd/mqlab/role"},
	}
}

// fences says in which of our folders a third party may be imported.
func fences() map[string][]string {
	return map[string][]string{
		"github.com/rabbitmq/amqp091-go":          {"mqlab/brokers/rabbitmq"},
		"github.com/twmb/franz-go":                {"mqlab/brokers/kafka"},
		"github.com/shirou/gopsutil":              {"mqlab/compose"},
		"github.com/testcontainers":               {"mqlab/compose"},
		"github.com/moby/moby":                    {"mqlab/compose"},
		"github.com/containerd/errdefs":           {"mqlab/compose"},
		"modernc.org/sqlite":                      {"mqlab/cmd/mqlab/role"},
		"github.com/spf13/cobra":                  {"mqlab/cmd/mqlab"},
		"github.com/goccy/go-yaml":                {"mqlab/labs", "mqlab/assert", "mqlab/compose"},
		"github.com/google/jsonschema-go":         {"mqlab/labs", "mqlab/assert"},
		"github.com/apache/pulsar-client-go":      {"mqlab/brokers/pulsar"},
		"github.com/prometheus/client_golang":     {"mqlab/brokers/pulsar"},
		"google.golang.org/protobuf":              {"mqlab/brokers/pulsar"},
		"github.com/apache/rocketmq-client-go/v2": {"mqlab/brokers/rocketmq"},
	}
}

func TestImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "mqlab/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen++
		checkImports(t, p)
	}
	if seen != len(allowed()) {
		t.Errorf("%d packages, the graph has %d", seen, len(allowed()))
	}
}

func checkImports(t *testing.T, p goPackage) {
	t.Helper()
	may, known := allowed()[p.ImportPath]
	if !known {
		t.Errorf("%s is not in the import graph", p.ImportPath)
	}
	for _, i := range p.Imports {
		if strings.HasPrefix(i, "mqlab/") && !slices.Contains(may, i) {
			t.Errorf("%s imports %s", p.ImportPath, i)
		}
		if p.ImportPath == "mqlab/brokers/pulsar/embedded" && strings.HasPrefix(i, "github.com/") {
			t.Errorf("%s imports %s, a stand-in has its own protocol code", p.ImportPath, i)
		}
		std := []string{"mqlab/gate", "mqlab/brokers", "mqlab/expected", "mqlab/brokers/rabbitmq/embedded", "mqlab/brokers/rocketmq/embedded", "mqlab/compose/reaper"}
		if slices.Contains(std, p.ImportPath) {
			if first, _, _ := strings.Cut(i, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s, it may have the standard library only", p.ImportPath, i)
			}
		}
	}
	for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
		for module, homes := range fences() {
			if i != module && !strings.HasPrefix(i, module+"/") {
				continue
			}
			if !slices.ContainsFunc(homes, func(h string) bool { return p.ImportPath == h || strings.HasPrefix(p.ImportPath, h+"/") }) {
				t.Errorf("%s imports %s, which belongs into %v", p.ImportPath, i, homes)
			}
		}
	}
}
