// Package labs holds the scenarios and runs them: the model and its strict
// decoding, the catalogue, the runner that starts the roles, opens and closes
// the gate and asks the broker for its numbers, and the evidence that a run
// leaves behind.
//
// The package knows no broker and no provider: cmd/mqlab passes it a
// brokers.Driver and a brokers.Control.
package labs
