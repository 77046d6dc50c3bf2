package embedded

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sendMessage stores one message.
func (b *broker) sendMessage(c *conn, q *command) *command {
	m := b.incoming(c, q)
	m.body, m.properties = q.body, parseProperties(q.text("properties"))
	return b.accept(q, m)
}

// shortNames are the fields of SEND_MESSAGE_V2, whose names have one letter.
func shortNames() map[string]string {
	return map[string]string{"a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
		"f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes", "k": "unitMode",
		"l": "maxReconsumeTimes", "m": "batch", "n": "bname"}
}

// long is a request with the long names.
func long(q *command) *command {
	out := *q
	out.Fields = map[string]string{}
	names := shortNames()
	for name, value := range q.Fields {
		if l, ok := names[name]; ok {
			name = l
		}
		out.Fields[name] = value
	}
	return &out
}

func (b *broker) sendMessageV2(c *conn, q *command) *command {
	q = long(q)
	if q.text("batch") == "true" {
		return b.sendBatch(c, q)
	}
	return b.sendMessage(c, q)
}

// sendBatch stores several messages for one queue; the answer has the offset of
// the first one.
func (b *broker) sendBatch(c *conn, q *command) *command {
	q = long(q)
	batch, err := parseBatch(q.body)
	if err != nil {
		return bad(codeIllegalMessage, "the message is illegal, %v", err)
	}
	var messages []*message
	for _, part := range batch {
		m := b.incoming(c, q)
		m.body, m.properties, m.flag = part.body, part.properties, part.flag
		messages = append(messages, m)
	}
	return b.accept(q, messages...)
}

// incoming is a message with what the request's header says of it.
func (b *broker) incoming(c *conn, q *command) *message {
	from, _ := c.nc.RemoteAddr().(*net.TCPAddr)
	if from == nil {
		from = b.addr
	}
	return &message{topic: q.text("topic"), queue: max(0, q.number("queueId")), flag: int32(q.number("flag")), sys: int32(q.number("sysFlag")),
		born: q.number("bornTimestamp"), reconsumed: int32(q.number("reconsumeTimes")), bornHost: from}
}

// accept checks messages for one queue and stores them.
func (b *broker) accept(q *command, messages ...*message) *command {
	name := q.text("topic")
	t := b.topics[name]
	switch {
	case name == scheduleTopic:
		return bad(codeNoPermission, "Sending message to topic[%s] is forbidden.", name)
	case t == nil:
		return bad(codeTopicMissing, "topic[%s] not exist, apply first please!", name)
	case t.perm&permWrite == 0:
		return bad(codeNoPermission, "the broker[%v] sending message is forbidden", b.addr)
	case q.number("queueId") >= int64(t.write):
		return bad(codeBadParameter, "request queueId[%d] is illegal, topic:[%s] topicConfig.writeQueueNums:[%d]", q.number("queueId"), name, t.write)
	}
	for _, m := range messages {
		if refusal := illegal(m); refusal != nil {
			return refusal
		}
	}
	var ids []string
	for _, m := range messages {
		b.put(m)
		ids = append(ids, b.messageID(m))
	}
	a := good("msgId", strings.Join(ids, ","), "queueId", q.number("queueId"), "queueOffset", 0, "MSG_REGION", "DefaultRegion", "TRACE_ON", "true")
	if len(messages) > 0 && messages[0].topic == name {
		a.Fields["queueOffset"] = strconv.FormatInt(messages[0].offset, 10)
	}
	if len(messages) == 1 {
		a.Fields["transactionId"] = messages[0].properties.get(propUnique)
	}
	return a
}

// illegal refuses what the real broker refuses, and what only it can do.
func illegal(m *message) *command {
	switch {
	case len(m.body) == 0:
		return bad(codeSystemError, "java.lang.NullPointerException: the message has no body")
	case len(m.body) > maxBody || len(m.properties.encode()) > maxProperties:
		return bad(codeIllegalMessage, "the message is illegal, maybe msg body or properties length not matched. msg body length limit %dB, msg properties length limit 32KB.", maxBody)
	case m.properties.get(propHalf) == "true":
		return bad(codeNoPermission, "the broker sending transaction message is forbidden")
	}
	for _, name := range []string{"TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"} {
		if m.properties.get(name) != "" {
			return bad(codeIllegalMessage, "the message is illegal, timer messages are not supported")
		}
	}
	return nil
}

// messageID is the broker's own id of a message: its address and the message's
// place.
func (b *broker) messageID(m *message) string {
	return strings.ToUpper(hex.EncodeToString(binary.BigEndian.AppendUint64(appendHost(nil, b.addr), uint64(m.place))))
}

// put stores a message, in the schedule topic when it has a delay level.
func (b *broker) put(m *message) {
	level, _ := strconv.Atoi(m.properties.get(propDelay))
	if level <= 0 || strings.HasPrefix(m.topic, deadPrefix) {
		b.store(m)
		return
	}
	level = min(level, len(delays()))
	m.properties = m.properties.with(propRealTopic, m.topic).with(propRealQueue, strconv.FormatInt(m.queue, 10))
	m.topic, m.queue = scheduleTopic, int64(level-1)
	b.store(m)
	m.due = m.stored.Add(delays()[level-1])
	at, _ := slices.BinarySearchFunc(b.delayed, m, func(x, m *message) int {
		if x.due.After(m.due) {
			return 1
		}
		return -1 // equal ones stay in their order
	})
	b.delayed = slices.Insert(b.delayed, at, m)
	b.changed()
}

// passOn moves a delayed message to where it was meant for, if that is still
// there. The schedule topic keeps its copy.
func (b *broker) passOn(m *message) {
	out := *m
	out.topic = m.properties.get(propRealTopic)
	out.queue, _ = strconv.ParseInt(m.properties.get(propRealQueue), 10, 64)
	out.properties = m.properties.without(propDelay)
	out.due = time.Time{}
	if t := b.topics[out.topic]; t != nil && out.queue < int64(len(t.queues)) {
		b.store(&out)
	}
}

var errBatch = errors.New("the batch's lengths are wrong")

// parseBatch reads what a client packs into one body: for each message the
// length, magic code, checksum, flag, body and properties.
func parseBatch(b []byte) ([]*message, error) {
	be := binary.BigEndian
	var out []*message
	for len(b) > 0 {
		if len(b) < 20 {
			return nil, errBatch
		}
		total, flag, n := be.Uint32(b), be.Uint32(b[12:]), be.Uint32(b[16:])
		if uint64(total) > uint64(len(b)) || uint64(n)+22 > uint64(total) {
			return nil, errBatch
		}
		props := b[20+n : total]
		if int(be.Uint16(props)) != len(props)-2 {
			return nil, errBatch
		}
		out = append(out, &message{flag: int32(flag), body: b[20 : 20+n], properties: parseProperties(string(props[2:]))})
		b = b[total:]
	}
	if len(out) == 0 {
		return nil, errBatch
	}
	return out, nil
}
