package rocketmq

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

const (
	// scheduleTopic holds what the broker gives back later, of all groups; its
	// queue 0 is that of delay level 1.
	scheduleTopic = "SCHEDULE_TOPIC_XXXX"
	// toolsGroup is the group that every broker has for its tools.
	toolsGroup = "TOOLS_CONSUMER"
)

// inspector asks the broker with requests of its own.
type inspector struct {
	at brokers.Address
	s  *session
	// returned counts by retry topic what consumers have given back so far.
	returned map[string]*tally
}

// tally is how far a count has come in the schedule topic.
type tally struct{ next, count int64 }

// OpenInspector connects to the name server and a broker.
func (Driver) OpenInspector(ctx context.Context, at brokers.Address) (brokers.Inspector, error) {
	s, err := open(ctx, at, "")
	if err != nil {
		return nil, err
	}
	return &inspector{at: at, s: s, returned: map[string]*tally{}}, nil
}

// State counts in an order in which a message that is moving may be counted
// twice, but never missed: where it comes from before where it goes to. The
// broker counts what it has indexed; Send and Nack return no earlier.
func (i *inspector) State(ctx context.Context, d brokers.Destination) (brokers.State, error) {
	start := time.Now()
	if err := i.reopen(ctx); err != nil {
		return brokers.State{}, err
	}
	st, err := i.state(ctx, onWire(d))
	if err != nil {
		return brokers.State{}, fmt.Errorf("look at topic %s: %w", d.Topic, err)
	}
	st.Took = time.Since(start)
	return st, nil
}

// reopen connects again after an end: servers close what is idle for two minutes.
func (i *inspector) reopen(ctx context.Context) error {
	select {
	case <-i.s.names.lost:
	case <-i.s.broker.lost:
	default:
		return nil
	}
	s, err := open(ctx, i.at, "")
	if err != nil {
		return err
	}
	i.s.close()
	i.s = s
	return nil
}

func (i *inspector) state(ctx context.Context, n names) (brokers.State, error) {
	// A broker has a number for any name.
	if _, err := i.s.route(ctx, n.topic); err != nil {
		return brokers.State{}, err
	}
	committed, err := i.s.committed(ctx, n.group, n.topic)
	if err != nil {
		return brokers.State{}, err
	}
	again, err := i.s.committed(ctx, n.group, n.retry)
	if err != nil {
		return brokers.State{}, err
	}
	end, err := i.s.maxOffset(ctx, n.topic)
	if err != nil {
		return brokers.State{}, err
	}
	pending, err := i.pending(ctx, n, again)
	if err != nil {
		return brokers.State{}, err
	}
	ids, err := i.s.consumers(ctx, n.group)
	if err != nil {
		return brokers.State{}, err
	}
	lag, consumers := end, int64(len(ids))
	if committed != nil {
		lag -= *committed
	}
	return brokers.State{Left: lag + pending, Idle: consumers == 0, Figures: map[string]*int64{
		"end": &end, "committed": committed, "lag": &lag, "pending": &pending, "consumers": &consumers,
	}}, nil
}

// pending is what the group has given back and not taken again: all that it gave
// back minus again, its offset in the retry topic, through which everything comes. When
// the broker refuses to take a message back, the client sends it as a new one
// with a longer delay; that one is counted from when it comes.
func (i *inspector) pending(ctx context.Context, n names, again *int64) (int64, error) {
	returned, err := i.count(ctx, n)
	if err != nil {
		return 0, err
	}
	come, err := i.s.maxOffset(ctx, n.retry)
	if err != nil {
		return 0, err
	}
	returned = max(returned, come)
	if again != nil {
		returned -= *again
	}
	return returned, nil
}

// count counts the group's messages in the schedule topic, which keeps those
// that it has passed on. It goes on where it ended last time, and begins where
// the topic's first message would lie: nothing can have been given back earlier.
func (i *inspector) count(ctx context.Context, n names) (int64, error) {
	end, err := i.s.maxOffset(ctx, scheduleTopic)
	if err != nil {
		return 0, err
	}
	t := i.returned[n.retry]
	if t == nil {
		next, err := i.s.scheduleStart(ctx, n.topic)
		if err != nil {
			return 0, err
		}
		t = &tally{next: next}
		i.returned[n.retry] = t
	}
	for t.next < end {
		next, messages, err := i.s.pull(ctx, scheduleTopic, t.next)
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			if m.GetProperty("REAL_TOPIC") == n.retry {
				t.count++
			}
		}
		if next == t.next { // it is stored, but not yet indexed
			if err := pause(ctx, askAgain); err != nil {
				return 0, err
			}
		}
		t.next = next
	}
	return t.count, nil
}

// scheduleStart is the offset in the schedule topic at the time of a topic's
// first message.
func (s *session) scheduleStart(ctx context.Context, topic string) (int64, error) {
	a, err := s.broker.ask(ctx, reqEarliestTime, fields{"topic": topic, "queueId": "0"}, nil)
	if err != nil {
		return 0, err
	}
	since, err := strconv.ParseInt(a.Ext["timestamp"], 10, 64)
	if err != nil || since < 0 { // no message yet: some may come before the next look
		return s.maxOffset(ctx, scheduleTopic)
	}
	a, err = s.broker.ask(ctx, reqSearchOffset, fields{"topic": scheduleTopic, "queueId": "0", "timestamp": strconv.FormatInt(since, 10)}, nil)
	if err != nil {
		return 0, err
	}
	return a.offset()
}

// pull reads a few messages at an offset of a topic's first queue, and where to
// go on.
func (s *session) pull(ctx context.Context, topic string, at int64) (next int64, messages []*primitive.MessageExt, err error) {
	a, err := s.broker.call(ctx, reqPullMessage, fields{
		"consumerGroup": toolsGroup, "topic": topic, "queueId": "0", "queueOffset": strconv.FormatInt(at, 10), "maxMsgNums": "32",
		"sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0", "expressionType": "TAG",
	}, nil)
	if err != nil {
		return 0, nil, err
	}
	switch a.Code {
	case resSuccess:
		messages = primitive.DecodeMessage(a.body)
	case resPullNotFound, resPullRetry, resPullMoved:
	default:
		return 0, nil, a.refused()
	}
	next, err = strconv.ParseInt(a.Ext["nextBeginOffset"], 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer's next offset: %w", err)
	}
	return next, messages, nil
}

// Close ends the connections.
func (i *inspector) Close() error {
	i.s.close()
	return nil
}
