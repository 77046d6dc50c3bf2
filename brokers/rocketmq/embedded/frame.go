package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxFrame bounds what a client may send at once, in bytes: a message's 4 MiB
// and room for the header.
const maxFrame = 8 << 20

// The bits of a frame's flag.
const (
	flagAnswer = 1
	flagOneway = 2
)

var (
	errFrame     = errors.New("the frame's lengths are wrong")
	errSerialize = errors.New("the header's serialization is not JSON")
)

// command is a frame: a request or an answer. The wire has its header as JSON.
type command struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int32             `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	Fields    map[string]string `json:"extFields,omitempty"`
	Serialize string            `json:"serializeTypeCurrentRPC,omitempty"`

	body []byte
}

// text is a field, "" if it is missing.
func (c *command) text(name string) string { return c.Fields[name] }

// number is a field as a number, 0 if it is missing or is none.
func (c *command) number(name string) int64 {
	n, _ := strconv.ParseInt(c.Fields[name], 10, 64)
	return n
}

// readFrame reads a length, the header's length, whose first byte is the
// serialization, the header and the body.
func readFrame(r io.Reader) (*command, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return nil, err
	}
	total, head := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if head>>24 != 0 {
		return nil, errSerialize
	}
	if total < 4 || total > maxFrame || head > total-4 {
		return nil, errFrame
	}
	b := make([]byte, total-4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	c := &command{body: b[head:]}
	if err := json.Unmarshal(b[:head], c); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	return c, nil
}

// appendFrame is the other direction.
func appendFrame(b []byte, c *command) ([]byte, error) {
	head, err := json.Marshal(c)
	if err != nil {
		return b, err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(4+len(head)+len(c.body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	return append(append(b, head...), c.body...), nil
}

// good is an answer of success with fields, given as name and value in turn.
func good(pairs ...any) *command {
	c := &command{Fields: map[string]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Fields[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return c
}

// goodBody is an answer of success with a JSON body.
func goodBody(v any) *command {
	b, err := json.Marshal(v)
	if err != nil {
		return bad(codeSystemError, "%v", err)
	}
	return &command{body: b}
}

// bad is a refusal.
func bad(code int, format string, args ...any) *command {
	return &command{Code: code, Remark: fmt.Sprintf(format, args...)}
}
