package embedded

// The codes of answers, of org.apache.rocketmq.remoting.protocol.ResponseCode.
const (
	codeSuccess        = 0
	codeSystemError    = 1
	codeNotSupported   = 3
	codeIllegalMessage = 13
	codeNoPermission   = 16
	codeTopicMissing   = 17
	codePullNotFound   = 19
	codePullMoved      = 21
	codeQueryNotFound  = 22
	codeNotSubscribed  = 24
	codeGroupMissing   = 26
	codeBadParameter   = 29
	codeNotOnline      = 206
)

// notifyMembers is the request that the broker makes of a group's clients.
const notifyMembers = 40

// protocolVersion is the ordinal of RocketMQ 5.4.0 in MQVersion.
const protocolVersion = 493
