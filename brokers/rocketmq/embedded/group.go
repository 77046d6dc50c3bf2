package embedded

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// lockLife is how long a queue stays locked for a client that does not ask again,
// the real broker's default.
const lockLife = time.Minute

// group is a subscription group: who is in it and how far it has come.
type group struct {
	retries int // how often a message is given back before it is dead
	members map[string]*member
	offsets map[string]map[int64]int64 // by topic and queue
	locks   map[messageQueue]lock
}

func newGroup() *group {
	return &group{retries: 16, members: map[string]*member{}, offsets: map[string]map[int64]int64{}, locks: map[messageQueue]lock{}}
}

// member is a client of a group, by its id.
type member struct {
	c        *conn
	version  int
	language string
	topics   []string // what it subscribes to, sorted
}

// messageQueue is a queue as clients name it.
type messageQueue struct {
	Topic  string `json:"topic"`
	Broker string `json:"brokerName"`
	Queue  int64  `json:"queueId"`
}

type lock struct {
	client string
	at     time.Time
}

func (g *group) commit(topic string, queue, offset int64) {
	if g.offsets[topic] == nil {
		g.offsets[topic] = map[int64]int64{}
	}
	g.offsets[topic][queue] = offset
}

// leave removes members and reports whether there were any.
func (g *group) leave(is func(*member) bool) bool {
	before := len(g.members)
	maps.DeleteFunc(g.members, func(_ string, m *member) bool { return is(m) })
	return len(g.members) != before
}

// notify tells the members that the group has changed, so that they share out
// the queues anew.
func (g *group) notify(name string) {
	for _, m := range g.members {
		m.c.send(&command{Code: notifyMembers, Flag: flagOneway, Fields: map[string]string{"consumerGroup": name}})
	}
}

// heartbeat says which groups a client is in. A group that is not there is made,
// with its retry topic, as the real broker does by default.
func (b *broker) heartbeat(c *conn, q *command) *command {
	var beat struct {
		Client    string `json:"clientID"`
		Consumers []struct {
			Group         string `json:"groupName"`
			Subscriptions []struct {
				Topic string `json:"topic"`
			} `json:"subscriptionDataSet"`
		} `json:"consumerDataSet"`
	}
	if err := json.Unmarshal(q.body, &beat); err != nil {
		return bad(codeSystemError, "the heartbeat: %v", err)
	}
	for _, d := range beat.Consumers {
		g := b.groups[d.Group]
		if g == nil {
			g = newGroup()
			b.groups[d.Group] = g
		}
		if retry := retryPrefix + d.Group; b.topics[retry] == nil {
			b.topics[retry] = newTopic(1, readWrite)
		}
		m := &member{c: c, version: q.Version, language: q.Language}
		for _, s := range d.Subscriptions {
			m.topics = append(m.topics, s.Topic)
		}
		slices.Sort(m.topics)
		old := g.members[beat.Client]
		g.members[beat.Client] = m
		if old == nil || old.c != c || !slices.Equal(old.topics, m.topics) {
			g.notify(d.Group)
		}
	}
	return good()
}

// unregister takes a client out of a group, if it asks on its own connection.
func (b *broker) unregister(c *conn, q *command) *command {
	name, client := q.text("consumerGroup"), q.text("clientID")
	if g := b.groups[name]; g != nil && g.members[client] != nil && g.members[client].c == c {
		delete(g.members, client)
		g.notify(name)
	}
	return good()
}

func (b *broker) consumerList(_ *conn, q *command) *command {
	g := b.groups[q.text("consumerGroup")]
	if g == nil || len(g.members) == 0 {
		return bad(codeSystemError, "no consumer for this group, %s", q.text("consumerGroup"))
	}
	return goodBody(map[string]any{"consumerIdList": slices.Sorted(maps.Keys(g.members))})
}

func (b *broker) connectionList(_ *conn, q *command) *command {
	g := b.groups[q.text("consumerGroup")]
	if g == nil || len(g.members) == 0 {
		return bad(codeNotOnline, "the consumer group[%s] not online", q.text("consumerGroup"))
	}
	set := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		set = append(set, map[string]any{"clientAddr": m.c.nc.RemoteAddr().String(), "clientId": id, "language": m.language, "version": m.version})
	}
	return goodBody(map[string]any{"connectionSet": set, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"})
}

// lockRequest is the body of both lock requests.
type lockRequest struct {
	Group  string         `json:"consumerGroup"`
	Client string         `json:"clientId"`
	Queues []messageQueue `json:"mqSet"`
}

// lockQueues locks queues for the orderly consumption by one client.
func (b *broker) lockQueues(_ *conn, q *command) *command {
	var l lockRequest
	if err := json.Unmarshal(q.body, &l); err != nil {
		return bad(codeSystemError, "the lock's body: %v", err)
	}
	locked := []messageQueue{}
	if g := b.groups[l.Group]; g != nil {
		for _, mq := range l.Queues {
			if old, ok := g.locks[mq]; ok && old.client != l.Client && time.Since(old.at) < lockLife {
				continue
			}
			g.locks[mq] = lock{l.Client, time.Now()}
			locked = append(locked, mq)
		}
	}
	return goodBody(map[string]any{"lockOKMQSet": locked})
}

func (b *broker) unlockQueues(_ *conn, q *command) *command {
	var l lockRequest
	if err := json.Unmarshal(q.body, &l); err != nil {
		return bad(codeSystemError, "the lock's body: %v", err)
	}
	if g := b.groups[l.Group]; g != nil {
		for _, mq := range l.Queues {
			if g.locks[mq].client == l.Client {
				delete(g.locks, mq)
			}
		}
	}
	return good()
}
