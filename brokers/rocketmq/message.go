package rocketmq

import (
	"net/url"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

// The properties that carry what RocketMQ has no field for.
const (
	propID          = "messageId"
	propType        = "eventType"
	propCorrelation = "correlationId"
	propTrace       = "traceId"
	propNoBody      = "emptyBody"
)

// toWire makes the client's message. RocketMQ separates properties by \x01 and
// \x02 and keys by spaces, so their text is percent-encoded; a property without
// text is left out, and comes back as "". A broker refuses a message without a
// body, so an empty one goes out as one zero byte and a mark.
func toWire(topic string, m brokers.Message) *primitive.Message {
	w := primitive.NewMessage(topic, m.Body)
	if len(m.Body) == 0 {
		w.Body = []byte{0}
		w.WithProperty(propNoBody, "true")
	}
	for name, text := range map[string]string{primitive.PropertyKeys: m.Key, propID: m.ID, propType: m.Type, propCorrelation: m.CorrelationID, propTrace: m.TraceID} {
		w.WithProperty(name, url.PathEscape(text))
	}
	return w
}

// fromWire undoes toWire. What is not encoded was not written by this driver
// and is taken as it is.
func fromWire(w *primitive.MessageExt) brokers.Message {
	text := func(name string) string {
		escaped := w.GetProperty(name)
		if plain, err := url.PathUnescape(escaped); err == nil {
			return plain
		}
		return escaped
	}
	m := brokers.Message{ID: text(propID), Key: text(primitive.PropertyKeys), Type: text(propType),
		CorrelationID: text(propCorrelation), TraceID: text(propTrace), Body: w.Body}
	if w.GetProperty(propNoBody) != "" {
		m.Body = []byte{}
	}
	return m
}
