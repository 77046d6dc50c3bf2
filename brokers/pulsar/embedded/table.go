package embedded

import "fmt"

// The commands of the protocol, by the number of their type, which is also the
// number of the field that holds them (PulsarApi.proto, BaseCommand).
const (
	cmdConnect             = 2
	cmdConnected           = 3
	cmdSubscribe           = 4
	cmdProducer            = 5
	cmdSend                = 6
	cmdSendReceipt         = 7
	cmdSendError           = 8
	cmdMessage             = 9
	cmdAck                 = 10
	cmdFlow                = 11
	cmdUnsubscribe         = 12
	cmdSuccess             = 13
	cmdError               = 14
	cmdCloseProducer       = 15
	cmdCloseConsumer       = 16
	cmdProducerSuccess     = 17
	cmdPing                = 18
	cmdPong                = 19
	cmdRedeliver           = 20
	cmdPartitions          = 21
	cmdPartitionsResponse  = 22
	cmdLookup              = 23
	cmdLookupResponse      = 24
	cmdActiveConsumer      = 31
	cmdAckResponse         = 38
	firstUnknown           = 69 // one above TOPIC_MIGRATED
	defaultRequestIDNumber = 1  // the field of the request id in most commands
)

// unservedCommand is a command that Pulsar serves and this server refuses with
// NotAllowedError.
type unservedCommand struct {
	Name      string
	requestID int // the number of the field that holds the request's id
}

// unserved lists the commands, by number.
func unserved() map[int]unservedCommand {
	return map[int]unservedCommand{
		25: {"CONSUMER_STATS", 1},
		28: {"SEEK", 2},
		29: {"GET_LAST_MESSAGE_ID", 2},
		32: {"GET_TOPICS_OF_NAMESPACE", 1},
		34: {"GET_SCHEMA", 1},
		39: {"GET_OR_CREATE_SCHEMA", 1},
		50: {"NEW_TXN", 1},
		52: {"ADD_PARTITION_TO_TXN", 1},
		54: {"ADD_SUBSCRIPTION_TO_TXN", 1},
		56: {"END_TXN", 1},
		62: {"TC_CLIENT_CONNECT_REQUEST", 1},
		64: {"WATCH_TOPIC_LIST", 1},
		67: {"WATCH_TOPIC_LIST_CLOSE", 1},
	}
}

// feature is a part of a served command that this server refuses.
type feature string

// The refused features.
const (
	featureReader       feature = "subscriptions that are not durable (readers)"
	featureSchema       feature = "schemas"
	featureCompacted    feature = "reading of a compacted topic"
	featureSticky       feature = "key-shared subscriptions with hash ranges of the client"
	featureAccessMode   feature = "producer access modes other than shared"
	featureTransactions feature = "transactions"
	featureBatchIndex   feature = "acknowledgement of a part of a batch"
	featureDelay        feature = "delayed delivery"
	featureChunks       feature = "chunked messages"
)

// NotServed lists what the server refuses although Pulsar serves it: commands
// and features with NotAllowedError, the rest of the admin API with HTTP 501.
// Topics that nobody has created are refused with TopicNotFound, as Pulsar does
// with allowAutoTopicCreation=false.
func NotServed() []string {
	var list []string
	for n := range firstUnknown {
		if c, ok := unserved()[n]; ok {
			list = append(list, fmt.Sprintf("command %d %s", n, c.Name))
		}
	}
	for _, f := range []feature{featureReader, featureSchema, featureCompacted, featureSticky, featureAccessMode,
		featureTransactions, featureBatchIndex, featureDelay, featureChunks} {
		list = append(list, string(f))
	}
	return append(list, "topics that nobody has created", "the admin API but for "+servedAdmin)
}

// servedAdmin is what the admin API has.
const servedAdmin = "brokers/version, namespaces/T/N, and below persistent/T/N/TOPIC: PUT, DELETE, GET partitions, subscriptions and stats, PUT subscription/S"
