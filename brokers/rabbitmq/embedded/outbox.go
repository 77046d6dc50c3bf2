package embedded

import (
	"io"
	"sync"
)

// The three marks of an outbox, in octets. One message may exceed each of them.
const (
	outboxLow   = 256 << 10 // below it deliveries go on
	outboxHigh  = 1 << 20   // above it no delivery is added
	outboxLimit = 8 << 20   // above it the client's own requests have to wait
	outboxKeep  = 1 << 20   // a larger buffer is not kept for the next round
)

// outbox holds the frames that a connection still has to write. Appending
// never blocks, so the broker can do it under its lock; whoever drains it
// writes outside every lock. A client that does not read gets no deliveries
// above outboxHigh and is not read from above outboxLimit: that bounds it.
type outbox struct {
	mu        sync.Mutex
	moved     sync.Cond // octets were written, or the end has come
	buf       []byte
	spare     []byte
	inFlight  int
	writing   bool
	throttled bool // a delivery was held back; say so when there is room
	closed    bool
	err       error
	wake      chan struct{}
}

func newOutbox() *outbox {
	o := &outbox{wake: make(chan struct{}, 1)}
	o.moved.L = &o.mu
	return o
}

// add lets put append frames; after close they are thrown away.
func (o *outbox) add(put func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.err == nil {
		o.buf = put(o.buf)
	}
}

// full says that no delivery may be added now, and remembers that one was wanted.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf)+o.inFlight < outboxHigh || o.closed {
		return false
	}
	o.throttled = true
	return true
}

// signal asks the writer to drain.
func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// drain writes what is there, once or until nothing is left, unless somebody
// else is writing already. It reports whether held back deliveries can go on,
// and whether something is left.
func (o *outbox) drain(w io.Writer, once bool) (resume, more bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return false, false, o.err
	}
	o.writing = true
	for len(o.buf) > 0 && o.err == nil {
		o.writeChunk(w)
		if once {
			break
		}
	}
	o.writing = false
	resume = o.throttled && len(o.buf) < outboxLow
	if resume {
		o.throttled = false
	}
	return resume, len(o.buf) > 0, o.err
}

// writeChunk gives the lock away for the write.
func (o *outbox) writeChunk(w io.Writer) {
	chunk := o.buf
	o.buf, o.spare, o.inFlight = o.spare[:0], nil, len(chunk)
	o.mu.Unlock()
	_, err := w.Write(chunk)
	o.mu.Lock()
	o.inFlight, o.err = 0, err
	if cap(chunk) <= outboxKeep {
		o.spare = chunk[:0]
	}
	o.moved.Broadcast()
}

// room waits until the client has read enough to be served on.
func (o *outbox) room() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf)+o.inFlight > outboxLimit && !o.closed && o.err == nil {
		o.signal()
		o.moved.Wait()
	}
}

// close refuses further frames; what is there can still be drained.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.moved.Broadcast()
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}
