// Package brokers is the contract between mqlab and a message broker: what a
// driver must do so that the roles, the runner and the inspector exist once.
//
// A driver lives in a folder below this one and is named in one line of the
// registry in cmd/mqlab. Package brokertest holds every driver to this contract.
package brokers

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Errors that a driver wraps so that a role can choose its exit code.
var (
	// ErrConnectionLost says that the connection to the broker is gone.
	ErrConnectionLost = errors.New("broker connection lost")
	// ErrRefused says that the broker answered and said no.
	ErrRefused = errors.New("the broker refused")
	// ErrNotFound says that a destination does not exist; it is also ErrRefused.
	ErrNotFound = errors.New("no such destination")
	// ErrAckRefused says that an acknowledgement came too late or for a
	// delivery that is not this consumer's any more.
	ErrAckRefused = errors.New("acknowledgement refused")
	// ErrUnroutable says that the broker had no place for a published message.
	ErrUnroutable = errors.New("message was returned as unroutable")
	// ErrClosed says that the consumer was closed or cancelled by this process.
	ErrClosed = errors.New("closed")
)

// Capability is something that a broker can do and a stand-in may not.
type Capability string

// The capabilities that a scenario can ask for in `requires:`.
const (
	Durable Capability = "durable" // confirmed messages survive a kill of the broker process
	Quorum  Capability = "quorum"  // replicated queue types
	Network Capability = "network" // the broker has a network of its own, off which it can be taken
)

// Capabilities lists every capability word, for checking a scenario.
func Capabilities() []Capability { return []Capability{Durable, Quorum, Network} }

// Driver is one broker product. Its methods may be called from several
// goroutines; what they open belongs to one.
type Driver interface {
	// Name is the product: rabbitmq, kafka, rocketmq or pulsar.
	Name() string
	// Scheme is the URL scheme of the product's addresses, such as amqp.
	Scheme() string
	// Keys lists the scenario keys that this product has beside the common
	// ones, dotted: destination.queue, consumer.prefetch, consumer.group.
	Keys() []string
	// Figures lists the numbers that the inspector's State can hold.
	Figures() []string
	// SentWord is the status word of a send that the broker has confirmed.
	SentWord() string
	// Check says what is missing or contradictory in a destination.
	Check(Destination) error
	// Prepare makes the destination and, where that is possible, the group or
	// subscription that reads it; one that is there already and equal is fine.
	Prepare(ctx context.Context, at Address, d Destination) error
	// Remove deletes the destination and what hangs on it; a missing one is fine.
	Remove(ctx context.Context, at Address, d Destination) error
	// OpenProducer connects; a missing destination is ErrNotFound.
	OpenProducer(ctx context.Context, at Address, d Destination, o ProducerOptions) (Producer, error)
	// OpenConsumer connects and subscribes; a missing destination is ErrNotFound.
	OpenConsumer(ctx context.Context, at Address, d Destination, o ConsumerOptions) (Consumer, error)
	// OpenInspector connects to what answers State.
	OpenInspector(ctx context.Context, at Address) (Inspector, error)
	// Probe connects, asks for the broker's version and disconnects.
	Probe(ctx context.Context, at Address) (version string, err error)
}

// Destination is where a scenario's messages go, in the broker's own words.
// Which of the keys a product has is said by Driver.Keys.
type Destination struct {
	// Queue is the RabbitMQ queue, published to through the default exchange.
	Queue string `json:"queue,omitempty" jsonschema:"the queue's name"`
	// QueueType is classic (the default) or quorum.
	QueueType string `json:"queue-type,omitempty" jsonschema:"classic or quorum"`
	// Transient makes the queue one that does not survive a broker restart.
	Transient bool `json:"transient,omitempty" jsonschema:"a queue that does not survive a restart of the broker"`
	// Topic is what Kafka, RocketMQ and Pulsar publish to.
	Topic string `json:"topic,omitempty" jsonschema:"the topic's name"`
	// Partitions is the number of a Kafka topic's partitions; 0 means 1.
	Partitions int `json:"partitions,omitempty" jsonschema:"the number of the topic's partitions; default 1"`

	// Group is who reads a topic: the plain name of the consumer group (Kafka,
	// RocketMQ) or subscription (Pulsar). Empty means Readers' default.
	Group string `json:"-"`
	// Suffix is appended to every name on the wire, so that runs never meet.
	Suffix string `json:"-"`
}

// Name is the destination's plain name, as log lines and reports show it.
func (d Destination) Name() string { return cmp.Or(d.Queue, d.Topic) }

// Readers is the plain name of the group or subscription that reads a topic.
func (d Destination) Readers() string { return cmp.Or(d.Group, d.Topic+"-group") }

// Kind is the broker's own noun for the destination, as a role's last line
// names it.
func (d Destination) Kind() string {
	if d.Topic != "" {
		return "topic"
	}
	return "queue"
}

