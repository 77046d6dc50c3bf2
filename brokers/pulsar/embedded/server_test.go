package embedded

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOnlyLoopback(t *testing.T) {
	for _, o := range []Options{{Addr: "0.0.0.0:0"}, {AdminAddr: ":0"}} {
		if s, err := Open(t.Context(), o); err == nil {
			_ = s.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	s := open(t, Options{})
	r := dial(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	r.ended()
}

func TestToken(t *testing.T) {
	s := open(t, Options{Token: "secret"})
	for _, b := range []body{
		body(nil).text(1, "x"),
		body(nil).text(1, "x").text(3, "secre").text(5, "token"),
		body(nil).text(1, "x").text(3, "secret").text(5, "basic"),
	} {
		r := dial(t, s)
		r.send(cmdConnect, b, nil)
		r.refused("a wrong token", ^uint64(0), codeAuthentication)
		r.ended()
	}
	r := dial(t, s)
	if status, _ := r.ask(http.MethodGet, "brokers/version"); status != http.StatusUnauthorized {
		t.Errorf("without a token: HTTP %d", status)
	}
	r.send(cmdConnect, body(nil).text(1, "x").text(3, "secret").text(5, "token"), nil)
	if c := r.next(); c.kind != cmdConnected {
		t.Errorf("the right token: command %d", c.kind)
	}
}

func TestNoise(t *testing.T) {
	s := open(t, Options{})
	for name, noise := range map[string]string{
		"http":          "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"ping first":    string(appendCommand(nil, cmdPing, nil, nil)),
		"short frame":   "\x00\x00\x00\x03\x00\x00\x00\x00",
		"long command":  "\x00\x00\x00\x08\x00\x00\x00\x09aaaa",
		"no protobuf":   "\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",
		"unknown":       string(appendCommand(appendCommand(nil, cmdConnect, nil, nil), 60, nil, nil)),
		"far above all": string(appendCommand(appendCommand(nil, cmdConnect, nil, nil), 4000, nil, nil)),
	} {
		r := dial(t, s)
		if _, err := r.nc.Write([]byte(noise)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.ended()
	}
}

// A client that says nothing is cut, and what it held is free.
func TestSilentClient(t *testing.T) {
	r := enter(t)
	r.send(cmdSubscribe, subscribeBody(1, 1, exclusive), nil)
	r.next()
	start := time.Now()
	r.ended()
	if took := time.Since(start); took < keepAlive {
		t.Errorf("cut after %v", took)
	}
	for {
		_, stats := r.ask(http.MethodGet, "persistent/public/default/t/stats")
		if strings.Contains(stats, `"consumers":[]`) {
			return
		}
		if time.Since(start) > 10*time.Second {
			t.Fatal(stats)
		}
	}
}

func TestBrokenChecksum(t *testing.T) {
	r := enter(t)
	r.send(cmdProducer, producerBody(1, 1), nil)
	r.next()
	m := message(meta())
	m[len(m)-1] = 'y'
	r.send(cmdSend, body(nil).number(1, 1).number(2, 0), m)
	if c := r.next(); c.kind != cmdSendError || c.f.number(3, 0) != codeChecksum {
		t.Errorf("got %+v", c)
	}
}

func TestProducerNames(t *testing.T) {
	r := enter(t)
	r.send(cmdProducer, producerBody(1, 1).text(4, "p"), nil)
	if c := r.next(); c.kind != cmdProducerSuccess || c.f.text(2) != "p" {
		t.Fatalf("got %+v", c)
	}
	r.send(cmdProducer, producerBody(2, 2).text(4, "p"), nil)
	r.refused("the same name", 2, codeProducerBusy)
	r.send(cmdCloseProducer, body(nil).number(1, 1).number(2, 3), nil)
	r.next()
	r.send(cmdProducer, producerBody(2, 4).text(4, "p"), nil)
	if c := r.next(); c.kind != cmdProducerSuccess {
		t.Errorf("the name was not free again: %+v", c)
	}
}
