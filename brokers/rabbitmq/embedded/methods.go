package embedded

import "fmt"

// method is a class number and a method number in one.
type method uint32

func (m method) class() uint16 { return uint16(m >> 16) }
func (m method) index() uint16 { return uint16(m) }

const (
	classConnection = 10
	classBasic      = 60
)

const (
	connectionStart   method = 10<<16 | 10
	connectionStartOk method = 10<<16 | 11
	connectionTune    method = 10<<16 | 30
	connectionTuneOk  method = 10<<16 | 31
	connectionOpen    method = 10<<16 | 40
	connectionOpenOk  method = 10<<16 | 41
	connectionClose   method = 10<<16 | 50
	connectionCloseOk method = 10<<16 | 51

	channelOpen    method = 20<<16 | 10
	channelOpenOk  method = 20<<16 | 11
	channelFlow    method = 20<<16 | 20
	channelFlowOk  method = 20<<16 | 21
	channelClose   method = 20<<16 | 40
	channelCloseOk method = 20<<16 | 41

	exchangeDeclare   method = 40<<16 | 10
	exchangeDeclareOk method = 40<<16 | 11
	exchangeDelete    method = 40<<16 | 20
	exchangeDeleteOk  method = 40<<16 | 21

	queueDeclare   method = 50<<16 | 10
	queueDeclareOk method = 50<<16 | 11
	queueBind      method = 50<<16 | 20
	queueBindOk    method = 50<<16 | 21
	queuePurge     method = 50<<16 | 30
	queuePurgeOk   method = 50<<16 | 31
	queueDelete    method = 50<<16 | 40
	queueDeleteOk  method = 50<<16 | 41
	queueUnbind    method = 50<<16 | 50
	queueUnbindOk  method = 50<<16 | 51

	basicQos          method = 60<<16 | 10
	basicQosOk        method = 60<<16 | 11
	basicConsume      method = 60<<16 | 20
	basicConsumeOk    method = 60<<16 | 21
	basicCancel       method = 60<<16 | 30
	basicCancelOk     method = 60<<16 | 31
	basicPublish      method = 60<<16 | 40
	basicReturn       method = 60<<16 | 50
	basicDeliver      method = 60<<16 | 60
	basicGet          method = 60<<16 | 70
	basicGetOk        method = 60<<16 | 71
	basicGetEmpty     method = 60<<16 | 72
	basicAck          method = 60<<16 | 80
	basicReject       method = 60<<16 | 90
	basicRecoverAsync method = 60<<16 | 100
	basicRecover      method = 60<<16 | 110
	basicRecoverOk    method = 60<<16 | 111
	basicNack         method = 60<<16 | 120

	confirmSelect   method = 85<<16 | 10
	confirmSelectOk method = 85<<16 | 11
)

// notServedName knows the methods that are refused with NOT_IMPLEMENTED; any
// other unknown number is COMMAND_INVALID.
func notServedName(m method) (string, bool) {
	switch m {
	case 10<<16 | 70:
		return "connection.update-secret", true
	case 30<<16 | 10:
		return "access.request", true
	case 40<<16 | 30:
		return "exchange.bind", true
	case 40<<16 | 40:
		return "exchange.unbind", true
	case 90<<16 | 10:
		return "tx.select", true
	case 90<<16 | 20:
		return "tx.commit", true
	case 90<<16 | 30:
		return "tx.rollback", true
	}
	return "", false
}

// unserved is the error for a method that no handler takes.
func unserved(m method) error {
	if name, ok := notServedName(m); ok {
		return notImplemented("%s", name)
	}
	return failure(codeCommandInvalid, "unknown method %s", fmt.Sprintf("%d.%d", m.class(), m.index()))
}
