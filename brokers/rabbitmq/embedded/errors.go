package embedded

import (
	"errors"
	"fmt"
)

// Reply codes of AMQP 0-9-1.
const (
	codeNoRoute            = 312
	codeConnectionForced   = 320
	codeAccessRefused      = 403
	codeNotFound           = 404
	codeResourceLocked     = 405
	codePreconditionFailed = 406
	codeFrameError         = 501
	codeSyntaxError        = 502
	codeCommandInvalid     = 503
	codeChannelError       = 504
	codeUnexpectedFrame    = 505
	codeNotAllowed         = 530
	codeNotImplemented     = 540
)

// amqpError is a channel exception, or a connection exception when hard.
type amqpError struct {
	code   uint16
	text   string
	method method // the method that failed, 0 when there is none
	desync bool   // the end of the frame is not known, so nothing more can be read
}

// Error gives the code and the text.
func (e *amqpError) Error() string { return fmt.Sprintf("%d %s", e.code, e.text) }

// hard says whether the whole connection must end.
func (e *amqpError) hard() bool {
	return e.code >= 500 || e.code == codeConnectionForced
}

func codeName(code int) string {
	switch code {
	case codeConnectionForced:
		return "CONNECTION_FORCED"
	case codeAccessRefused:
		return "ACCESS_REFUSED"
	case codeNotFound:
		return "NOT_FOUND"
	case codeResourceLocked:
		return "RESOURCE_LOCKED"
	case codePreconditionFailed:
		return "PRECONDITION_FAILED"
	case codeFrameError:
		return "FRAME_ERROR"
	case codeSyntaxError:
		return "SYNTAX_ERROR"
	case codeCommandInvalid:
		return "COMMAND_INVALID"
	case codeChannelError:
		return "CHANNEL_ERROR"
	case codeUnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case codeNotAllowed:
		return "NOT_ALLOWED"
	default:
		return "NOT_IMPLEMENTED"
	}
}

// failure words an error as RabbitMQ does: name, dash, explanation, at most
// 255 octets with an ellipsis.
func failure(code int, format string, args ...any) *amqpError {
	text := codeName(code) + " - " + fmt.Sprintf(format, args...)
	if len(text) > 255 {
		text = text[:252] + "..."
	}
	return &amqpError{code: uint16(code), text: text}
}

func notImplemented(format string, args ...any) *amqpError {
	return failure(codeNotImplemented, format+" is not served by mqlab embedded", args...)
}

func accessRefused(format string, args ...any) *amqpError {
	return failure(codeAccessRefused, format, args...)
}

func preconditionFailed(format string, args ...any) *amqpError {
	return failure(codePreconditionFailed, format, args...)
}

func notFound(kind, name string) *amqpError {
	return failure(codeNotFound, "no %s", resource(kind, name))
}

// resource names a queue or exchange as RabbitMQ's texts do.
func resource(kind, name string) string { return kind + " '" + name + "' in vhost '/'" }

// asAMQP makes a protocol error of whatever a handler returned and notes the
// method that failed.
func asAMQP(err error, m method) *amqpError {
	var ae *amqpError
	if !errors.As(err, &ae) {
		ae = decodeFailure(err)
	}
	if ae.method == 0 {
		ae.method = m
	}
	return ae
}

// decodeFailure: arguments of the wrong length are a frame error on RabbitMQ
// too; a bad table makes it crash with INTERNAL_ERROR, here it is a syntax error.
func decodeFailure(err error) *amqpError {
	if errors.Is(err, errTruncated) || errors.Is(err, errLeftover) {
		return failure(codeFrameError, "cannot decode: %v", err)
	}
	return failure(codeSyntaxError, "%v", err)
}
