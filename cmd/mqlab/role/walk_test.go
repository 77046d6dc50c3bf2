package role

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mqlab/gate"
	"mqlab/labs"
)

const asyncPool = "async-pool"

// stageOf is a stage for a design, with what setup seeds for it.
func stageOf(t *testing.T, design string) *stage {
	t.Helper()
	st := newStage(t, scenario("design: "+design))
	if code := st.run("setup"); code != 0 {
		t.Fatalf("setup ended with %d:\n%s", code, st.errs)
	}
	st.arrivals()
	st.out.b.Reset()
	return st
}

// worker reports whether a checkpoint of async-pool is reached in its pool.
func worker(cp gate.Checkpoint) bool {
	return cp == gate.AfterClaim || cp == gate.BeforeCommit || cp == gate.AfterCommit
}

// split cuts what was reached into a first and a second delivery. The pool of
// async-pool is free to interleave with its loop, so the two are cut apart, and
// what the pool does belongs to the first delivery.
func split(design string, all []gate.Checkpoint) (first, again []gate.Checkpoint) {
	var loop, pool []gate.Checkpoint
	for _, cp := range all {
		if design == asyncPool && worker(cp) {
			pool = append(pool, cp)
		} else {
			loop = append(loop, cp)
		}
	}
	n := len(loop)
	if i := slices.Index(loop[min(1, n):], gate.AfterDelivery); i >= 0 {
		n = i + 1
	}
	return append(loop[:n:n], pool...), loop[n:]
}

// Every design reaches exactly the checkpoints of the table, in its order: for
// a delivery whose work was never done, and for a second one of the same
// message.
func TestDesignsPassTheirCheckpoints(t *testing.T) {
	for name, d := range labs.Designs() {
		t.Run(name, func(t *testing.T) {
			st := stageOf(t, name)
			st.deliver("order-1001", "again order-1001")
			if code := st.run("consumer"); code != 0 {
				t.Fatalf("the consumer ended with %d:\n%s", code, st.errs)
			}
			first, again := split(name, st.arrivals())
			want, _ := split(name, d.First)
			if !slices.Equal(first, want) {
				t.Errorf("a first delivery passes %v, the table says %v", first, want)
			}
			if !slices.Equal(again, d.Again) {
				t.Errorf("a second delivery passes %v, the table says %v", again, d.Again)
			}
			rows, _ := st.left()
			if doubled := name == "no-dedupe"; paidRows(rows) != map[bool]int{false: 1, true: 2}[doubled] {
				t.Errorf("two deliveries of one message left %v", rows)
			}
		})
	}
}

// busy reports whether somebody is inside a transaction of the store.
func busy(ctx context.Context, path string) (bool, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		return false, tx.Rollback()
	}
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		return true, nil
	}
	return false, err
}

// The checkpoints of InTx, and no others, stand inside the transaction: while a
// role waits there, nobody else can write.
func TestCheckpointsInsideTheTransaction(t *testing.T) {
	for name, d := range labs.Designs() {
		t.Run(name, func(t *testing.T) {
			st := stageOf(t, name)
			path := filepath.Join(st.opts.Store, labs.DefaultStore+".db")
			seen := map[gate.Checkpoint]bool{}
			var mu sync.Mutex
			st.decide = func(a gate.Arrival) gate.Decision {
				b, err := busy(t.Context(), path)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[a.Checkpoint] = b
				return gate.Pass
			}
			st.deliver("order-1001")
			if code := st.run("consumer"); code != 0 {
				t.Fatalf("the consumer ended with %d:\n%s", code, st.errs)
			}
			for cp, inside := range seen {
				if name == asyncPool && !worker(cp) {
					continue // whatever its worker does at that time
				}
				if inside != slices.Contains(d.InTx, cp) {
					t.Errorf("%s: inside a transaction %v, the table says %v", cp, inside, !inside)
				}
			}
		})
	}
}

// A failure inside the transaction leaves nothing of it.
func TestFailureInsideTheTransaction(t *testing.T) {
	for name, d := range labs.Designs() {
		for _, cp := range d.InTx {
			t.Run(name+"/"+string(cp), func(t *testing.T) {
				st := stageOf(t, name)
				st.decide = func(a gate.Arrival) gate.Decision {
					if a.Checkpoint == cp {
						return gate.Fail
					}
					return gate.Pass
				}
				// The loop ends before the message comes a second time.
				st.opts.Received = 1
				st.deliver("order-1001")
				code := st.run("consumer")
				if want := map[bool]int{false: ExitDone, true: ExitFailed}[name == asyncPool]; code != want {
					t.Errorf("the consumer ended with %d, want %d:\n%s", code, want, st.errs)
				}
				rows, markers := st.left()
				// split-transaction has committed its marker before: that is its flaw.
				kept := map[bool]int{false: 0, true: 1}[name == "split-transaction"]
				if paidRows(rows) != 0 || len(markers) != kept {
					t.Errorf("left are the rows %v and the markers %v", rows, markers)
				}
				ackedBefore := name == "ack-first" || name == asyncPool
				asked := st.broker.asked()
				if nacked := slices.Contains(asked, "nack order-1001 requeue=true"); nacked == ackedBefore {
					t.Errorf("asked the broker %q", asked)
				}
				if acked := slices.Contains(asked, "ack order-1001"); acked != ackedBefore {
					t.Errorf("asked the broker %q", asked)
				}
			})
		}
	}
}
