package labs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// partNobody is the part of a runner that is not root: root may write anywhere,
// whatever the mode bits say.
const partNobody = "nobody"

// runAsNobody runs a lab as another user in a folder that is not his.
func runAsNobody(root string) int {
	if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
		fmt.Println(err)
		return 64
	}
	b := newFakeBroker(root)
	r := &Runner{Driver: b, Control: b, Program: []string{"/no/such/program"}, Root: root, Version: "test"}
	_, err := r.Run(context.Background(), &Lab{ID: "rabbitmq/decoy", Product: "rabbitmq", Name: "decoy"})
	fmt.Println(err)
	if errors.Is(err, os.ErrPermission) {
		return 3
	}
	return 1
}

func TestRunsFolderThatIsReadOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	var out []byte
	if os.Getuid() == 0 {
		c := exec.CommandContext(t.Context(), os.Args[0], root)
		c.Env = append(os.Environ(), envPart+"="+partNobody)
		got, err := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != 3 {
			t.Fatalf("the runner ended with %v, want that it may not write:\n%s", err, got)
		}
		out = got
	} else {
		st := scene{steps: "  - {name: producer}\n"}.set(t)
		st.runner.Root = root
		st.play(t)
		if !errors.Is(st.err, os.ErrPermission) {
			t.Fatalf("Run: %v, want a permission error", st.err)
		}
		out = []byte(st.err.Error())
	}
	if !strings.Contains(string(out), "make the run folder: ") || !strings.Contains(string(out), root) {
		t.Errorf("the message is %q, want what was attempted and the folder", out)
	}
	if left := glob(root, "*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// smallDisk is a file system of so many bytes.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a full disk needs a small one: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	t.Run("before the run", func(t *testing.T) {
		t.Parallel()
		st := scene{steps: "  - {name: producer}\n"}.set(t)
		st.runner.Root = smallDisk(t, "64k")
		if err := os.WriteFile(filepath.Join(st.runner.Root, "full"), make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fill the disk: %v", err)
		}
		st.play(t)
		if !errors.Is(st.err, syscall.ENOSPC) {
			t.Errorf("Run: %v, want that the disk is full", st.err)
		}
		if left := glob(st.runner.Root, "rabbitmq/*/*"); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	t.Run("in mid-run", func(t *testing.T) {
		t.Parallel()
		st := scene{steps: "  - {name: producer}\n  - {name: consumer}\n", left: 1,
			acts: map[string][]string{"consumer": {"long 10485760", "log received order-1001", "exit 0"}}}.set(t)
		st.runner.Root = smallDisk(t, "1m")
		st.play(t)
		if !errors.Is(st.err, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(st.err), "keep the output of consumer") {
			t.Errorf("Run: %v, want that the disk is full and whose output was lost", st.err)
		}
		st.gone(t, "consumer")
	})
}
