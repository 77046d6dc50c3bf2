package pulsar

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"mqlab/brokers"
)

const (
	// greetTimeout bounds the handshake where the caller's context does not.
	greetTimeout = 10 * time.Second
	// maxGreeting bounds the answer to it, in bytes.
	maxGreeting = 64 << 10
)

// The numbers of PulsarApi.proto that a handshake needs: a command's type is
// also the number of the field that holds it.
const (
	connectCommand, connectedCommand, errorCommand = 2, 3, 14

	protocolVersion = 20
)

// greet opens a connection, says who we are, reads the broker's answer and
// hangs up. The client library answers a refusal with "connection error" and
// waits for a silent broker as long as it likes; this way the broker's own
// words and the caller's patience count.
func greet(ctx context.Context, s site) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.host)
	if err != nil {
		return lost(ctx, err)
	}
	defer conn.Close()                                      //nolint:errcheck // it was of use only until here
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // cutting it ends the handshake
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return lost(ctx, err)
	}
	if _, err := conn.Write(greeting(s.token)); err != nil {
		return lost(ctx, err)
	}
	kind, body, err := readCommand(conn)
	if err != nil {
		return lost(ctx, err)
	}
	switch kind {
	case connectedCommand:
		return nil
	case errorCommand:
		return fmt.Errorf("%w: %s", brokers.ErrRefused, textField(body, 3))
	}
	return fmt.Errorf("%w: the broker answered the handshake with command %d", brokers.ErrRefused, kind)
}

// lost is a broken connection, or the end of the context that broke it.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
}

// greeting is the frame of CommandConnect.
func greeting(token string) []byte {
	c := appendText(nil, 1, "mqlab")
	if token != "" {
		c = appendText(c, 3, token)
	}
	c = protowire.AppendVarint(protowire.AppendTag(c, 4, protowire.VarintType), protocolVersion)
	if token != "" {
		c = appendText(c, 5, "token")
	}
	cmd := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), connectCommand)
	cmd = appendText(cmd, connectCommand, string(c))
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(cmd)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(cmd)))
	return append(frame, cmd...)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// readCommand reads a frame without a payload.
func readCommand(r io.Reader) (kind uint64, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[4:])
	if size > maxGreeting {
		return 0, nil, errors.New("this is not a Pulsar broker")
	}
	cmd := make([]byte, size)
	if _, err := io.ReadFull(r, cmd); err != nil {
		return 0, nil, err
	}
	for rest := cmd; len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return 0, nil, errors.New("this is not a Pulsar broker")
		}
		rest = rest[n:]
		if num == 1 && typ == protowire.VarintType {
			kind, _ = protowire.ConsumeVarint(rest)
		}
		n = protowire.ConsumeFieldValue(num, typ, rest)
		if n < 0 {
			return 0, nil, errors.New("this is not a Pulsar broker")
		}
		rest = rest[n:]
	}
	return kind, []byte(textField(cmd, protowire.Number(kind))), nil
}

// textField is the value of a field of bytes; empty if there is none.
func textField(b []byte, field protowire.Number) (text string) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return text
		}
		b = b[n:]
		if num == field && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			text = string(v)
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return text
		}
		b = b[n:]
	}
	return text
}
