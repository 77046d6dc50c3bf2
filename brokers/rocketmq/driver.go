// Package rocketmq is the driver for Apache RocketMQ: the official Go client for
// the messages, a few requests of the remoting protocol for what the client
// cannot say.
package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/rlog"

	"mqlab/brokers"
)

// Driver implements brokers.Driver; the zero value is ready.
//
// Its first producer or consumer sets the client's log level to fatal, which is
// one setting for the whole process: the client has no other.
type Driver struct{}

// quiet silences the client, once and before any of its goroutines can log.
var quiet = sync.OnceFunc(func() { rlog.SetLogLevel("fatal") })

const (
	// queues is how many queues a topic gets: one, so that there is one order.
	queues = 1
	// readWrite is the permission of a topic that is written and read.
	readWrite = 6
	// maxRetries is how often RocketMQ gives a message back to a group before it
	// goes to the dead-letter topic; the product's own default.
	maxRetries = 16
	// maxName is what RocketMQ allows a topic or group, in bytes, without the
	// longest prefix that it puts before it and a run's suffix.
	maxName = 127 - len(retryPrefix) - len("-mqlab-0123456789abcdef")
)

const (
	retryPrefix = "%RETRY%"
	deadPrefix  = "%DLQ%"
)

// names are a destination's names on the wire.
type names struct{ topic, group, retry, dead string }

func onWire(d brokers.Destination) names {
	group := d.OnWire(d.Readers())
	return names{topic: d.OnWire(d.Topic), group: group, retry: retryPrefix + group, dead: deadPrefix + group}
}

// Name is the product's name.
func (Driver) Name() string { return "rocketmq" }

// Scheme is that of the addresses; host and port are a name server's.
func (Driver) Scheme() string { return "rocketmq" }

// Keys lists the scenario keys that RocketMQ has beside the common ones.
func (Driver) Keys() []string {
	return []string{"destination.topic", "consumer.group", "consumer.instance"}
}

// Figures lists the numbers of State: end (where the topic's next message will
// lie), committed (the group's offset on the broker), lag (end minus committed),
// pending (what comes again later or waits in the retry topic) and consumers.
func (Driver) Figures() []string {
	return []string{"end", "committed", "lag", "pending", "consumers"}
}

// SentWord is the status word of a confirmed send.
func (Driver) SentWord() string { return "produced" }

// name is what RocketMQ allows in the name of a topic or group. It also allows
// %, which it uses for its own prefixes, and |.
var name = regexp.MustCompile(`^[|a-zA-Z0-9_-]+$`)

// Check says what is missing or wrong in a destination.
func (Driver) Check(d brokers.Destination) error {
	switch {
	case d.Topic == "":
		return errors.New("destination.topic is missing")
	case d.Queue != "" || d.QueueType != "" || d.Transient:
		return errors.New("RocketMQ has topics: destination.queue, queue-type and transient have no meaning")
	case d.Partitions != 0:
		return errors.New("destination.partitions has no meaning for RocketMQ, whose topics get one queue")
	case !name.MatchString(d.Topic):
		return errors.New("destination.topic has a character that RocketMQ does not allow; it allows letters, digits, _, - and |")
	case len(d.Topic) > maxName:
		return fmt.Errorf("destination.topic is longer than the %d bytes that leave room for a run's suffix", maxName)
	case !name.MatchString(d.Readers()):
		return errors.New("consumer.group has a character that RocketMQ does not allow; it allows letters, digits, _, - and |")
	case len(d.Readers()) > maxName:
		return fmt.Errorf("consumer.group (by default the topic's name and -group) is longer than %d bytes", maxName)
	}
	return nil
}