// OnWire is a name as the broker sees it.
func (d Destination) OnWire(name string) string {
	if d.Suffix == "" {
		return name
	}
	return name + "-mqlab-" + d.Suffix
}

// ProducerOptions are the settings of a producer.
type ProducerOptions struct {
	ClientName string // shown by the broker's own tools
	Transient  bool   // publish messages that need not survive a broker restart
}

// ConsumerOptions are the settings of a consumer.
type ConsumerOptions struct {
	ClientName string        // shown by the broker's own tools
	Consumer   string        // the consumer's name on the broker
	Prefetch   int           // deliveries the broker hands out before an ack; 0 means 1
	Heartbeat  time.Duration // the broker's patience with a silent client; in whole seconds; 0 means the server's default

	// Instance is who this consumer is to the broker when it comes back after a
	// crash: Kafka's group.instance.id (empty: a dynamic member), RocketMQ's
	// instance name.
	Instance string
	// Protocol is Kafka's group.protocol: classic (the default) or consumer, the
	// one of KIP-848.
	Protocol string
	// Session is how long Kafka waits for a silent member; 0 means the client's
	// default, 45 s. In the protocol "consumer" the broker alone decides.
	Session time.Duration
	// Isolation is Kafka's isolation.level: read-uncommitted (the default) or
	// read-committed.
	Isolation string
	// Subscription is Pulsar's subscription type: exclusive (the default),
	// shared, failover or key-shared.
	Subscription string
}

// Message is what is published. Body goes out byte for byte.
type Message struct {
	ID            string // messageId of the envelope
	Key           string // the business key (aggregateId)
	Type          string // eventType
	CorrelationID string
	TraceID       string
	Body          []byte
}

// Receipt says what the broker answered to a send.
type Receipt struct {
	Fields []Field       // where the message is now, in the broker's words
	Took   time.Duration // from the publish to the broker's confirm
}

// Field is one of the broker's own words about a message, under the key that a
// log line shows it with: routingKey, partitionOrQueue, offset, brokerMessageId.
// Names in it are plain ones, without a run's suffix.
type Field struct{ Key, Value string }

// Producer publishes one message after another.
type Producer interface {
	// Send returns when the broker has confirmed the message as stored.
	Send(ctx context.Context, m Message) (Receipt, error)
	// Close is idempotent.
	Close(ctx context.Context) error
}

// Redelivered is what the broker said about an earlier handing-over.
type Redelivered string

// What a broker can say: RabbitMQ has a flag; the others know retries only,
// so that the absence of a mark says nothing about a crash.
const (
	Yes     Redelivered = "true"
	No      Redelivered = "false"
	Unknown Redelivered = "unknown"
)

// Marks are the broker's own words about one delivery.
type Marks struct {
	Redelivered Redelivered
	Attempt     int // 1 + the retries that the broker has counted
	Consumer    string
	Fields      []Field // where the message lay, in the broker's words
}

// Delivery is one handing-over of a message. It belongs to the goroutine that
// received it until it is settled.
type Delivery interface {
	Message() Message
	Marks() Marks
	// Ack returns when the broker has taken the acknowledgement.
	Ack(ctx context.Context) error
	// Nack gives the message back; with requeue it comes again, without it the
	// broker drops it or moves it to its dead-letter destination.
	Nack(ctx context.Context, requeue bool) error
}

// Consumer turns a push or poll client into one delivery at a time.
type Consumer interface {
	// Receive waits for the next delivery. After Cancel or Close it returns
	// ErrClosed, after a broken connection ErrConnectionLost.
	Receive(ctx context.Context) (Delivery, error)
	// Cancel ends the subscription: no new deliveries, those in hand can still
	// be settled.
	Cancel(ctx context.Context) error
	// Close is idempotent and ends a waiting Receive; what was not settled goes
	// back to the broker.
	Close(ctx context.Context) error
}

// State is the broker's own numbers at one instant.
type State struct {
	// Figures by name, as listed by Driver.Figures; nil means that the broker
	// has no such number yet ("none").
	Figures map[string]*int64 `json:"figures"`
	// Left is what the broker still owes the consumers of the destination; 0
	// means drained.
	Left int64 `json:"left"`
	// Idle reports that no consumer is subscribed and nothing waits for an
	// acknowledgement, as far as the broker knows: a consumer that starts now
	// does not race with the end of an earlier one.
	Idle bool `json:"idle"`
	// Took is how long the broker needed to answer: the numbers' greatest age.
	Took time.Duration `json:"took"`
}

// Inspector asks the broker for its numbers.
type Inspector interface {
	// State is fresh: it shows every confirm, ack and close that was answered
	// before the call. A missing destination is ErrNotFound.
	State(ctx context.Context, d Destination) (State, error)
	// Close is idempotent.
	Close() error
}
