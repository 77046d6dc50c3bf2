package embedded

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"time"
)

const (
	// scheduleTopic holds what is passed on later, a queue for each delay level.
	scheduleTopic = "SCHEDULE_TOPIC_XXXX"
	retryPrefix   = "%RETRY%"
	deadPrefix    = "%DLQ%"

	permRead  = 4
	permWrite = 2
	readWrite = permRead | permWrite

	maxBody       = 4 << 20 // bytes, the real broker's default
	maxProperties = 1<<15 - 1
)

// delays are the levels' times, the real broker's default.
func delays() []time.Duration {
	const m, h = time.Minute, time.Hour
	return []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h}
}

// topic is a topic with its queues.
type topic struct {
	read, write int // how many queues may be read and written
	perm        int
	queues      [][]*message
}

func newTopic(queues, perm int) *topic {
	return &topic{read: queues, write: queues, perm: perm, queues: make([][]*message, queues)}
}

// queue is what lies in one queue, nothing if there is no such queue.
func (t *topic) queue(n int64) []*message {
	if t == nil || n < 0 || n >= int64(len(t.queues)) {
		return nil
	}
	return t.queues[n]
}

// message is one place in the commit log. It is never changed; what is passed on
// or sent back is a new one.
type message struct {
	topic      string
	queue      int64
	flag       int32
	sys        int32
	born       int64 // milliseconds of the Unix time, as the client says
	bornHost   *net.TCPAddr
	stored     time.Time
	reconsumed int32
	properties properties
	body       []byte

	offset int64 // in its queue
	place  int64 // in the commit log
	due    time.Time
}

const magic = 0xDAA320A7

// appendTo encodes a message as a pull's answer has it.
func (m *message) appendTo(b []byte, storeHost *net.TCPAddr) []byte {
	be := binary.BigEndian
	start := len(b)
	props := m.properties.encode()
	b = be.AppendUint32(b, 0) // the whole length, see below
	b = be.AppendUint32(b, magic)
	b = be.AppendUint32(b, crc32.ChecksumIEEE(m.body))
	b = be.AppendUint32(b, uint32(m.queue))
	b = be.AppendUint32(b, uint32(m.flag))
	b = be.AppendUint64(b, uint64(m.offset))
	b = be.AppendUint64(b, uint64(m.place))
	b = be.AppendUint32(b, uint32(m.sys))
	b = be.AppendUint64(b, uint64(m.born))
	b = appendHost(b, m.bornHost)
	b = be.AppendUint64(b, uint64(m.stored.UnixMilli()))
	b = appendHost(b, storeHost)
	b = be.AppendUint32(b, uint32(m.reconsumed))
	b = be.AppendUint64(b, 0) // no transaction
	b = be.AppendUint32(b, uint32(len(m.body)))
	b = append(b, m.body...)
	b = append(b, byte(len(m.topic)))
	b = append(b, m.topic...)
	b = be.AppendUint16(b, uint16(len(props)))
	b = append(b, props...)
	be.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// appendHost writes an IPv4 address and a port; the flags would have to say that
// it is IPv6, so ::1 is written as what it stands for.
func appendHost(b []byte, a *net.TCPAddr) []byte {
	ip := a.IP.To4()
	if ip == nil {
		ip = net.IPv4(127, 0, 0, 1).To4()
	}
	return binary.BigEndian.AppendUint32(append(b, ip...), uint32(a.Port))
}

// store puts a message at the end of its queue and hands it to who waits there.
// The topic is there and has the queue.
func (b *broker) store(m *message) {
	t := b.topics[m.topic]
	m.offset, m.place, m.stored = int64(len(t.queues[m.queue])), b.logEnd, time.Now()
	b.logEnd += int64(len(m.body) + 256) // places only have to grow
	t.queues[m.queue] = append(t.queues[m.queue], m)
	b.log[m.place] = m
	b.arrived(m)
}

// forget deletes a topic and its messages.
func (b *broker) forget(name string) {
	t := b.topics[name]
	if t == nil {
		return
	}
	for _, q := range t.queues {
		for _, m := range q {
			delete(b.log, m.place)
		}
	}
	delete(b.topics, name)
	for _, g := range b.groups {
		delete(g.offsets, name)
	}
}
