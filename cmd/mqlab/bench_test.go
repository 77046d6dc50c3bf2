package main

import (
	"os"
	"os/exec"
	"testing"
)

// benchBinary builds mqlab as a user has it: the test binary is larger.
func benchBinary(b *testing.B) string {
	b.Helper()
	path := b.TempDir() + "/mqlab"
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func benchRun(b *testing.B, path string, args ...string) {
	b.Helper()
	dir := b.TempDir()
	for b.Loop() {
		c := exec.CommandContext(b.Context(), path, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "MQLAB_STATE="+dir+"/state", "MQLAB_BROKER=")
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// BenchmarkConsumerCrash is the main job from process start to exit, on an
// embedded broker of its own.
func BenchmarkConsumerCrash(b *testing.B) {
	benchRun(b, benchBinary(b), "run", "rabbitmq/consumer-crash", "--broker", "embedded")
}

// BenchmarkConsumerCrashReal is the same on the warm broker that
// MQLAB_TEST_BROKER_RABBITMQ names.
func BenchmarkConsumerCrashReal(b *testing.B) {
	url := os.Getenv("MQLAB_TEST_BROKER_RABBITMQ")
	if url == "" {
		b.Skip("set MQLAB_TEST_BROKER_RABBITMQ to the address of a RabbitMQ with management")
	}
	benchRun(b, benchBinary(b), "run", "rabbitmq/consumer-crash", "--broker", url)
}

// BenchmarkProcess is a process of mqlab that does nothing.
func BenchmarkProcess(b *testing.B) {
	benchRun(b, benchBinary(b), "version")
}
