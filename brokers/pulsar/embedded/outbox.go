package embedded

import (
	"io"
	"sync"
)

// outboxLimit is how much a client may leave unread before its own commands
// have to wait, in bytes. What is pushed to it is bounded by its permits.
const outboxLimit = 8 << 20

// outbox holds the frames that a connection still has to write. Adding never
// blocks, so that the broker can do it under its lock.
type outbox struct {
	mu     sync.Mutex
	moved  sync.Cond
	buf    []byte
	busy   int // bytes that are being written
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.moved.L = &o.mu
	return o
}

// add appends a frame; after close it is thrown away.
func (o *outbox) add(kind int, b body, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.buf = appendCommand(o.buf, kind, b, payload)
		o.moved.Broadcast()
	}
}

// room waits until the client has read enough to be served on.
func (o *outbox) room() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf)+o.busy > outboxLimit && !o.closed {
		o.moved.Wait()
	}
}

// drain writes until close was called and nothing is left, or until an error.
func (o *outbox) drain(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.buf) == 0 && !o.closed {
			o.moved.Wait()
		}
		if len(o.buf) == 0 {
			return
		}
		chunk := o.buf
		o.buf, o.busy = nil, len(chunk)
		o.mu.Unlock()
		_, err := w.Write(chunk)
		o.mu.Lock()
		o.busy = 0
		o.moved.Broadcast()
		if err != nil {
			o.closed, o.buf = true, nil
			return
		}
	}
}

// close refuses further frames; what is there is still written.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.moved.Broadcast()
}
