package embedded

import (
	"bufio"
	"encoding/binary"
	"io"
)

const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xCE

	frameOverhead = 8         // octets of a frame without its payload
	frameMinSize  = 4096      // the limit until the two sides have agreed on another
	frameMaxSize  = 128 << 10 // what is offered, as RabbitMQ does
)

// frame is one frame; its payload is valid until the next one is read.
type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

// frameReader hands out frames from its buffer without copying.
type frameReader struct {
	r    *bufio.Reader
	max  int // negotiated frame size, overhead included
	held int // octets of the last frame, still in the buffer
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, frameMaxSize+2*frameOverhead), max: frameMinSize}
}

// next reads a frame. An *amqpError means that the stream cannot be followed any more.
func (fr *frameReader) next() (frame, error) {
	_, _ = fr.r.Discard(fr.held) // it is in the buffer, so it can be discarded
	fr.held = 0
	head, err := fr.r.Peek(7)
	if err != nil {
		return frame{}, err
	}
	f := frame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:])}
	size := binary.BigEndian.Uint32(head[3:])
	if int64(size) > int64(fr.max) { // eight octets too many are tolerated, as on RabbitMQ
		return f, fr.desync("type %d, all octets = <<>>: {frame_too_large,%d,%d}", f.kind, size, fr.max-frameOverhead)
	}
	n := int(size)
	all, err := fr.r.Peek(7 + n + 1)
	if err != nil {
		return f, err
	}
	if all[7+n] != frameEnd {
		return f, fr.desync("type %d: {invalid_frame_end_marker,%d}", f.kind, all[7+n])
	}
	f.payload = all[7 : 7+n]
	fr.held = 7 + n + 1
	return f, nil
}

func (fr *frameReader) desync(format string, args ...any) error {
	e := failure(codeFrameError, format, args...)
	e.desync = true
	return e
}

// appendFrameHead begins a frame of which the payload's size is known.
func appendFrameHead(b []byte, kind byte, channel uint16, size int) []byte {
	b = binary.BigEndian.AppendUint16(append(b, kind), channel)
	return binary.BigEndian.AppendUint32(b, uint32(size))
}

// appendMethod adds a method frame; args appends its arguments and may be nil.
func appendMethod(b []byte, channel uint16, m method, args func([]byte) []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, frameMethod), channel)
	b, at := openLength(b)
	b = binary.BigEndian.AppendUint32(b, uint32(m))
	if args != nil {
		b = args(b)
	}
	return append(closeLength(b, at), frameEnd)
}

// appendContent adds the header frame and the body frames of a message.
func appendContent(b []byte, channel uint16, props, body []byte, frameMax int) []byte {
	b = appendFrameHead(b, frameHeader, channel, 12+len(props))
	b = append(b, 0, classBasic, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	b = append(append(b, props...), frameEnd)
	for len(body) > 0 {
		n := min(len(body), frameMax-frameOverhead)
		b = appendFrameHead(b, frameBody, channel, n)
		b = append(append(b, body[:n]...), frameEnd)
		body = body[n:]
	}
	return b
}

func appendHeartbeat(b []byte) []byte {
	return append(appendFrameHead(b, frameHeartbeat, 0, 0), frameEnd)
}
