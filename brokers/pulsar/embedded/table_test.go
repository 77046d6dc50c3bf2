package embedded

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Every command of the table is refused, and the connection goes on.
func TestUnservedCommands(t *testing.T) {
	r := enter(t)
	for kind, u := range unserved() {
		r.send(kind, body(nil).number(protowire.Number(u.requestID), 77), nil)
		r.refused(u.Name, 77, codeNotAllowed)
		if !slices.ContainsFunc(NotServed(), func(s string) bool { return strings.Contains(s, u.Name) }) {
			t.Errorf("%s is not listed", u.Name)
		}
	}
}

// Every feature of the table is refused.
func TestUnservedFeatures(t *testing.T) {
	refusals := map[feature]func(*raw){
		featureReader: func(r *raw) {
			r.send(cmdSubscribe, subscribeBody(9, 1, exclusive).number(8, 0), nil)
			r.refused("reader", 1, codeNotAllowed)
		},
		featureCompacted: func(r *raw) {
			r.send(cmdSubscribe, subscribeBody(9, 1, exclusive).number(11, 1), nil)
			r.refused("compacted", 1, codeNotAllowed)
		},
		featureSchema: func(r *raw) {
			r.send(cmdSubscribe, subscribeBody(9, 1, exclusive).blob(12, body(nil).text(1, "s")), nil)
			r.refused("a consumer's schema", 1, codeNotAllowed)
			r.send(cmdProducer, producerBody(9, 2).blob(7, body(nil).text(1, "s")), nil)
			r.refused("a producer's schema", 2, codeNotAllowed)
		},
		featureSticky: func(r *raw) {
			r.send(cmdSubscribe, subscribeBody(9, 1, keyShared).blob(17, body(nil).number(1, 1)), nil)
			r.refused("hash ranges", 1, codeNotAllowed)
		},
		featureAccessMode: func(r *raw) {
			r.send(cmdProducer, producerBody(9, 1).number(10, 1), nil)
			r.refused("access mode", 1, codeNotAllowed)
		},
		featureTransactions: func(r *raw) { r.sendRefused(body(nil).number(4, 1), meta()) },
		featureDelay:        func(r *raw) { r.sendRefused(nil, meta().number(19, 1)) },
		featureChunks:       func(r *raw) { r.sendRefused(nil, meta().number(27, 2)) },
		featureBatchIndex: func(r *raw) {
			r.send(cmdSubscribe, subscribeBody(1, 1, shared), nil)
			r.next()
			id := body(nil).number(1, 1).number(2, 0).number(5, 1)
			r.send(cmdAck, body(nil).number(1, 1).number(2, 0).blob(3, id).number(8, 5), nil)
			if c := r.next(); c.kind != cmdAckResponse || c.f.number(4, 0) != codeNotAllowed {
				r.Errorf("got %+v", c)
			}
		},
	}
	for _, name := range NotServed() {
		if strings.HasPrefix(name, "command ") || strings.HasPrefix(name, "topics that") || strings.HasPrefix(name, "the admin") {
			continue // the other tests
		}
		t.Run(name, func(t *testing.T) {
			try := refusals[feature(name)]
			if try == nil {
				t.Fatal("nothing tries it")
			}
			try(enter(t))
		})
	}
}

// sendRefused sends a message on a new producer and reads the refusal.
func (r *raw) sendRefused(extra, meta body) {
	r.Helper()
	r.send(cmdProducer, producerBody(1, 1), nil)
	if c := r.next(); c.kind != cmdProducerSuccess {
		r.Fatalf("got command %d", c.kind)
	}
	r.send(cmdSend, append(body(nil).number(1, 1).number(2, 3), extra...), message(meta))
	if c := r.next(); c.kind != cmdSendError || c.f.number(2, 0) != 3 || c.f.number(3, 0) != codeNotAllowed {
		r.Errorf("got %+v", c)
	}
}

func TestMissingTopicIsNotMade(t *testing.T) {
	r := enter(t)
	r.send(cmdProducer, body(nil).text(1, "persistent://public/default/nope").number(2, 1).number(3, 4), nil)
	r.refused("producer", 4, codeTopicNotFound)
	r.send(cmdSubscribe, body(nil).text(1, "persistent://public/default/nope").text(2, "s").number(3, 0).number(4, 1).number(5, 6), nil)
	r.refused("consumer", 6, codeTopicNotFound)
	if status, _ := r.ask(http.MethodGet, "persistent/public/default/nope/stats"); status != http.StatusNotFound {
		t.Errorf("the topic is there: HTTP %d", status)
	}
}

func TestUnservedAdmin(t *testing.T) {
	r := enter(t)
	for path, want := range map[string]int{
		"GET clusters": http.StatusNotImplemented,
		"PUT persistent/public/default/t/partitions":                http.StatusNotImplemented,
		"POST persistent/public/default/t/unload":                   http.StatusNotImplemented,
		"GET persistent/public/default/t/internalStats":             http.StatusNotImplemented,
		"GET namespaces/public/nope":                                http.StatusNotFound,
		"PUT persistent/public/nope/t":                              http.StatusNotFound,
		"PUT persistent/public/default/t":                           http.StatusConflict,
		"DELETE persistent/public/default/t2":                       http.StatusNotFound,
		"PUT persistent/public/default/t2/subscription/s":           http.StatusNotFound,
		"PUT persistent/public/default/t/subscription/s":            http.StatusNoContent,
		"GET persistent/public/default/t/partitions?x=y":            http.StatusOK,
		"GET persistent/public/default/t/subscriptions":             http.StatusOK,
		"PATCH persistent/public/default/t":                         http.StatusNotImplemented,
		"DELETE persistent/public/default/t/subscription/s?force=1": http.StatusNotImplemented,
	} {
		method, rest, _ := strings.Cut(path, " ")
		if status, answer := r.ask(method, rest); status != want {
			t.Errorf("%s: HTTP %d %s, want %d", path, status, answer, want)
		}
	}
}
