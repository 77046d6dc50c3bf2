package embedded

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// rawClient speaks AMQP octet by octet, also wrongly.
type rawClient struct {
	t    *testing.T
	nc   net.Conn
	fr   *frameReader
	last frame
}

func openServer(t *testing.T) *Server {
	t.Helper()
	s, err := Open(t.Context(), Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// connect does not say a word yet.
func connect(t *testing.T, s *Server) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", s.amqp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	fr := newFrameReader(nc)
	fr.max = frameMaxSize
	return &rawClient{t: t, nc: nc, fr: fr}
}

func (c *rawClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) send(channel uint16, m method, args ...byte) {
	c.t.Helper()
	c.write(rawMethod(channel, m, args...))
}

func rawMethod(channel uint16, m method, args ...byte) []byte {
	return appendMethod(nil, channel, m, func(b []byte) []byte { return append(b, args...) })
}

// frame returns the next frame, heartbeats included.
func (c *rawClient) frame() (frame, error) { return c.fr.next() }

// expect reads a method frame and returns its arguments.
func (c *rawClient) expect(m method) *decoder {
	c.t.Helper()
	f, err := c.frame()
	if err != nil {
		c.t.Fatalf("waiting for %d.%d: %v", m.class(), m.index(), err)
	}
	c.last = f
	d := &decoder{b: f.payload}
	if got := method(d.uint32()); f.kind != frameMethod || got != m {
		c.t.Fatalf("frame %d of method %d.%d instead of %d.%d: %q", f.kind, got.class(), got.index(), m.class(), m.index(), f.payload)
	}
	return d
}

// expectContent skips the header and the body of a message.
func (c *rawClient) expectContent() []byte {
	c.t.Helper()
	f, err := c.frame()
	if err != nil || f.kind != frameHeader {
		c.t.Fatal(f.kind, err)
	}
	var body []byte
	for size := binary.BigEndian.Uint64(f.payload[4:]); uint64(len(body)) < size; {
		if f, err = c.frame(); err != nil || f.kind != frameBody {
			c.t.Fatal(f.kind, err)
		}
		body = append(body, f.payload...)
	}
	return body
}

func (c *rawClient) expectEnd() {
	c.t.Helper()
	if f, err := c.frame(); err == nil {
		c.t.Errorf("a frame of kind %d instead of the end: %q", f.kind, f.payload)
	}
}

// expectClose reads connection.close or channel.close.
func (c *rawClient) expectClose(m method, code uint16) string {
	c.t.Helper()
	d := c.expect(m)
	got, text := d.uint16(), d.short()
	if got != code {
		c.t.Errorf("closed with %d %s, want %d", got, text, code)
	}
	return text
}

func startOkArgs(properties table, mechanism, response string) []byte {
	b := appendShort(appendTable(nil, properties), mechanism)
	return appendShort(appendLong(b, response), "en_US")
}

func tuneOkArgs(channels uint16, frameMax uint32, heartbeat uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, channels)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, frameMax), heartbeat)
}

var allCapabilities = table{{"capabilities", table{{"consumer_cancel_notify", true}, {"authentication_failure_close", true}}}}

// handshakeBytes is all that a client sends until it is open on channel 1.
func handshakeBytes(heartbeat uint16) []byte {
	b := []byte(protocolHeader)
	b = append(b, rawMethod(0, connectionStartOk, startOkArgs(allCapabilities, "PLAIN", "\x00guest\x00guest")...)...)
	b = append(b, rawMethod(0, connectionTuneOk, tuneOkArgs(2047, frameMaxSize, heartbeat)...)...)
	b = append(b, rawMethod(0, connectionOpen, 1, '/', 0, 0)...)
	return append(b, rawMethod(1, channelOpen, 0)...)
}

func (c *rawClient) open(heartbeat uint16) *rawClient {
	c.t.Helper()
	c.write(handshakeBytes(heartbeat))
	for _, m := range []method{connectionStart, connectionTune, connectionOpenOk, channelOpenOk} {
		c.expect(m)
	}
	return c
}

func declareArgs(queue string) []byte {
	return append(appendShort([]byte{0, 0}, queue), 0, 0, 0, 0, 0)
}

// publishBytes publishes to a queue.
func publishBytes(queue string, bits byte, body []byte) []byte {
	b := rawMethod(1, basicPublish, append(appendShort([]byte{0, 0, 0}, queue), bits)...)
	return appendContent(b, 1, []byte{0, 0}, body, frameMaxSize)
}

func consumeArgs(queue, tag string, bits byte) []byte {
	b := appendShort(appendShort([]byte{0, 0}, queue), tag)
	return append(b, bits, 0, 0, 0, 0)
}

