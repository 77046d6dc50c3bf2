package embedded

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

func TestOnlyLoopback(t *testing.T) {
	if _, err := Open(t.Context(), Options{Addr: "0.0.0.0:0"}); err == nil {
		t.Error("it listens on all interfaces")
	}
}

// Wrong credentials are refused on every request, and the right ones need all
// fields and the body.
func TestSignature(t *testing.T) {
	c := connect(t, Options{AccessKey: "key", SecretKey: "secret"})
	for _, q := range []*command{{Code: 106}, {Code: 106, Fields: map[string]string{"AccessKey": "key", "Signature": "bm8="}}} {
		if a := c.call(q); a.Code != codeNoPermission {
			t.Errorf("%v: code %d", q.Fields, a.Code)
		}
	}
}

// Pulls answer as the real broker did when it was asked the same.
func TestPullOffsets(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	if a := c.pull("t", "g", 0, 0); a.Code != codePullNotFound || a.Remark != "NO_MESSAGE_IN_QUEUE" {
		t.Errorf("an empty queue: %d %s", a.Code, a.Remark)
	}
	c.produce(0, "one")
	for _, row := range []struct {
		from, code int
		next       string
	}{{0, codeSuccess, "1"}, {1, codePullNotFound, "1"}, {2, codePullMoved, "1"}, {9, codePullMoved, "1"}, {-1, codePullMoved, "0"}} {
		a := c.pull("t", "g", 0, row.from)
		if a.Code != row.code || a.text("nextBeginOffset") != row.next {
			t.Errorf("offset %d: code %d, next %s", row.from, a.Code, a.text("nextBeginOffset"))
		}
	}
	for what, got := range map[string]int{
		"a missing topic": c.pull("nope", "g", 0, 0).Code - codeTopicMissing,
		"a missing queue": c.pull("t", "g", 5, 0).Code - codeBadParameter,
		"a missing group": c.pull("t", "nobody", 0, 0).Code - codeGroupMissing,
		"SQL":             c.pull("t", "g", 0, 0, "expressionType", "SQL92").Code - codeSystemError,
		"no subscription": c.pull("t", "g", 0, 0, "sysFlag", 0).Code - codeNotSubscribed,
	} {
		if got != 0 {
			t.Errorf("%s: the code is off by %d", what, got)
		}
	}
}

// A pull that suspends waits for its queue only, and for its time.
func TestLongPull(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	other := again(t, c.s)
	q := good("topic", "t", "consumerGroup", "g", "queueId", 1, "queueOffset", 0, "maxMsgNums", 32,
		"sysFlag", pullSubscribes|pullSuspends, "suspendTimeoutMillis", 20_000)
	q.Code = 11
	other.send(q)
	c.produce(0, "elsewhere")
	c.produce(1, "here")
	has(t, other.next(), "here")
	start := time.Now()
	a := c.pull("t", "g", 1, 1, "sysFlag", pullSubscribes|pullSuspends, "suspendTimeoutMillis", 50)
	if took := time.Since(start); a.Code != codePullNotFound || took < 50*time.Millisecond {
		t.Errorf("after %v: code %d %s", took, a.Code, a.Remark)
	}
}

// A message that is given back comes after its level's time with its marks; after
// the group's number of retries it is dead.
func TestSendBack(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	c.must(17, nil, "topic", "%RETRY%g", "readQueueNums", 1, "writeQueueNums", 1, "perm", readWrite)
	c.produce(0, "work", "properties", "KEYS\x01k\x02")
	a := c.pull("t", "g", 0, 0)
	place := binary.BigEndian.Uint64(a.body[28:])
	c.must(36, nil, "group", "g", "offset", place, "delayLevel", 1)
	if n := c.must(30, nil, "topic", scheduleTopic, "queueId", 0).text("offset"); n != "1" {
		t.Errorf("%s messages are under way", n)
	}
	a = c.pull("%RETRY%g", "g", 0, 0, "sysFlag", pullSubscribes|pullSuspends, "suspendTimeoutMillis", 5000)
	has(t, a, "work")
	has(t, a, "RETRY_TOPIC\x01t\x02")
	if n := binary.BigEndian.Uint32(a.body[72:]); n != 1 {
		t.Errorf("it was reconsumed %d times", n)
	}
	c.must(36, nil, "group", "g", "offset", binary.BigEndian.Uint64(a.body[28:]), "delayLevel", 1, "maxReconsumeTimes", 1)
	has(t, c.pull("%DLQ%g", "g", 0, 0), "work")
	if a := c.call(&command{Code: 36, Fields: map[string]string{"group": "g", "offset": "7777"}}); a.Code != codeSystemError {
		t.Errorf("a missing message: %d %s", a.Code, a.Remark)
	}
}

