package role

import (
	"io"
	"strconv"
	"sync"
	"time"

	"mqlab/brokers"
	"mqlab/labs"
)

// log writes structured lines, one Write each, so that those of several
// goroutines never mix and nothing is lost when the process dies.
type log struct {
	mu     sync.Mutex
	w      io.Writer
	prefix string
	common []labs.Pair
}

func newLog(w io.Writer, role, product, lab string) *log {
	if role == labs.RoleInspectDB {
		role = "inspect"
	}
	return &log{w: w, prefix: role, common: []labs.Pair{{Key: "level", Value: "INFO"},
		{Key: "service", Value: "order-service"}, {Key: "product", Value: product}, {Key: "lab", Value: lab}}}
}

// line writes the pairs that have a value, then the status.
func (l *log) line(status string, pairs ...labs.Pair) {
	all := append([]labs.Pair{{Key: "timestamp", Value: timestamp()}}, l.common...)
	l.write(l.prefix, all, append(pairs, labs.Pair{Key: "status", Value: status}))
}

// gate writes a line about a checkpoint.
func (l *log) gate(status, checkpoint, message, token string) {
	l.write("replay-gate", nil, []labs.Pair{{Key: "timestamp", Value: timestamp()}, {Key: "checkpoint", Value: checkpoint},
		{Key: "messageId", Value: message}, {Key: "token", Value: token}, {Key: "status", Value: status}})
}

func (l *log) write(prefix string, pairs, more []labs.Pair) {
	for _, p := range more {
		if p.Value != "" {
			pairs = append(pairs, p)
		}
	}
	text := labs.Line{Prefix: prefix, Pairs: pairs}.String() + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.w, text) //nolint:errcheck // a reader that is gone is noticed at the gate
}

func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z") }

// words are the broker's own words about a message.
func words(fields []brokers.Field) []labs.Pair {
	var pairs []labs.Pair
	for _, f := range fields {
		pairs = append(pairs, labs.Pair(f))
	}
	return pairs
}

func number(key string, n int64) labs.Pair {
	return labs.Pair{Key: key, Value: strconv.FormatInt(n, 10)}
}
