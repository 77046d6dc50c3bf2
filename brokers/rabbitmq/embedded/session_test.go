package embedded

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// TestReturnBeforeConfirm looks at the order on the wire.
func TestReturnBeforeConfirm(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	c.send(1, confirmSelect, 0)
	c.expect(confirmSelectOk)
	c.write(publishBytes("nowhere", 1, []byte("body")))
	if d := c.expect(basicReturn); d.uint16() != codeNoRoute || d.short() != "NO_ROUTE" {
		t.Error("not returned as it should be")
	}
	if body := c.expectContent(); string(body) != "body" {
		t.Errorf("%q", body)
	}
	if d := c.expect(basicAck); d.uint64() != 1 || d.uint8() != 0 {
		t.Error("not confirmed as it should be")
	}
}

// TestAnswerBeforeDelivery: consume-ok and recover-ok come before what they cause.
func TestAnswerBeforeDelivery(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	c.send(1, queueDeclare, declareArgs("q")...)
	c.expect(queueDeclareOk)
	c.write(publishBytes("q", 0, nil))
	c.send(1, basicConsume, consumeArgs("q", "tag", 0)...)
	c.expect(basicConsumeOk)
	c.expect(basicDeliver)
	c.expectContent()
	c.send(1, basicRecover, 1)
	c.expect(basicRecoverOk)
	d := c.expect(basicDeliver)
	if tag, n, redelivered := d.short(), d.uint64(), d.uint8(); tag != "tag" || n != 2 || redelivered != 1 {
		t.Error(tag, n, redelivered)
	}
}

func TestNoWait(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	c.send(1, queueDeclare, append(appendShort([]byte{0, 0}, "q"), 16, 0, 0, 0, 0)...)
	c.send(1, queueBind, append(appendShort(appendShort(appendShort([]byte{0, 0}, "q"), "amq.fanout"), ""), 1, 0, 0, 0, 0)...)
	c.send(1, confirmSelect, 1)
	c.send(1, basicConsume, consumeArgs("", "tag", 8)...) // the queue declared last
	c.send(1, basicCancel, append(appendShort(nil, "tag"), 1)...)
	c.send(1, queuePurge, append(appendShort([]byte{0, 0}, "q"), 1)...)
	c.send(1, queueDelete, append(appendShort([]byte{0, 0}, "q"), 4)...)
	c.send(1, basicQos, 0, 0, 0, 0, 0, 1, 0)
	c.expect(basicQosOk)
}

// TestChannelNumberIsFreeAgain after either side has closed the channel.
func TestChannelNumberIsFreeAgain(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	c.send(1, channelClose, 0, 200, 0, 0, 0, 0, 0)
	c.expect(channelCloseOk)
	c.send(1, channelOpen, 0)
	c.expect(channelOpenOk)
	c.send(1, basicAck, 0, 0, 0, 0, 0, 0, 0, 9, 0)
	c.expectClose(channelClose, codePreconditionFailed)
	c.write(publishBytes("q", 0, []byte("thrown away"))) // sent before the client has read of the end
	c.send(1, channelCloseOk)
	c.send(1, channelOpen, 0)
	c.expect(channelOpenOk)
}

func TestChannelMax(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	for id := uint16(2); id <= maxChannels; id++ {
		c.send(id, channelOpen, 0)
		c.expect(channelOpenOk)
	}
	c.send(maxChannels+1, channelOpen, 0)
	want := "NOT_ALLOWED - number of channels opened (2047) has reached the negotiated channel_max (2047)"
	if text := c.expectClose(connectionClose, codeNotAllowed); text != want {
		t.Error(text)
	}
}

// TestHeartbeats: they come unasked, and a silent client is cut after two intervals.
func TestHeartbeats(t *testing.T) {
	c := connect(t, openServer(t)).open(1)
	start := time.Now()
	beats := 0
	for {
		f, err := c.frame()
		if err != nil {
			break
		}
		if f.kind == frameHeartbeat {
			beats++
		}
	}
	if took := time.Since(start); beats < 3 || took < 2*time.Second || took > 4*time.Second {
		t.Errorf("%d heartbeats, cut after %v", beats, took)
	}
}

// TestTooLargeMessage is refused by its header, before anything is allocated.
func TestTooLargeMessage(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	c.send(1, basicPublish, 0, 0, 0, 0, 0)
	b := appendFrameHead(nil, frameHeader, 1, 14)
	c.write(append(b, 0, 60, 0, 0, 0, 0, 0, 0, 0x7F, 0, 0, 0, 0, 0, frameEnd))
	c.expectClose(channelClose, codePreconditionFailed)
}