func TestProtocolHeader(t *testing.T) {
	for _, hello := range []string{"AMQP\x00\x01\x00\x00", "GET / HTTP/1.1\r\n\r\n", "AMQP\x01\x01\x00\x0a"} {
		c := connect(t, openServer(t))
		c.write([]byte(hello))
		if got, err := io.ReadAll(c.nc); err != nil || string(got) != protocolHeader {
			t.Errorf("%q was answered with %q, %v", hello, got, err)
		}
	}
}

func TestLoginOnTheWire(t *testing.T) {
	amqplain := appendTable(nil, table{{"LOGIN", "guest"}, {"PASSWORD", "wrong"}})[4:]
	for _, c := range []struct {
		what, mechanism, response string
		properties                table
		code                      uint16 // 0 for an end without a word
		text                      string
	}{
		{"wrong", "PLAIN", "\x00guest\x00wrong", allCapabilities, 403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile."},
		{"wrong, a client that is not told", "PLAIN", "\x00guest\x00wrong", table{}, 0, ""},
		{"wrong", "AMQPLAIN", string(amqplain), allCapabilities, 403, "ACCESS_REFUSED - Login was refused using authentication mechanism AMQPLAIN. For details see the broker logfile."},
		{"unknown mechanism", "EXTERNAL", "", allCapabilities, 503, "COMMAND_INVALID - unknown authentication mechanism 'EXTERNAL'"},
		{"malformed", "PLAIN", "guest", allCapabilities, 502, "SYNTAX_ERROR - PLAIN response invalid"},
		{"malformed", "AMQPLAIN", "guest", allCapabilities, 502, "SYNTAX_ERROR - malformed field table"},
	} {
		t.Run(c.what+" "+c.mechanism, func(t *testing.T) {
			cl := connect(t, openServer(t))
			cl.write([]byte(protocolHeader))
			cl.expect(connectionStart)
			cl.send(0, connectionStartOk, startOkArgs(c.properties, c.mechanism, c.response)...)
			if c.code != 0 {
				if text := cl.expectClose(connectionClose, c.code); text != c.text {
					t.Errorf("%s", text)
				}
				cl.send(0, connectionCloseOk)
			}
			cl.expectEnd()
		})
	}
}

func TestTuning(t *testing.T) {
	for _, c := range []struct {
		channels uint16
		frameMax uint32
		want     string
	}{
		{0, frameMaxSize, "NOT_ALLOWED - negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"},
		{2048, frameMaxSize, "NOT_ALLOWED - negotiated channel_max = 2048 is higher than the maximum allowed value (2047)"},
		{1, 0, "NOT_ALLOWED - negotiated frame_max = 0 is higher than the maximum allowed value (131072)"},
		{1, 4095, "NOT_ALLOWED - negotiated frame_max = 4095 is lower than the minimum allowed value (4096)"},
	} {
		cl := connect(t, openServer(t))
		cl.write([]byte(protocolHeader))
		cl.expect(connectionStart)
		cl.send(0, connectionStartOk, startOkArgs(allCapabilities, "PLAIN", "\x00guest\x00guest")...)
		cl.expect(connectionTune)
		cl.send(0, connectionTuneOk, tuneOkArgs(c.channels, c.frameMax, 0)...)
		if text := cl.expectClose(connectionClose, codeNotAllowed); text != c.want {
			t.Error(text)
		}
	}
}

func TestBrokenFrames(t *testing.T) {
	header := func(class, weight byte, size uint64) []byte {
		b := append(appendFrameHead(nil, frameHeader, 1, 14), 0, class, 0, weight)
		return append(binary.BigEndian.AppendUint64(b, size), 0, 0, frameEnd)
	}
	publish := rawMethod(1, basicPublish, 0, 0, 0, 0, 0)
	body := func(n int) []byte {
		return append(append(appendFrameHead(nil, frameBody, 1, n), make([]byte, n)...), frameEnd)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		what string
		send []byte
		code uint16
	}{
		{"unknown kind", []byte{9, 0, 1, 0, 0, 0, 0, frameEnd}, 501},
		{"no end octet", []byte{frameMethod, 0, 1, 0, 0, 0, 1, 7, 7}, 501},
		{"too large", []byte{frameBody, 0, 1, 0, 2, 0, 1}, 501},
		{"enormous", []byte{frameBody, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF}, 501},
		{"no method number", []byte{frameMethod, 0, 1, 0, 0, 0, 2, 0, 60, frameEnd}, 501},
		{"truncated arguments", rawMethod(1, queueDeclare, 0, 0, 9, 'q'), 501},
		{"octets left over", rawMethod(1, basicAck, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0), 501},
		{"malformed table", rawMethod(1, queueDeclare, 0, 0, 1, 'q', 0, 0, 0, 0, 3, 1, 'k', '?'), 502},
		{"heartbeat with a payload", []byte{frameHeartbeat, 0, 0, 0, 0, 0, 1, 0, frameEnd}, 501},
		{"heartbeat on a channel", []byte{frameHeartbeat, 0, 1, 0, 0, 0, 0, frameEnd}, 505},
		{"header without method", header(60, 0, 1), 505},
		{"body without method", body(1), 505},
		{"body without header", join(publish, body(1)), 505},
		{"method instead of header", join(publish, publish), 505},
		{"header instead of body", join(publish, header(60, 0, 1), header(60, 0, 1)), 505},
		{"header of another class", join(publish, header(50, 0, 1)), 505},
		{"weight", join(publish, header(60, 1, 1)), 501},
		{"body too long", join(publish, header(60, 0, 1), body(2)), 501},
		{"malformed properties", join(publish, append(appendFrameHead(nil, frameHeader, 1, 14), 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, frameEnd)), 502},
		{"body on channel 0", []byte{frameBody, 0, 0, 0, 0, 0, 0, frameEnd}, 505},
		{"channel not open", rawMethod(2, basicQos, 0, 0, 0, 0, 0, 1, 0), 504},
		{"header on a channel that is not open", []byte{frameHeader, 0, 2, 0, 0, 0, 0, frameEnd}, 505},
		{"channel opened twice", rawMethod(1, channelOpen, 0), 504},
		{"connection opened twice", rawMethod(0, connectionOpen, 1, '/', 0, 0), 504},
		{"channel method on channel 0", rawMethod(0, basicQos, 0, 0, 0, 0, 0, 1, 0), 503},
		{"connection method on a channel", rawMethod(1, connectionOpen, 1, '/', 0, 0), 503},
		{"unknown method", rawMethod(1, 60<<16|99), 503},
		{"unknown class", rawMethod(1, 77<<16|1), 503},
	} {
		t.Run(c.what, func(t *testing.T) {
			cl := connect(t, openServer(t)).open(0)
			cl.write(c.send)
			t.Log(cl.expectClose(connectionClose, c.code))
			_, _ = cl.nc.Write(rawMethod(0, connectionCloseOk)) // after the worst ones nobody listens
			cl.expectEnd()
		})
	}
}

func TestNotServedMethods(t *testing.T) {
	queue := func(args table) []byte {
		return appendTable(append(appendShort([]byte{0, 0}, "q"), 2), args)
	}
	consume := func(queue string, args table) []byte {
		b := appendShort(appendShort([]byte{0, 0}, queue), "tag")
		return appendTable(append(b, 2), args)
	}
	exchange := appendTable(append(appendShort(appendShort([]byte{0, 0}, "x"), "direct"), 0), table{{"alternate-exchange", "y"}})
	try := map[string][]byte{
		"access.request":               rawMethod(1, 30<<16|10),
		"alternate-exchange":           rawMethod(1, exchangeDeclare, exchange...),
		"connection.update-secret":     rawMethod(0, 10<<16|70),
		"consumer argument x-credit":   rawMethod(1, basicConsume, consume("there", table{{"x-credit", table{}}})...),
		"consumer argument x-priority": rawMethod(1, basicConsume, consume("there", table{{"x-priority", int32(1)}})...),
		"direct reply-to":              rawMethod(1, basicConsume, consume(directReplyTo, nil)...),
		"exchange.bind":                rawMethod(1, 40<<16|30),
		"exchange.unbind":              rawMethod(1, 40<<16|40),
		"tx.select":                    rawMethod(1, 90<<16|10),
		"tx.commit":                    rawMethod(1, 90<<16|20),
		"tx.rollback":                  rawMethod(1, 90<<16|30),
	}
	for arg, v := range map[string]any{"x-expires": int32(1), "x-max-priority": int32(1), "x-single-active-consumer": true} {
		try[arg] = rawMethod(1, queueDeclare, queue(table{{arg, v}})...)
	}
	for _, arg := range [][2]string{{"x-overflow", "reject-publish"}, {"x-overflow", "reject-publish-dlx"}, {"x-queue-type", "quorum"}, {"x-queue-type", "stream"}} {
		try[arg[0]+"="+arg[1]] = rawMethod(1, queueDeclare, queue(table{{arg[0], arg[1]}})...)
	}
	for _, what := range NotServed() {
		t.Run(what, func(t *testing.T) {
			cl := connect(t, openServer(t)).open(0)
			cl.send(1, queueDeclare, declareArgs("there")...)
			cl.expect(queueDeclareOk)
			if try[what] == nil {
				t.Fatal("no way to ask for it")
			}
			cl.write(try[what])
			if text := cl.expectClose(connectionClose, codeNotImplemented); text != "NOT_IMPLEMENTED - "+what+" is not served by mqlab embedded" {
				t.Error(text)
			}
		})
	}
}