// Prepare makes the topic, the group and the group's retry topic, and returns
// when the name server knows the topics: a consumer that starts before its retry
// topic exists learns of it half a minute later.
func (Driver) Prepare(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	s, err := open(ctx, at, "")
	if err != nil {
		return err
	}
	defer s.close()
	n := onWire(d)
	if err := s.createTopic(ctx, n.topic); err != nil {
		return fmt.Errorf("make topic %s: %w", d.Topic, err)
	}
	group, err := json.Marshal(map[string]any{
		"groupName": n.group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"retryQueueNums": queues, "retryMaxTimes": maxRetries, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
		"notifyConsumerIdsChangedEnable": true,
	})
	if err != nil {
		return fmt.Errorf("make group %s: %w", d.Readers(), err)
	}
	if _, err := s.broker.ask(ctx, reqCreateGroup, nil, group); err != nil {
		return fmt.Errorf("make group %s: %w", d.Readers(), err)
	}
	if err := s.createTopic(ctx, n.retry); err != nil {
		return fmt.Errorf("make the retry topic of group %s: %w", d.Readers(), err)
	}
	return nil
}

// createTopic makes a topic, or finds that an equal one is there.
func (s *session) createTopic(ctx context.Context, topic string) error {
	r, err := s.route(ctx, topic)
	if errors.Is(err, brokers.ErrNotFound) {
		count := strconv.Itoa(queues)
		if _, err := s.broker.ask(ctx, reqCreateTopic, fields{
			"topic": topic, "defaultTopic": "TBW102", "readQueueNums": count, "writeQueueNums": count,
			"perm": strconv.Itoa(readWrite), "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		}, nil); err != nil {
			return err
		}
		r, err = s.awaitRoute(ctx, topic)
	}
	if err != nil {
		return err
	}
	for _, q := range r.Queues {
		if q.Read != queues || q.Write != queues || q.Perm != readWrite {
			return fmt.Errorf("%w: it is there with %d read and %d write queues and permission %d, wanted is one queue to read and write",
				brokers.ErrRefused, q.Read, q.Write, q.Perm)
		}
	}
	return nil
}

// awaitRoute waits until the name server has heard of a new topic.
func (s *session) awaitRoute(ctx context.Context, topic string) (route, error) {
	for {
		r, err := s.route(ctx, topic)
		if !errors.Is(err, brokers.ErrNotFound) {
			return r, err
		}
		if err := pause(ctx, askAgain); err != nil {
			return r, fmt.Errorf("the name server does not know it: %w", err)
		}
	}
}

// Remove deletes the topic, the group with its offsets, and the group's retry
// and dead-letter topics. The servers answer a missing one with success.
func (Driver) Remove(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	s, err := open(ctx, at, "")
	if err != nil {
		return err
	}
	defer s.close()
	n := onWire(d)
	if _, err := s.broker.ask(ctx, reqDeleteGroup, fields{"groupName": n.group, "cleanOffset": "true"}, nil); err != nil {
		return fmt.Errorf("delete group %s: %w", d.Readers(), err)
	}
	for _, topic := range []string{n.topic, n.retry, n.dead} {
		// First in the broker, or it would register the topic again.
		if _, err := s.broker.ask(ctx, reqDeleteInBroker, fields{"topic": topic}, nil); err != nil {
			return fmt.Errorf("delete %s: %w", topic, err)
		}
		if _, err := s.names.ask(ctx, reqDeleteInNames, fields{"topic": topic, "clusterName": s.cluster}, nil); err != nil {
			return fmt.Errorf("delete %s from the name server: %w", topic, err)
		}
	}
	return nil
}

// Probe asks the broker for its version.
func (Driver) Probe(ctx context.Context, at brokers.Address) (string, error) {
	s, err := open(ctx, at, "")
	if err != nil {
		return "", err
	}
	defer s.close()
	info, err := s.runtimeInfo(ctx)
	return version(info["brokerVersionDesc"]), err
}

// version turns V5_4_0 into 5.4.0.
func version(desc string) string {
	return strings.ReplaceAll(strings.TrimPrefix(desc, "V"), "_", ".")
}