// TestClientThatDoesNotRead neither holds up others nor piles up memory.
func TestClientThatDoesNotRead(t *testing.T) {
	s := openServer(t)
	deaf := connect(t, s).open(0)
	deaf.send(1, queueDeclare, declareArgs("q")...)
	deaf.expect(queueDeclareOk)
	deaf.send(1, basicConsume, consumeArgs("q", "tag", 0)...)
	deaf.expect(basicConsumeOk)

	c := connect(t, s).open(0)
	c.send(1, confirmSelect, 0)
	c.expect(confirmSelectOk)
	body := bytes.Repeat([]byte("x"), 100_000)
	const n = 400 // 40 MB, more than the sockets hold
	for range n {
		c.write(publishBytes("q", 0, body))
		c.expect(basicAck)
	}
	ready, waiting := 0, 0
	s.view(func() {
		ready = s.b.queues["q"].ready.len()
		for conn := range s.b.conns {
			conn.out.mu.Lock()
			waiting = max(waiting, len(conn.out.buf)+conn.out.inFlight)
			conn.out.mu.Unlock()
		}
	})
	if ready == 0 || waiting > 2*outboxHigh {
		t.Errorf("%d ready, %d octets waiting", ready, waiting)
	}
	for range n { // and when it reads, it gets all
		deaf.expect(basicDeliver)
		deaf.expectContent()
	}
}

// TestClientThatAsksAndDoesNotRead is not read from any more.
func TestClientThatAsksAndDoesNotRead(t *testing.T) {
	s := openServer(t)
	c := connect(t, s).open(0)
	c.send(1, queueDeclare, declareArgs("q")...)
	c.expect(queueDeclareOk)
	body := bytes.Repeat([]byte("x"), 1_000_000)
	const n = 60
	for range n {
		c.write(publishBytes("q", 0, body))
	}
	get := rawMethod(1, basicGet, append(appendShort([]byte{0, 0}, "q"), 1)...)
	c.write(bytes.Repeat(get, n))
	for range n {
		c.expect(basicGetOk)
		if got := c.expectContent(); len(got) != len(body) {
			t.Fatal(len(got))
		}
		s.view(func() {
			for conn := range s.b.conns {
				conn.out.mu.Lock()
				if waiting := len(conn.out.buf) + conn.out.inFlight; waiting > outboxLimit+2*len(body) {
					t.Errorf("%d octets waiting", waiting)
				}
				conn.out.mu.Unlock()
			}
		})
	}
}

// TestHalfAFrame: an answer does not wait for the rest of the next question.
func TestHalfAFrame(t *testing.T) {
	c := connect(t, openServer(t)).open(0)
	qos := rawMethod(1, basicQos, 0, 0, 0, 0, 0, 1, 0)
	c.write(append(bytes.Clone(qos), qos[:5]...))
	c.expect(basicQosOk)
	c.write(qos[5:])
	c.expect(basicQosOk)
}

// FuzzFrame throws octets at a connection, before or after its handshake: it
// must end, without a panic, and leave nothing behind.
func FuzzFrame(f *testing.F) {
	f.Add(false, []byte(protocolHeader))
	f.Add(false, handshakeBytes(0))
	f.Add(true, publishBytes("q", 1, []byte("body")))
	f.Add(true, bytes.Join([][]byte{
		rawMethod(1, queueDeclare, declareArgs("q")...), rawMethod(1, basicConsume, consumeArgs("q", "t", 0)...),
		publishBytes("q", 0, []byte("b")), rawMethod(1, basicNack, 0, 0, 0, 0, 0, 0, 0, 1, 2), rawMethod(1, basicRecover, 1),
		rawMethod(1, basicAck, 0, 0, 0, 0, 0, 0, 0, 2, 0), rawMethod(1, channelClose, 0, 200, 0, 0, 0, 0, 0),
	}, nil))
	f.Add(true, append(rawMethod(1, queueDeclare, appendTable(append(appendShort([]byte{0, 0}, "q"), 2),
		table{{"x-message-ttl", int32(0)}, {"x-dead-letter-exchange", ""}, {"x-max-length", int32(1)}})...), publishBytes("q", 0, nil)...))
	f.Add(true, []byte{frameBody, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF})
	s, err := Open(f.Context(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, shakeHands bool, data []byte) {
		b := newBroker(s.log)
		one := &Server{b: b, user: "guest", password: "guest", log: s.log}
		client, server := net.Pipe()
		c := newConn(one, server)
		b.conns[c] = struct{}{}
		go func() { _, _ = io.Copy(io.Discard, client) }()
		go func() {
			if shakeHands {
				_, _ = client.Write(handshakeBytes(0))
			}
			_, _ = client.Write(data)
			_ = client.Close()
		}()
		c.serve()
		if len(b.conns) != 0 {
			t.Error("the connection is still known")
		}
		for _, q := range b.queues {
			if q.unacked != 0 || len(q.consumers) != 0 || q.owner != nil {
				t.Errorf("queue %q: %d unacknowledged, %d consumers", q.name, q.unacked, len(q.consumers))
			}
		}
	})
}
