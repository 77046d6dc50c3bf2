// Package embedded is a stand-in for RabbitMQ: an AMQP 0-9-1 server in this
// process and the few answers of the management API that mqlab asks for.
//
// It behaves as classic queues of RabbitMQ 3.10 do, as far as a client can
// see: the same messages in the same order with the same redelivered marks,
// the same errors with the same words. The probe test holds it to that: its
// transcript is the same on a real broker. It keeps everything in memory, has
// one vhost, one user, and no alarms.
//
// What RabbitMQ serves and this server does not, it refuses with 540
// NOT_IMPLEMENTED and never passes over in silence:
//
//   - tx.select, tx.commit, tx.rollback
//   - exchange.bind and exchange.unbind, alternate exchanges
//   - quorum queues and streams (x-queue-type)
//   - x-expires, x-max-priority, x-single-active-consumer, and x-overflow
//     other than drop-head
//   - consumer arguments x-priority and x-credit
//   - direct reply-to, access.request, connection.update-secret
//   - exchange types other than direct, fanout, topic and headers are
//     unknown (503), vhosts other than / not found (530), as on RabbitMQ
//
// As RabbitMQ itself does, it refuses basic.publish with immediate,
// basic.qos with a prefetch size, basic.recover without requeue and
// channel.flow with active=false.
//
// Knowingly different: no consumer timeout; confirms come one by one and only
// after the message is in its queue; a wrong password is answered at once
// instead of after three seconds; x-queue-mode, x-queue-version and
// x-queue-master-locator are accepted and make no difference; persistence is
// accepted and means nothing, since nothing outlives the server.
package embedded

// NotServed lists what the server refuses with 540 although RabbitMQ serves
// it, one feature an entry. The package comment says the same in prose.
func NotServed() []string {
	return []string{
		"access.request",
		"alternate-exchange",
		"connection.update-secret",
		"consumer argument x-credit",
		"consumer argument x-priority",
		"direct reply-to",
		"exchange.bind",
		"exchange.unbind",
		"tx.commit",
		"tx.rollback",
		"tx.select",
		"x-expires",
		"x-max-priority",
		"x-overflow=reject-publish",
		"x-overflow=reject-publish-dlx",
		"x-queue-type=quorum",
		"x-queue-type=stream",
		"x-single-active-consumer",
	}
}
