// Package embedded is a stand-in for Apache Pulsar: a server of the binary
// protocol in this process and the few answers of the admin REST API that mqlab
// asks for.
//
// It behaves as non-partitioned persistent topics of Pulsar 4.2 do, as far as a
// client can see: durable subscriptions of all four types with the same order,
// the same redelivery counts and the same error codes. The driver's conformance
// suite holds it to that: its transcripts are the same on a real broker. It
// keeps everything in memory, has the namespace public/default only, and makes
// no topic by itself.
//
// What Pulsar serves and this server does not, it refuses in the protocol's own
// words and never passes over in silence; table.go lists it.
//
// Knowingly different: key-shared subscriptions spread their keys, and failover
// subscriptions choose their active consumer, by another hash than Pulsar's; an
// active consumer is followed at once (activeConsumerFailoverDelayTimeMillis=0);
// a silent client is cut after 4 s (keepAliveIntervalSeconds=2); there is one
// ledger for each topic, never rolled over; numbers that the driver does not ask
// for are missing in the admin API's answers.
package embedded
