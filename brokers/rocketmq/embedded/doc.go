// Package embedded is a stand-in for a RocketMQ 5.4 name server and broker, for
// the laboratory's own process. It speaks the remoting protocol with JSON headers
// on one loopback port, keeps everything in memory and loses it with the process.
//
// What an unmodified client of the 4.x protocol needs to send, pull, commit, send
// back and share queues behaves as in the real broker, down to its codes; what is
// not there is answered with the protocol's own REQUEST_CODE_NOT_SUPPORTED and
// listed in table.go. Beyond whole requests these are missing: the binary header
// serialization, TLS, transactional and timer messages, filters other than "*"
// and tags (which clients apply themselves), replicas, and topics that are made
// by sending to them.
package embedded