// What the stand-in cannot do with a message it refuses.
func TestRefusedMessages(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	for _, row := range []struct {
		what, topic, properties string
		body                    []byte
		queue, code             int
	}{
		{"a missing topic", "nope", "", []byte("x"), 0, codeTopicMissing},
		{"a missing queue", "t", "", []byte("x"), 7, codeBadParameter},
		{"no body", "t", "", nil, 0, codeSystemError},
		{"a large body", "t", "", make([]byte, maxBody+1), 0, codeIllegalMessage},
		{"large properties", "t", "a\x01" + strings.Repeat("b", 33000) + "\x02", []byte("x"), 0, codeIllegalMessage},
		{"half a transaction", "t", "TRAN_MSG\x01true\x02", []byte("x"), 0, codeNoPermission},
		{"a timer", "t", "TIMER_DELIVER_MS\x011\x02", []byte("x"), 0, codeIllegalMessage},
		{"the schedule topic", scheduleTopic, "", []byte("x"), 0, codeNoPermission},
	} {
		q := good("topic", row.topic, "queueId", row.queue, "properties", row.properties)
		q.Code, q.body = 10, row.body
		if a := c.call(q); a.Code != row.code {
			t.Errorf("%s: %d %s", row.what, a.Code, a.Remark)
		}
	}
}

// Both other ways to send.
func TestShortAndBatch(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	c.must(310, []byte("short"), "b", "t", "e", 0, "i", "KEYS\x01k\x02")
	part := func(body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(22+len(body)))
		b = append(b, make([]byte, 12)...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		return append(append(b, body...), 0, 0)
	}
	a := c.must(320, bytes.Join([][]byte{part("one"), part("two")}, nil), "b", "t", "e", 0, "m", "true")
	if a.text("queueOffset") != "1" || strings.Count(a.text("msgId"), ",") != 1 {
		t.Errorf("the batch's answer: %v", a.Fields)
	}
	a = c.pull("t", "g", 0, 0)
	for _, body := range []string{"short", "one", "two"} {
		has(t, a, body)
	}
	q := good("b", "t", "e", 0)
	q.Code, q.body = 320, []byte("no batch")
	if a := c.call(q); a.Code != codeIllegalMessage {
		t.Errorf("a broken batch: %d %s", a.Code, a.Remark)
	}
}

// Offsets are none before the first commit, and can go back.
func TestOffsets(t *testing.T) {
	c := connect(t, Options{})
	c.prepare()
	ask := func(pairs ...any) *command {
		q := good(append([]any{"consumerGroup", "g", "topic", "t", "queueId", 0}, pairs...)...)
		q.Code = 14
		return c.call(q)
	}
	if a := ask("setZeroIfNotFound", false); a.Code != codeQueryNotFound {
		t.Errorf("before the first commit: %d %v", a.Code, a.Fields)
	}
	if a := ask(); a.text("offset") != "0" {
		t.Errorf("before the first commit: %d %v", a.Code, a.Fields)
	}
	for _, n := range []string{"3", "1"} {
		c.must(15, nil, "consumerGroup", "g", "topic", "t", "queueId", 0, "commitOffset", n)
		if a := ask(); a.text("offset") != n {
			t.Errorf("after the commit of %s: %v", n, a.Fields)
		}
	}
	if a := c.call(&command{Code: 15, Fields: map[string]string{"consumerGroup": "nobody", "topic": "t"}}); a.Code != codeGroupMissing {
		t.Errorf("a missing group: %d", a.Code)
	}
	before := c.must(29, nil, "topic", "t", "queueId", 0, "timestamp", 0).text("offset")
	c.produce(0, "x")
	after := c.must(29, nil, "topic", "t", "queueId", 0, "timestamp", time.Now().Add(time.Hour).UnixMilli()).text("offset")
	if before != "0" || after != "1" {
		t.Errorf("by time: %s, %s", before, after)
	}
}

// The members of a group hear of each other, and of a connection's end.
func TestMembers(t *testing.T) {
	c := connect(t, Options{})
	join := func(c *client, id string) {
		c.must(34, map[string]any{"clientID": id, "consumerDataSet": []any{map[string]any{"groupName": "g"}}})
	}
	join(c, "a")
	other := again(t, c.s)
	join(other, "b")
	if list := string(c.must(38, nil, "consumerGroup", "g").body); !strings.Contains(list, `["a","b"]`) {
		t.Errorf("the members are %s", list)
	}
	has(t, c.must(203, nil, "consumerGroup", "g"), `"clientId":"b"`)
	lock := map[string]any{"consumerGroup": "g", "clientId": "a", "mqSet": []any{map[string]any{"topic": "t", "brokerName": brokerName, "queueId": 0}}}
	has(t, c.must(41, lock), `"topic":"t"`)
	lock["clientId"] = "b"
	if a := other.must(41, lock); string(a.body) != `{"lockOKMQSet":[]}` {
		t.Errorf("the second lock: %s", a.body)
	}
	other.nc.Close() //nolint:errcheck // the server sees the end
	for {
		if a := c.next(); a.Code == notifyMembers {
			break
		}
	}
	c.must(35, nil, "consumerGroup", "g", "clientID", "a")
	for c.call(&command{Code: 38, Fields: map[string]string{"consumerGroup": "g"}}).Code == codeSuccess {
		// b's end may still be under way
	}
}
