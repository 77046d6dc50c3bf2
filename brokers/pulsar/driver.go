// Package pulsar is the driver for Apache Pulsar: the binary protocol for the
// messages, the admin REST API for topics, subscriptions and numbers.
package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mqlab/brokers"
)

// Driver implements brokers.Driver; the zero value is ready.
type Driver struct{}

// Name is the product's name.
func (Driver) Name() string { return "pulsar" }

// Scheme is that of Pulsar's service URLs.
func (Driver) Scheme() string { return "pulsar" }

// Keys lists the scenario keys that Pulsar has beside the common ones.
func (Driver) Keys() []string {
	return []string{"destination.topic", "consumer.prefetch", "consumer.subscription", "consumer.subscription-type"}
}

// Figures lists the numbers of State: backlog (every message that the
// subscription has not acknowledged, delayed ones too), unacknowledged (handed
// out; the broker counts it on shared and key-shared subscriptions only, and
// says 0 on the others), pending (delayed) and consumers.
func (Driver) Figures() []string {
	return []string{"backlog", "unacknowledged", "pending", "consumers"}
}

// SentWord is the status word of a confirmed send.
func (Driver) SentWord() string { return "produced" }

// maxName leaves room for a run's suffix, in bytes: the broker keeps a topic's
// name in a file name of its metadata store, percent-encoded.
const maxName = 180

// Check says what is missing in a destination.
func (Driver) Check(d brokers.Destination) error {
	switch {
	case d.Queue != "" || d.QueueType != "" || d.Transient:
		return errors.New("destination: Pulsar has topics, no queues")
	case d.Partitions != 0:
		return errors.New("destination.partitions: this driver makes topics without partitions")
	case d.Topic == "":
		return errors.New("destination.topic is missing")
	case strings.Contains(d.Topic, "-partition-"):
		return errors.New("destination.topic has -partition- in it, which Pulsar keeps for itself")
	}
	if err := checkName("destination.topic", d.Topic); err != nil {
		return err
	}
	return checkName("consumer.subscription", d.Readers())
}

// checkName lets through what needs no escape in a URL, a file name or a
// topic's full name.
func checkName(key, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%s is longer than the %d bytes that leave room for a run's suffix", key, maxName)
	}
	for _, r := range name {
		if !strings.ContainsRune("-_.=", r) && (r > 'z' || r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a') {
			return fmt.Errorf("%s has %q in it; letters, digits and - _ . = are allowed", key, r)
		}
	}
	if strings.Trim(name, ".") == "" {
		return fmt.Errorf("%s consists of dots only", key)
	}
	return nil
}

// Prepare creates the topic, without partitions, and the subscription that
// reads it, at the first message. A partitioned topic of that name is refused.
func (Driver) Prepare(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	a, err := enter(ctx, at)
	if err != nil {
		return err
	}
	defer a.close()
	return a.create(ctx, d)
}

// Remove deletes the topic with its subscriptions, whoever is on it.
func (Driver) Remove(ctx context.Context, at brokers.Address, d brokers.Destination) error {
	a, err := enter(ctx, at)
	if err != nil {
		return err
	}
	defer a.close()
	return a.remove(ctx, d)
}

// Probe asks the broker for its version.
func (Driver) Probe(ctx context.Context, at brokers.Address) (string, error) {
	a, err := enter(ctx, at)
	if err != nil {
		return "", err
	}
	defer a.close()
	return a.version(ctx)
}
