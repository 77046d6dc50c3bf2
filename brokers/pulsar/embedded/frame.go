package embedded

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxMessage is what the server tells its clients, in bytes.
	maxMessage = 5 << 20
	// maxFrame leaves room for a command beside the largest message.
	maxFrame = maxMessage + 64<<10
	// checksumMagic stands before a checksum of what follows it.
	checksumMagic = 0x0e01
)

// command is one frame: a command and, for SEND and MESSAGE, what follows it.
type command struct {
	kind    int
	f       fields
	payload []byte // checksum, metadata and body, as they came
}

// readCommand reads one frame:
//
//	[total size][command size][command]( [magic][checksum][metadata size][metadata][body] )
func readCommand(r io.Reader) (command, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return command{}, err
	}
	total, size := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if total < 4 || total > maxFrame || size > total-4 {
		return command{}, errWire
	}
	b := make([]byte, total-4)
	if _, err := io.ReadFull(r, b); err != nil {
		return command{}, err
	}
	base, err := decode(b[:size])
	if err != nil {
		return command{}, err
	}
	c := command{kind: int(min(base.number(1, 0), firstUnknown)), payload: b[size:]}
	c.f, err = decode(base.blob(protowire.Number(max(c.kind, 1))))
	return c, err
}

// appendCommand appends a frame.
func appendCommand(out []byte, kind int, b body, payload []byte) []byte {
	cmd := body(nil).number(1, uint64(kind)).blob(protowire.Number(kind), b)
	out = binary.BigEndian.AppendUint32(out, uint32(4+len(cmd)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(cmd)))
	return append(append(out, cmd...), payload...)
}

// metadata checks a message's checksum, if it has one, and reads its metadata.
func metadata(payload []byte) (m fields, ok bool) {
	if len(payload) >= 6 && binary.BigEndian.Uint16(payload) == checksumMagic {
		sum := binary.BigEndian.Uint32(payload[2:])
		payload = payload[6:]
		if crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)) != sum {
			return fields{}, false
		}
	}
	if len(payload) < 4 {
		return fields{}, false
	}
	size := binary.BigEndian.Uint32(payload)
	if uint64(size) > uint64(len(payload)-4) {
		return fields{}, false
	}
	m, err := decode(payload[4 : 4+size])
	return m, err == nil
}
