package labs

import "sync"

// maxEvents bounds what may wait in the queue; a role that writes faster than
// this for seconds is made to wait.
const maxEvents = 1 << 16

// events is the queue between the goroutines that see something happen and the
// loop that decides. It takes an event at once: while the loop waits for the
// broker's answer, a process that ends must not seem to keep its output open.
type events struct {
	ready chan struct{} // holds a token while the queue is not empty

	mu   sync.Mutex
	room *sync.Cond
	list []func()
	over bool
}

func newEvents() *events {
	e := &events{ready: make(chan struct{}, 1)}
	e.room = sync.NewCond(&e.mu)
	return e
}

// post hands something to the loop from another goroutine.
func (e *events) post(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.list) >= maxEvents && !e.over {
		e.room.Wait()
	}
	if e.over {
		return
	}
	e.list = append(e.list, f)
	e.wake()
}

// next takes the oldest event; it is called when ready was.
func (e *events) next() func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.list[0]
	e.list = e.list[1:]
	if len(e.list) > 0 {
		e.wake()
	}
	e.room.Signal()
	return f
}

func (e *events) wake() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// end throws away what nobody listens to any more.
func (e *events) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over, e.list = true, nil
	e.room.Broadcast()
}
