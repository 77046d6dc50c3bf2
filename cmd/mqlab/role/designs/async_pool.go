package designs

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// poolSize is the number of workers; one would hide that their order is free.
const poolSize = 2

// AsyncPool hands the delivery over to a pool and acknowledges at once. What is
// still in the pool when the process dies is lost: the broker has no copy any
// more.
type AsyncPool struct {
	work sync.WaitGroup
	room chan struct{}

	mu   sync.Mutex
	errs []error
}

// NewAsyncPool begins with an empty pool.
func NewAsyncPool() *AsyncPool { return &AsyncPool{room: make(chan struct{}, poolSize)} }

// Handle hands over, then acknowledges; the worker claims and writes in one
// transaction.
func (p *AsyncPool) Handle(ctx context.Context, w *Work) error {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("hand over: %w", ctx.Err())
	}
	p.work.Go(func() {
		defer func() { <-p.room }()
		if err := w.claimAndInsert(ctx); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
	})
	return w.Ack(ctx)
}

// Drain waits for the workers and reports what failed in them.
func (p *AsyncPool) Drain(context.Context) error {
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.errs...)
	p.errs = nil
	return err
}
