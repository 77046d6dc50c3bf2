package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	maxTopicName = 127
	maxGroupName = 255
	maxQueues    = 1024
)

// validName reports whether a topic or a group may be called so.
func validName(s string) bool { return regexp.MustCompile(`^[%|a-zA-Z0-9_-]+$`).MatchString(s) }

// createTopic makes a topic or changes it; queues that have gone keep what is in
// them.
func (b *broker) createTopic(_ *conn, q *command) *command {
	name := q.text("topic")
	read, write, perm := int(q.number("readQueueNums")), int(q.number("writeQueueNums")), int(q.number("perm"))
	switch {
	case !validName(name):
		return bad(codeBadParameter, "The specified topic: %s, contains illegal characters, allowing only ^[%%|a-zA-Z0-9_-]+$", name)
	case len(name) > maxTopicName:
		return bad(codeBadParameter, "The specified topic is longer than topic max length %d.", maxTopicName)
	case name == scheduleTopic || name == "TBW102":
		return bad(codeBadParameter, "The topic[%s] is conflict with system topic.", name)
	case read < 1 || write < 1 || read > maxQueues || write > maxQueues:
		return bad(codeBadParameter, "want 1 to %d queues", maxQueues)
	}
	t := b.topics[name]
	if t == nil {
		t = newTopic(max(read, write), perm)
		b.topics[name] = t
	}
	t.read, t.write, t.perm = read, write, perm
	for len(t.queues) < max(read, write) {
		t.queues = append(t.queues, nil)
	}
	return good()
}

func (b *broker) deleteTopic(_ *conn, q *command) *command {
	if q.text("topic") == scheduleTopic {
		return bad(codeBadParameter, "The topic[%s] is conflict with system topic.", scheduleTopic)
	}
	b.forget(q.text("topic"))
	return good()
}

func (b *broker) createGroup(_ *conn, q *command) *command {
	var config struct {
		Name    string `json:"groupName"`
		Retries *int   `json:"retryMaxTimes"`
	}
	if err := json.Unmarshal(q.body, &config); err != nil {
		return bad(codeSystemError, "the group's body: %v", err)
	}
	if !validName(config.Name) || len(config.Name) > maxGroupName {
		return bad(codeBadParameter, "The specified group: %s, contains illegal characters or is too long", config.Name)
	}
	g := b.groups[config.Name]
	if g == nil {
		g = newGroup()
		b.groups[config.Name] = g
	}
	if config.Retries != nil {
		g.retries = *config.Retries
	}
	return good()
}

// deleteGroup forgets a group and its offsets.
func (b *broker) deleteGroup(_ *conn, q *command) *command {
	delete(b.groups, q.text("groupName"))
	return good()
}

func (b *broker) allGroups(*conn, *command) *command {
	table := map[string]any{}
	for name, g := range b.groups {
		table[name] = map[string]any{"groupName": name, "retryMaxTimes": g.retries, "retryQueueNums": 1, "consumeEnable": true}
	}
	return goodBody(map[string]any{"subscriptionGroupTable": table})
}

// allTopics are the topics that a name server tells of.
func (b *broker) allTopics(*conn, *command) *command {
	return goodBody(map[string]any{"topicList": slices.Sorted(maps.Keys(b.topics))})
}

func (b *broker) brokerData() map[string]any {
	return map[string]any{"cluster": clusterName, "brokerName": brokerName, "brokerAddrs": map[string]string{"0": b.addr.String()}, "enableActingMaster": false}
}

// routeInfo is a topic's place, which is always here.
func (b *broker) routeInfo(_ *conn, q *command) *command {
	t := b.topics[q.text("topic")]
	if t == nil {
		return bad(codeTopicMissing, "No topic route info in name server for the topic: %s", q.text("topic"))
	}
	return goodBody(map[string]any{
		"brokerDatas":       []any{b.brokerData()},
		"filterServerTable": map[string]any{},
		"queueDatas":        []any{map[string]any{"brokerName": brokerName, "perm": t.perm, "readQueueNums": t.read, "writeQueueNums": t.write, "topicSysFlag": 0}},
	})
}

func (b *broker) clusterInfo(*conn, *command) *command {
	return goodBody(map[string]any{"brokerAddrTable": map[string]any{brokerName: b.brokerData()}, "clusterAddrTable": map[string]any{clusterName: []string{brokerName}}})
}

// runtimeInfo has no bytes to count: whatever is stored here is indexed.
func (b *broker) runtimeInfo(*conn, *command) *command {
	return goodBody(map[string]any{"table": map[string]string{"brokerVersionDesc": "V" + strings.ReplaceAll(version, ".", "_"), "brokerActive": "true",
		"commitLogMaxOffset": "0", "dispatchBehindBytes": "0"}})
}

// topicStats has objects as an object's keys, as the real broker's answer: that
// is no JSON, but what its clients read.
func (b *broker) topicStats(_ *conn, q *command) *command {
	name := q.text("topic")
	t := b.topics[name]
	if t == nil {
		return bad(codeTopicMissing, "topic[%s] not exist", name)
	}
	var rows []string
	for n, messages := range t.queues {
		last := int64(0)
		if len(messages) > 0 {
			last = messages[len(messages)-1].stored.UnixMilli()
		}
		rows = append(rows, fmt.Sprintf(`{"brokerName":%q,"queueId":%d,"topic":%q}:{"lastUpdateTimestamp":%d,"maxOffset":%d,"minOffset":0}`,
			brokerName, n, name, last, len(messages)))
	}
	return &command{body: []byte(`{"offsetTable":{` + strings.Join(rows, ",") + `},"topicPutTps":0.0}`)}
}
