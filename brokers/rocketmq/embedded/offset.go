package embedded

import "sort"

// queryOffset is a group's offset. One that was never committed is 0, since no
// message ever leaves its queue, unless the client wants to know.
func (b *broker) queryOffset(_ *conn, q *command) *command {
	if g := b.groups[q.text("consumerGroup")]; g != nil {
		if n, ok := g.offsets[q.text("topic")][q.number("queueId")]; ok && n >= 0 {
			return good("offset", n)
		}
	}
	if q.text("setZeroIfNotFound") == "false" {
		return bad(codeQueryNotFound, "Not found, do not set to zero, maybe this group boot first")
	}
	return good("offset", 0)
}

// updateOffset commits, forwards or backwards.
func (b *broker) updateOffset(_ *conn, q *command) *command {
	name, topic := q.text("consumerGroup"), q.text("topic")
	g, t := b.groups[name], b.topics[topic]
	switch {
	case g == nil:
		return bad(codeGroupMissing, "Group %s not exist!", name)
	case t == nil:
		return bad(codeTopicMissing, "Topic %s not exist!", topic)
	}
	g.commit(topic, q.number("queueId"), q.number("commitOffset"))
	return good()
}

// maxOffset is where the next message will lie; a missing queue has 0.
func (b *broker) maxOffset(_ *conn, q *command) *command {
	return good("offset", len(b.topics[q.text("topic")].queue(q.number("queueId"))))
}

func (b *broker) minOffset(*conn, *command) *command { return good("offset", 0) }

// searchOffset is the first message that was stored at a time or later.
func (b *broker) searchOffset(_ *conn, q *command) *command {
	messages := b.topics[q.text("topic")].queue(q.number("queueId"))
	since := q.number("timestamp")
	return good("offset", sort.Search(len(messages), func(i int) bool { return messages[i].stored.UnixMilli() >= since }))
}

// earliestTime is when the first message was stored, -1 for none.
func (b *broker) earliestTime(_ *conn, q *command) *command {
	messages := b.topics[q.text("topic")].queue(q.number("queueId"))
	if len(messages) == 0 {
		return good("timestamp", -1)
	}
	return good("timestamp", messages[0].stored.UnixMilli())
}
