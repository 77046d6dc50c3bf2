package labs

import (
	"maps"
	"slices"

	"mqlab/gate"
)

// Design is the order in which a consumer claims, writes and acknowledges.
type Design struct {
	Promise string // what it promises, or where it breaks
	Wrong   bool   // it exists to be caught
	Keyed   bool   // it uses consumer.key
	Seeded  bool   // setup writes a WAIT_PAY order per message for it
	// First and Again are the checkpoints of a delivery whose work was never
	// done and of one whose work the design knows to be done. Checkpoints
	// inside the business transaction stand in InTx.
	First, Again []gate.Checkpoint
	InTx         []gate.Checkpoint
}

// Designs is the table of consumer designs. A test walks each one with a
// recording gate and must see exactly these orders.
func Designs() map[string]Design {
	const (
		delivery, claim, commit = gate.AfterDelivery, gate.AfterClaim, gate.BeforeCommit
		committed, ack, acked   = gate.AfterCommit, gate.BeforeAck, gate.AfterAck
	)
	list := func(c ...gate.Checkpoint) []gate.Checkpoint { return c }
	skip := list(delivery, ack, acked)
	plainOrder := list(delivery, commit, committed, ack, acked)
	return map[string]Design{
		"transactional-dedupe": {Promise: "marker and business row in one transaction, then the ack: every redelivery is skipped", Keyed: true,
			First: list(delivery, claim, commit, committed, ack, acked), Again: skip, InTx: list(claim, commit)},
		"state-machine": {Promise: "UPDATE ... WHERE status='WAIT_PAY': a second try changes nothing", Seeded: true,
			First: plainOrder, Again: plainOrder, InTx: list(commit)},
		"no-dedupe": {Promise: "no marker at all: a redelivery writes a second row", Wrong: true,
			First: plainOrder, Again: plainOrder, InTx: list(commit)},
		"memory-dedupe": {Promise: "ids kept in a map: forgotten with the process", Wrong: true, Keyed: true,
			First: plainOrder, Again: skip, InTx: list(commit)},
		"skip-redelivered": {Promise: "skips what the broker marks as redelivered: loses what was never finished", Wrong: true,
			First: plainOrder, Again: skip, InTx: list(commit)},
		"split-transaction": {Promise: "marker committed alone before the work: a crash between them loses the work", Wrong: true, Keyed: true,
			First: list(delivery, claim, commit, committed, ack, acked), Again: skip, InTx: list(commit)},
		"business-first": {Promise: "business row committed before the marker: a crash between them doubles the row", Wrong: true, Keyed: true,
			First: list(delivery, commit, committed, claim, ack, acked), Again: skip, InTx: list(commit)},
		"ack-first": {Promise: "acknowledges before the work: a crash in between loses it", Wrong: true, Keyed: true,
			First: list(delivery, ack, acked, claim, commit, committed), Again: skip, InTx: list(claim, commit)},
		"async-pool": {Promise: "hands over to a pool and acknowledges at once: what is still in the pool is lost", Wrong: true, Keyed: true,
			First: list(delivery, ack, acked, claim, commit, committed), Again: skip, InTx: list(claim, commit)},
	}
}

// DesignNames lists the designs in alphabetical order.
func DesignNames() []string { return slices.Sorted(maps.Keys(Designs())) }

// producerCheckpoints are those of the reference producer.
func producerCheckpoints() []gate.Checkpoint {
	return []gate.Checkpoint{gate.BeforePublish, gate.BeforeConfirm, gate.AfterConfirm}
}
