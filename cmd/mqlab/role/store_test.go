package role

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mqlab/cmd/mqlab/role/designs"
	"mqlab/labs"
)

func openStore(t testing.TB, path string) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), path, "lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // most tests close it themselves
	return s
}

func order(id string) labs.Order {
	return labs.Order{ID: id, CustomerID: "customer-42", Currency: "CNY", Cents: 19900}
}

func TestStoreClaim(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	claim := func(key string) error { return s.InTx(ctx, func(tx designs.Tx) error { return tx.Claim(ctx, key) }) }
	if err := claim("a"); err != nil {
		t.Fatal(err)
	}
	if err := claim("a"); !errors.Is(err, designs.ErrDuplicate) {
		t.Errorf("a second claim: %v, want ErrDuplicate", err)
	}
	if err := claim("b"); err != nil {
		t.Errorf("a claim after a refused one: %v", err)
	}
	for key, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got, err := s.Claimed(ctx, key); err != nil || got != want {
			t.Errorf("Claimed(%s) = %v, %v; want %v", key, got, err, want)
		}
	}
}

// Nothing but the design prevents a second business row.
func TestStoreRows(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	for _, id := range []string{"m1", "m1", "m2"} {
		if err := s.InTx(ctx, func(tx designs.Tx) error { return tx.Insert(ctx, order("o1"), id) }); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.Rows(ctx)
	if err != nil || len(rows) != 3 || rows[0] != (Row{order("o1"), "m1", paid}) {
		t.Errorf("rows %v, %v", rows, err)
	}
}

func TestStorePay(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	for range 2 { // once, however often
		if err := s.Seed(ctx, order("o1")); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int64{1, 0} {
		var got int64
		err := s.InTx(ctx, func(tx designs.Tx) (err error) { got, err = tx.Pay(ctx, order("o1"), fmt.Sprint("m", i)); return err })
		if err != nil || got != want {
			t.Errorf("payment %d changed %d rows, %v; want %d", i+1, got, err, want)
		}
	}
	if rows, err := s.Rows(ctx); err != nil || len(rows) != 1 || rows[0].MessageID != "m0" || rows[0].Status != paid {
		t.Errorf("rows %v, %v", rows, err)
	}
}

func TestStoreRollsBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	no := errors.New("no")
	err := s.InTx(ctx, func(tx designs.Tx) error {
		return errors.Join(tx.Claim(ctx, "k"), tx.Insert(ctx, order("o"), "k"), no)
	})
	if !errors.Is(err, no) {
		t.Errorf("InTx: %v, want the function's own error", err)
	}
	empty(t, s)
}

func empty(t *testing.T, s *Store) {
	t.Helper()
	rows, err := s.Rows(t.Context())
	markers, err2 := s.Markers(t.Context())
	if err := errors.Join(err, err2); err != nil || len(rows)+len(markers) != 0 {
		t.Errorf("left are the rows %v and the markers %v, %v", rows, markers, err)
	}
}

// A process that dies inside the transaction leaves nothing, and no lock.
func TestStoreAfterADeathInside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	out, err := command(t, partDier, path).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != ExitHalt {
		t.Fatalf("the process ended with %v, want %d:\n%s", err, ExitHalt, out)
	}
	s := openStore(t, path)
	empty(t, s)
	if err := s.InTx(t.Context(), func(tx designs.Tx) error { return tx.Claim(t.Context(), "k") }); err != nil {
		t.Errorf("a claim after it: %v", err)
	}
}

// Processes that open a new store and claim one key at the same time: one wins,
// the others see a duplicate, and none an error.
func TestStoreRace(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		path := filepath.Join(t.TempDir(), "s.db")
		var cs []*exec.Cmd
		var outs []*bytes.Buffer
		for range 4 {
			c, b := command(t, partClaimer, path), &bytes.Buffer{}
			c.Stdout, c.Stderr = b, b
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			cs, outs = append(cs, c), append(outs, b)
		}
		codes := map[int]int{}
		for i, c := range cs {
			c.Wait() //nolint:errcheck // the code is what counts
			codes[c.ProcessState.ExitCode()]++
			if outs[i].Len() > 0 {
				t.Errorf("round %d: %s", round, outs[i])
			}
		}
		if codes[0] != 1 || codes[10] != 3 {
			t.Errorf("round %d: ends %v, want one 0 and three 10", round, codes)
		}
	}
}

func TestStorePath(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "with space", "100%", "%41", "a?b", "a#b", "a&b=c", "ü", "it's", `quo"te`, "a+b", "?_pragma=x", "back\\slash", "semi;colon"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name+".db")
			s := openStore(t, path)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the store is not where it was wanted: %v", err)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 1 {
				t.Errorf("the folder holds %v, %v; want the one file", files, err)
			}
		})
	}
}

func TestStorePathThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "s.db")
	if _, err := OpenStore(t.Context(), path, "lab"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("OpenStore: %v, want an error that names %s", err, path)
	}
}

// A commit is durable before the ack that follows it: WAL with
// synchronous=FULL, on every connection.
func TestStorePragmas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	s := openStore(t, path)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": fmt.Sprint(busyTimeout)} {
		var got string
		if err := s.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", pragma, got, err, want)
		}
	}
	// After a checkpoint the file alone is the evidence.
	if err := s.InTx(t.Context(), func(tx designs.Tx) error { return tx.Claim(t.Context(), "k") }); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(alone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+alone)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM processed_messages").Scan(&n); err != nil || n != 1 {
		t.Errorf("the file alone holds %d markers, %v; want 1", n, err)
	}
}

// BenchmarkClaimAndRow is what the reference design pays per message: marker
// and business row in one durable transaction.
func BenchmarkClaimAndRow(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "s.db"))
	ctx := b.Context()
	n := 0
	for b.Loop() {
		n++
		key := fmt.Sprint(n)
		err := s.InTx(ctx, func(tx designs.Tx) error {
			if err := tx.Claim(ctx, key); err != nil {
				return err
			}
			return tx.Insert(ctx, order(key), key)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
