// Package kafka is the driver for Apache Kafka: franz-go for the messages and
// the group, kadm for the numbers.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mqlab/brokers"
)

// Driver implements brokers.Driver; the zero value is ready.
type Driver struct{}

// Name is the product's name.
func (Driver) Name() string { return "kafka" }

// Scheme is that of Kafka's URLs here; Kafka itself knows only host:port.
func (Driver) Scheme() string { return "kafka" }

// Keys lists the scenario keys that Kafka has beside the common ones.
func (Driver) Keys() []string {
	return []string{"destination.topic", "destination.partitions",
		"consumer.group", "consumer.instance", "consumer.membership", "consumer.protocol", "consumer.session", "consumer.isolation"}
}

// Figures lists the numbers of State, summed over the partitions: committed
// (the group's positions; none before the first commit), end (of the log), lag
// (what lies between the two) and members of the group, a static one that is
// away included.
func (Driver) Figures() []string { return []string{"committed", "end", "lag", "members"} }

// SentWord is the status word of a send that all replicas have.
func (Driver) SentWord() string { return "produced" }

// maxName leaves room for a run's suffix in the 249 characters of a topic's
// name (org.apache.kafka.common.internals.Topic).
const maxName = 200

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// maxPartitions is far more than a lab needs, and few enough for one broker.
const maxPartitions = 100

// Check says what is missing in a destination.
func (Driver) Check(d brokers.Destination) error {
	switch {
	case d.Topic == "":
		return errors.New("destination.topic is missing")
	case len(d.Topic) > maxName:
		return fmt.Errorf("destination.topic is longer than the %d characters that leave room for a run's suffix", maxName)
	case !topicName.MatchString(d.Topic) || strings.Trim(d.Topic, ".") == "":
		return errors.New("destination.topic has other characters than letters, digits, dots, underscores and hyphens")
	case d.Partitions < 0 || d.Partitions > maxPartitions:
		return fmt.Errorf("destination.partitions is between 1 and %d, not %d", maxPartitions, d.Partitions)
	}
	return nil
}

// askAgain is the pause between two looks at something that the broker makes
// known a moment after it has answered.
const askAgain = 2 * time.Millisecond

// Prepare creates the topic and waits until the broker can be asked for it.
func (Driver) Prepare(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	return administer(at, "mqlab setup", func(s *session) error {
		want := max(1, d.Partitions)
		res, err := s.admin.CreateTopic(ctx, int32(want), 1, nil, d.OnWire(d.Topic))
		if err == nil {
			err = res.Err
		}
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", d.Topic, s.reason(ctx, err))
		}
		have, err := s.awaitTopic(ctx, d)
		if err == nil && have != want {
			err = fmt.Errorf("create topic %s: %w: it exists with %d partition(s), not %d", d.Topic, brokers.ErrRefused, have, want)
		}
		return err
	})
}

// awaitTopic returns the number of partitions when each has a leader: the
// broker learns of a new topic a moment after the controller has made it.
func (s *session) awaitTopic(ctx context.Context, d brokers.Destination) (int, error) {
	for {
		n, err := s.topic(ctx, d)
		if !errors.Is(err, brokers.ErrNotFound) {
			return n, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for topic %s: %w", d.Topic, ctx.Err())
		case <-time.After(askAgain):
		}
	}
}

// Remove deletes the topic, and the group with what it has committed.
func (Driver) Remove(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	return administer(at, "mqlab cleanup", func(s *session) error {
		return errors.Join(s.removeTopic(ctx, d), s.removeGroup(ctx, d))
	})
}

func (s *session) removeTopic(ctx context.Context, d brokers.Destination) error {
	res, err := s.admin.DeleteTopic(ctx, d.OnWire(d.Topic))
	if err == nil {
		err = res.Err
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", d.Topic, s.reason(ctx, err))
	}
	for { // the broker forgets it a moment after the controller
		_, err := s.topic(ctx, d)
		if errors.Is(err, brokers.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of topic %s: %w", d.Topic, ctx.Err())
		case <-time.After(askAgain):
		}
	}
}

// topic asks for the number of a topic's partitions. It asks the broker: the
// admin client's answers may be some milliseconds old.
func (s *session) topic(ctx context.Context, d brokers.Destination) (partitions int, err error) {
	req := kmsg.NewPtrMetadataRequest()
	name := d.OnWire(d.Topic)
	req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	res, err := req.RequestWith(ctx, s.client)
	if err == nil && len(res.Topics) != 1 {
		err = kerr.UnknownTopicOrPartition
	}
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].ErrorCode)
	}
	if err != nil {
		return 0, fmt.Errorf("look for topic %s: %w", d.Topic, s.reason(ctx, err))
	}
	for _, p := range res.Topics[0].Partitions {
		if p.Leader < 0 {
			return 0, fmt.Errorf("look for topic %s: %w: partition %d has no leader", d.Topic, errNotFound, p.Partition)
		}
	}
	return len(res.Topics[0].Partitions), nil
}

// Probe asks the broker which requests it serves: Kafka does not say its
// version, but each release added some.
func (Driver) Probe(ctx context.Context, at brokers.Address) (version string, err error) {
	err = administer(at, "mqlab probe", func(s *session) error {
		bs, err := s.admin.ApiVersions(ctx)
		if err != nil {
			return fmt.Errorf("ask for the broker's version: %w", s.reason(ctx, err))
		}
		for _, b := range bs {
			if b.Err != nil {
				return fmt.Errorf("ask for the broker's version: %w", s.reason(ctx, b.Err))
			}
			version = strings.TrimPrefix(b.VersionGuess(), "v")
		}
		return nil
	})
	return version, err
}
