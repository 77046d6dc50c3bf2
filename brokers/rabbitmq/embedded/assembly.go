package embedded

// What an assembly expects next.
const (
	wantMethod = iota
	wantHeader
	wantBody
)

// assembly puts a published message together from its frames.
type assembly struct {
	wants     int
	exchange  string
	key       string
	mandatory bool
	immediate bool
	size      uint64
	props     properties
	body      []byte
}

// begin takes basic.publish.
func (a *assembly) begin(d *decoder) error {
	d.uint16()
	exchange, key, bits := d.shortBytes(), d.shortBytes(), d.bits()
	if err := d.finish(); err != nil {
		return err
	}
	if string(exchange) != a.exchange { // mostly the same as before: no allocation
		a.exchange = string(exchange)
	}
	if string(key) != a.key {
		a.key = string(key)
	}
	a.mandatory, a.immediate = bits.has(0), bits.has(1)
	a.wants, a.body = wantHeader, nil
	return nil
}

// add takes a frame that is no method and reports whether the message is complete.
func (a *assembly) add(f frame) (complete bool, err error) {
	switch {
	case a.wants == wantMethod:
		return false, failure(codeUnexpectedFrame, "expected method frame, got non method frame instead")
	case a.wants == wantHeader && f.kind == frameHeader:
		return a.header(f.payload)
	case a.wants == wantHeader:
		return false, failure(codeUnexpectedFrame, "expected content header for class %d, got non content header frame instead", classBasic)
	case f.kind == frameBody:
		return a.content(f.payload)
	default:
		return false, failure(codeUnexpectedFrame, "expected content body, got non content body frame instead")
	}
}

func (a *assembly) header(payload []byte) (complete bool, err error) {
	d := &decoder{b: payload}
	class, weight, size := d.uint16(), d.uint16(), d.uint64()
	if d.err != nil || weight != 0 {
		return false, failure(codeFrameError, "malformed content header")
	}
	if class != classBasic {
		return false, failure(codeUnexpectedFrame, "expected content header for class %d, got one for class %d instead", classBasic, class)
	}
	if size > maxBody {
		return false, preconditionFailed("message size %d is larger than configured max size %d", size, maxBody)
	}
	if a.props, err = parseProperties(d.b); err != nil {
		return false, failure(codeSyntaxError, "malformed content header: %v", err)
	}
	a.size = size
	a.wants = wantBody
	if size == 0 {
		a.wants = wantMethod
	}
	return size == 0, nil
}

// content allocates what has arrived, or is about to for sure, never what the
// header merely announced.
func (a *assembly) content(part []byte) (complete bool, err error) {
	if uint64(len(a.body)+len(part)) > a.size {
		return false, failure(codeFrameError, "content body is larger than the %d octets announced", a.size)
	}
	if a.body == nil {
		a.body = make([]byte, 0, min(a.size, uint64(len(part))*4))
	}
	a.body = append(a.body, part...)
	if uint64(len(a.body)) < a.size {
		return false, nil
	}
	a.wants = wantMethod
	return true, nil
}
