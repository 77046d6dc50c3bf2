package labs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log that is not what the runner saw is told apart, line by line.
func TestAltered(t *testing.T) {
	t.Parallel()
	const log = "[setup] product=rabbitmq lab=basic status=prepared\n[setup] product=rabbitmq lab=basic status=seeded\n"
	for _, c := range []struct{ name, now, want string }{
		{"untouched", log, ""},
		{"changed", strings.Replace(log, "seeded", "done", 1), "setup.out.txt:2 was changed after the run"},
		{"added", log + "more\n", "setup.out.txt:3 was added after the run"},
		{"cut", log[:strings.Index(log, "\n")+1], "setup.out.txt lacks lines that the runner saw"},
		{"emptied", "", "setup.out.txt:1 was changed after the run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a [b]") // a glob would stumble
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			replay := Replay{Schema: RecordSchema}
			for i, text := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
				sum := sha256.Sum256([]byte(text))
				replay.Moments = append(replay.Moments, Moment{Kind: "line", File: "setup.out.txt", Line: i + 1, SHA256: hex.EncodeToString(sum[:])})
			}
			for name, v := range map[string]any{ReplayFile: replay, RecordFile: Record{Schema: RecordSchema, Complete: true, Product: "rabbitmq", Lab: "basic"}} {
				b, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "setup.out.txt"), []byte(c.now), 0o644); err != nil {
				t.Fatal(err)
			}
			run, err := LoadRun(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(run.Altered, "; "); got != c.want {
				t.Errorf("Altered = %q, want %q", got, c.want)
			}
		})
	}
}
