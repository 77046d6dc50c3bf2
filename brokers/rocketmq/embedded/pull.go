package embedded

import (
	"slices"
	"time"
)

// The bits of a pull's sysFlag.
const (
	pullCommits    = 1
	pullSuspends   = 2
	pullSubscribes = 4
)

const (
	maxTransfer = 256 << 10        // bytes of one answer, the real broker's default
	maxSuspend  = 20 * time.Second // the same
)

// pull is a request for messages, perhaps one that waits.
type pull struct {
	c     *conn
	q     *command
	topic string
	queue int64
	from  int64
	until time.Time
}

// pullMessage answers with what lies at an offset, or waits for it.
func (b *broker) pullMessage(c *conn, q *command) *command {
	name, group, flags := q.text("topic"), q.text("consumerGroup"), q.number("sysFlag")
	t, g := b.topics[name], b.groups[group]
	switch {
	case g == nil:
		return bad(codeGroupMissing, "subscription group [%s] does not exist", group)
	case t == nil:
		return bad(codeTopicMissing, "topic[%s] not exist, apply first please!", name)
	case t.perm&permRead == 0:
		return bad(codeNoPermission, "the topic[%s] pulling message is forbidden", name)
	case q.number("queueId") < 0 || q.number("queueId") >= int64(t.read):
		return bad(codeBadParameter, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d]", q.number("queueId"), name, t.read)
	case q.text("expressionType") != "" && q.text("expressionType") != "TAG":
		return bad(codeSystemError, "The broker does not support consumer to filter message by %s", q.text("expressionType"))
	case flags&pullSubscribes == 0 && len(g.members) == 0:
		return bad(codeNotSubscribed, "the consumer's group info not exist")
	}
	p := &pull{c: c, q: q, topic: name, queue: q.number("queueId"), from: q.number("queueOffset")}
	if flags&pullCommits != 0 {
		g.commit(name, p.queue, q.number("commitOffset"))
	}
	a := b.found(p)
	wait := min(time.Duration(q.number("suspendTimeoutMillis"))*time.Millisecond, maxSuspend)
	if a.Code != codePullNotFound || flags&pullSuspends == 0 || wait <= 0 {
		return a
	}
	p.until = time.Now().Add(wait)
	b.waiting = append(b.waiting, p)
	b.changed()
	return nil
}

// found is the answer to a pull as things are now.
func (b *broker) found(p *pull) *command {
	messages := b.topics[p.topic].queue(p.queue)
	end := int64(len(messages))
	a := good("suggestWhichBrokerId", 0, "minOffset", 0, "maxOffset", end, "topicSysFlag", 0, "groupSysFlag", 0)
	next := p.from
	switch {
	case end == 0 && p.from == 0:
		a.Code, a.Remark = codePullNotFound, "NO_MESSAGE_IN_QUEUE"
	case p.from < 0:
		a.Code, a.Remark, next = codePullMoved, "OFFSET_TOO_SMALL", 0
	case p.from == end:
		a.Code, a.Remark = codePullNotFound, "OFFSET_OVERFLOW_ONE"
	case p.from > end:
		a.Code, a.Remark, next = codePullMoved, "OFFSET_OVERFLOW_BADLY", end
	default:
		a.Remark = "FOUND"
		for _, m := range messages[p.from:min(end, p.from+max(1, p.q.number("maxMsgNums")))] {
			if len(a.body) > 0 && len(a.body)+len(m.body) > maxTransfer {
				break
			}
			a.body = m.appendTo(a.body, b.addr)
			next++
		}
	}
	a.Fields["nextBeginOffset"] = good("", next).Fields[""]
	return a
}

// arrived answers the pulls that wait for a message.
func (b *broker) arrived(m *message) {
	b.waiting = slices.DeleteFunc(b.waiting, func(p *pull) bool {
		if p.topic != m.topic || p.queue != m.queue || p.from > m.offset {
			return false
		}
		p.c.answer(p.q, b.found(p))
		return true
	})
}
