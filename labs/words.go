package labs

import (
	"maps"
	"slices"
)

// Words lists every status word that a role may log, with its meaning. An
// assertion over any other word is refused when it is read, because nobody
// would ever log it; a line with any other word makes the judge distrust the run.
func Words() map[string]string {
	return map[string]string{
		"confirmed":          "the broker has confirmed a send (RabbitMQ)",
		"produced":           "the broker has confirmed a send (Kafka, RocketMQ, Pulsar)",
		"returned":           "the broker had no place for a message",
		"received":           "the role took a delivery",
		"business_committed": "the business row is durable",
		"duplicate_skipped":  "the design saw that this work was done before",
		"redelivered_skipped": "the design skipped a delivery because the broker had marked it " +
			"as redelivered",
		"business_failed": "the handler returned an error; the delivery was given back",
		"ack_refused":     "the broker did not take the acknowledgement",
		"crash_injected":  "the process ends here with os.Exit(137)",
		"cut":             "the process broke its connections to the broker, as it was told to",
		"stopping":        "SIGTERM has come; no new delivery is taken",
		"row":             "one row of a table, as inspect-db read it",
		"snapshot":        "the number of rows, as inspect-db counted them",
		"seeded":          "setup wrote what the design needs to find",
		"prepared":        "setup made the destination",
		"done":            "the role ended in order",
		"failed":          "the role ended with an error",
		"waiting":         "the role stands at a checkpoint",
		"released":        "the role was let go from a checkpoint",
	}
}

// Keys lists every key that a line may have, in no particular order.
func Keys() []string {
	return []string{
		"timestamp", "level", "service", "product", "lab",
		"messageId", "eventType", "schemaVersion", "aggregateId", "traceId", "correlationId",
		"destination", "routingKey", "partitionOrQueue", "offset", "brokerMessageId", "consumerGroup", "subscription", "consumer", "attempt", "redelivered", "affected",
		"table", "customerId", "amountCents", "currency", "state",
		"queue", "topic", "received", "confirmed", "produced", "business_rows", "processed_rows",
		"durationMs", "connections", "errorType", "error", "checkpoint", "token", "status",
	}
}

// WordNames lists the status words in alphabetical order.
func WordNames() []string { return slices.Sorted(maps.Keys(Words())) }

// WordRoles says which roles log a status word. An assertion that looks for a
// word in the steps of other roles could never be about anything.
func WordRoles() map[string][]string {
	consumer, all := []string{RoleConsumer}, Roles()
	gated := []string{RoleProducer, RoleConsumer}
	roles := map[string][]string{
		"confirmed": {RoleProducer}, "produced": {RoleProducer}, "returned": {RoleProducer},
		"row": {RoleInspectDB}, "snapshot": {RoleInspectDB},
		"seeded": {RoleSetup}, "prepared": {RoleSetup},
		"cut": gated, "crash_injected": gated, "waiting": gated, "released": gated, "done": gated, "failed": all,
	}
	for _, w := range WordNames() {
		if roles[w] == nil {
			roles[w] = consumer
		}
	}
	return roles
}
