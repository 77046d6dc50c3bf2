package labs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Envelope is what every fixture carries around its payload. Unknown fields are
// ignored, as a consumer must.
type Envelope struct {
	MessageID     string  `json:"messageId"`
	EventType     string  `json:"eventType"`
	SchemaVersion int     `json:"schemaVersion"`
	AggregateID   string  `json:"aggregateId"`
	TraceID       string  `json:"traceId"`
	CorrelationID string  `json:"correlationId"`
	Payload       Payload `json:"payload"`
}

// Payload is the order that a message is about. Fields that a poison message
// lacks are nil.
type Payload struct {
	OrderID    *string  `json:"orderId"`
	CustomerID *string  `json:"customerId"`
	Amount     *float64 `json:"amount"`
	Currency   *string  `json:"currency"`
}

// Order is a payload that passed the business's rules.
type Order struct {
	ID, CustomerID, Currency string
	Cents                    int64
}

// ErrInvalidOrder says that the business refuses a payload; a second try will
// not change that.
var ErrInvalidOrder = errors.New("invalid order")

// ReadEnvelope parses a message body.
func ReadEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("read envelope: %w", err)
	}
	if e.MessageID == "" || e.AggregateID == "" {
		return e, fmt.Errorf("read envelope: messageId and aggregateId must not be empty")
	}
	return e, nil
}

// Order checks the payload: every field there, amount not negative and in whole
// cents.
func (p Payload) Order() (Order, error) {
	if p.OrderID == nil || p.CustomerID == nil || p.Amount == nil || p.Currency == nil {
		return Order{}, fmt.Errorf("%w: a required field is missing", ErrInvalidOrder)
	}
	cents := math.Round(*p.Amount * 100)
	if *p.Amount < 0 || math.Abs(*p.Amount*100-cents) > 1e-6 || cents > math.MaxInt32 {
		return Order{}, fmt.Errorf("%w: amount %v is not a number of cents", ErrInvalidOrder, *p.Amount)
	}
	return Order{ID: *p.OrderID, CustomerID: *p.CustomerID, Currency: *p.Currency, Cents: int64(cents)}, nil
}

// Pairs are the envelope's fields as every line about a message begins.
func (e Envelope) Pairs() []Pair {
	ps := []Pair{{"messageId", e.MessageID}, {"eventType", e.EventType}}
	if e.SchemaVersion > 0 {
		ps = append(ps, Pair{"schemaVersion", fmt.Sprint(e.SchemaVersion)})
	}
	return append(ps, Pair{"aggregateId", e.AggregateID}, Pair{"traceId", e.TraceID}, Pair{"correlationId", e.CorrelationID})
}
