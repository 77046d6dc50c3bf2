package embedded

import (
	"cmp"
	"strconv"
)

// firstRetry is the delay level of a message that is given back for the first
// time by a client that names none.
const firstRetry = 3

// sendBack copies a message to the group's retry topic, to come again later, or
// to its dead-letter topic.
func (b *broker) sendBack(_ *conn, q *command) *command {
	m := b.log[q.number("offset")]
	if m == nil {
		return bad(codeSystemError, "look message by offset failed, %d", q.number("offset"))
	}
	name := q.text("group")
	g := b.groups[name]
	if g == nil {
		return bad(codeGroupMissing, "subscription group not exist, %s", name)
	}
	retries := int64(g.retries)
	if _, ok := q.Fields["maxReconsumeTimes"]; ok {
		retries = q.number("maxReconsumeTimes")
	}
	back := *m
	back.queue, back.reconsumed, back.sys = 0, m.reconsumed+1, m.sys
	back.properties = m.properties.without(propRealTopic).without(propRealQueue)
	if back.properties.get(propRetryTopic) == "" {
		back.properties = back.properties.with(propRetryTopic, m.topic)
	}
	back.properties = back.properties.with(propOriginID, cmp.Or(m.properties.get(propOriginID), b.messageID(m)))
	level := q.number("delayLevel")
	if level < 0 || int64(m.reconsumed) >= retries {
		back.topic = deadPrefix + name
		back.properties = back.properties.without(propDelay)
	} else {
		back.topic = retryPrefix + name
		if level == 0 {
			level = firstRetry + int64(m.reconsumed)
		}
		back.properties = back.properties.with(propDelay, strconv.FormatInt(level, 10))
	}
	if b.topics[back.topic] == nil {
		b.topics[back.topic] = newTopic(1, readWrite)
	}
	b.put(&back)
	return good()
}
