package embedded

import (
	"bytes"
	"testing"
)

func TestFrame(t *testing.T) {
	raw := appendCommand(nil, cmdSend, body(nil).number(1, 7).text(9, "x"), []byte("payload"))
	c, err := readCommand(bytes.NewReader(raw))
	if err != nil || c.kind != cmdSend || c.f.number(1, 0) != 7 || c.f.text(9) != "x" || string(c.payload) != "payload" {
		t.Errorf("%+v %v", c, err)
	}
	for n := range raw {
		if _, err := readCommand(bytes.NewReader(raw[:n])); err == nil {
			t.Errorf("%d of %d bytes were taken for a frame", n, len(raw))
		}
	}
}

// FuzzFrame feeds the decoders of everything that a client can send.
func FuzzFrame(f *testing.F) {
	f.Add(appendCommand(nil, cmdConnect, body(nil).text(1, "x").number(4, 20), nil))
	f.Add(appendCommand(nil, cmdSend, body(nil).number(1, 1), message(meta().number(11, 3).text(6, "key"))))
	f.Add(appendCommand(nil, cmdAck, body(nil).number(1, 1).number(2, 1).blob(3, body(nil).number(1, 1).number(2, 1<<60)).number(8, 1), nil))
	f.Add(appendCommand(nil, cmdRedeliver, body(nil).number(1, 1).blob(2, []byte{0xff}), nil))
	f.Add(appendCommand(nil, cmdSubscribe, subscribeBody(2, 2, keyShared), nil))
	f.Add(appendCommand(nil, cmdFlow, body(nil).number(1, 1).number(2, ^uint64(0)), nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b := newBroker("127.0.0.1:1")
		b.create("t")
		c := newConn(b, nil, "")
		c.handle(command{kind: cmdSubscribe, f: mustDecode(t, subscribeBody(1, 1, keyShared))})
		c.handle(command{kind: cmdProducer, f: mustDecode(t, producerBody(1, 1))})
		r := bytes.NewReader(raw)
		for {
			cmd, err := readCommand(r)
			if err != nil {
				break
			}
			c.handle(cmd)
		}
		for _, s := range b.topics["t"].subs {
			if n := s.backlog(); n < 0 || n > int64(s.t.end()) {
				t.Errorf("the backlog is %d of %d", n, s.t.end())
			}
		}
		c.leave()
	})
}

func mustDecode(t *testing.T, b body) fields {
	t.Helper()
	f, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
