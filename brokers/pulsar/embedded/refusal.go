package embedded

import "fmt"

// The error codes of the protocol (PulsarApi.proto, ServerError).
const (
	codeMetadata       = 1
	codeAuthentication = 3
	codeConsumerBusy   = 5
	codeChecksum       = 9
	codeTopicNotFound  = 11
	codeProducerBusy   = 16
	codeInvalidName    = 17
	codeNotAllowed     = 22
)

// refusal is an error that the client is told.
type refusal struct {
	code uint64
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code uint64, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

func notServed(f feature) *refusal { return refuse(codeNotAllowed, "%s: not served here", f) }
