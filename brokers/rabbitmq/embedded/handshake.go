package embedded

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const protocolHeader = "AMQP\x00\x00\x09\x01"

var errProtocol = errors.New("not AMQP 0-9-1")

// greet checks the protocol header and answers with connection.start.
func (c *conn) greet() error {
	head, err := c.frames.r.Peek(len(protocolHeader))
	if err != nil {
		return err
	}
	if string(head) != protocolHeader {
		c.out.add(func(out []byte) []byte { return append(out, protocolHeader...) })
		return errProtocol
	}
	c.frames.held = len(protocolHeader)
	c.send(connectionStart, func(out []byte) []byte {
		out = appendTable(append(out, 0, 9), serverProperties())
		return appendLong(appendLong(out, "PLAIN AMQPLAIN"), "en_US")
	})
	return nil
}

// serverProperties lists only the capabilities that are served.
func serverProperties() table {
	return table{
		{"capabilities", table{
			{"publisher_confirms", true},
			{"exchange_exchange_bindings", false},
			{"basic.nack", true},
			{"consumer_cancel_notify", true},
			{"connection.blocked", false},
			{"authentication_failure_close", true},
			{"per_consumer_qos", true},
		}},
		{"cluster_name", nodeName},
		{"information", "a stand-in for labs, not a RabbitMQ node"},
		{"platform", "Go"},
		{"product", product},
		{"version", version},
	}
}

// method takes a method on channel 0.
func (c *conn) method(payload []byte) error {
	d := &decoder{b: payload}
	m := method(d.uint32())
	if d.err != nil {
		return asAMQP(d.err, 0)
	}
	if err := c.handshake(m, d); err != nil {
		if errors.Is(err, errDone) || errors.Is(err, errRefused) {
			return err
		}
		return asAMQP(err, m)
	}
	return nil
}

func (c *conn) handshake(m method, d *decoder) error {
	switch {
	case m == connectionClose && c.stage >= stageOpening:
		return c.closeByClient(d)
	case m == connectionCloseOk && c.forced.Load():
		return errDone
	case m == connectionStartOk && c.stage == stageStarting:
		return c.startOk(d)
	case m == connectionTuneOk && c.stage == stageTuning:
		return c.tuneOk(d)
	case m == connectionOpen && c.stage == stageOpening:
		return c.open(d)
	}
	if name, ok := notServedName(m); ok {
		return notImplemented("%s", name)
	}
	if m.class() != classConnection {
		return failure(codeCommandInvalid, "method %d.%d on channel 0", m.class(), m.index())
	}
	return failure(codeChannelError, "unexpected method in connection state %s", stageName(c.stage))
}

func stageName(stage int) string {
	return []string{"starting", "tuning", "opening", "running", "closing"}[stage]
}

// closeByClient gives everything back before it says that all is done.
func (c *conn) closeByClient(d *decoder) error {
	d.uint16()
	d.short()
	d.uint32()
	if err := d.finish(); err != nil {
		return err
	}
	_ = c.b.do(c, func() error {
		if !c.ending {
			c.shut()
		}
		return nil
	})
	c.send(connectionCloseOk, nil)
	return errDone
}

var errRefused = errors.New("login refused")

func (c *conn) startOk(d *decoder) error {
	c.properties = d.table()
	mechanism, response := d.short(), d.longBytes()
	d.short() // locale
	if err := d.finish(); err != nil {
		return err
	}
	v, _ := c.properties.get("capabilities")
	capabilities, _ := v.(table)
	c.cancelNotify = capabilities.flag("consumer_cancel_notify")
	c.failureClose = capabilities.flag("authentication_failure_close")
	ok, err := c.login(mechanism, response)
	if err != nil {
		return err
	}
	if !ok {
		return c.refuse(mechanism)
	}
	c.stage = stageTuning
	c.send(connectionTune, func(out []byte) []byte {
		out = binary.BigEndian.AppendUint16(out, maxChannels)
		out = binary.BigEndian.AppendUint32(out, frameMaxSize)
		return binary.BigEndian.AppendUint16(out, heartbeatSeconds)
	})
	return nil
}

// refuse: only a client that says it understands is told, any other is cut.
// RabbitMQ lets both wait for three seconds, which would help nobody here.
func (c *conn) refuse(mechanism string) error {
	c.logf("login refused")
	if c.failureClose {
		return accessRefused("Login was refused using authentication mechanism %s. For details see the broker logfile.", mechanism)
	}
	return errRefused
}

func (c *conn) login(mechanism string, response []byte) (bool, error) {
	var user, password string
	switch mechanism {
	case "PLAIN":
		parts := bytes.SplitN(response, []byte{0}, 3)
		if len(parts) != 3 || len(parts[0]) != 0 || bytes.IndexByte(parts[2], 0) >= 0 {
			return false, failure(codeSyntaxError, "PLAIN response invalid")
		}
		user, password = string(parts[1]), string(parts[2])
	case "AMQPLAIN":
		d := &decoder{b: appendLong(nil, string(response))}
		login := d.table()
		if d.err != nil {
			return false, d.err
		}
		var okUser, okPassword bool
		user, okUser = login.text("LOGIN")
		password, okPassword = login.text("PASSWORD")
		if !okUser || !okPassword {
			return false, failure(codeSyntaxError, "AMQPLAIN auth info is missing LOGIN or PASSWORD field")
		}
	default:
		return false, failure(codeCommandInvalid, "unknown authentication mechanism '%s'", mechanism)
	}
	c.user = user
	return c.s.allowed(user, password), nil
}

// allowed compares in constant time, for the habit of it.
func (s *Server) allowed(user, password string) bool {
	u := subtle.ConstantTimeCompare([]byte(user), []byte(s.user))
	p := subtle.ConstantTimeCompare([]byte(password), []byte(s.password))
	return u&p == 1
}

func (c *conn) tuneOk(d *decoder) error {
	channels, frameMax, heartbeat := int(d.uint16()), int64(d.uint32()), d.uint16()
	if err := d.finish(); err != nil {
		return err
	}
	switch {
	case frameMax != 0 && frameMax < frameMinSize:
		return failure(codeNotAllowed, "negotiated frame_max = %d is lower than the minimum allowed value (%d)", frameMax, frameMinSize)
	case frameMax == 0 || frameMax > frameMaxSize:
		return failure(codeNotAllowed, "negotiated frame_max = %d is higher than the maximum allowed value (%d)", frameMax, frameMaxSize)
	case channels == 0 || channels > maxChannels:
		return failure(codeNotAllowed, "negotiated channel_max = %d%s is higher than the maximum allowed value (%d)", channels, noLimit(channels), maxChannels)
	}
	c.frameMax, c.frames.max, c.channelMax = int(frameMax), int(frameMax), channels
	c.heartbeat = time.Duration(heartbeat) * time.Second
	if heartbeat > 0 {
		c.beat <- c.heartbeat / 2
	}
	c.stage = stageOpening
	return nil
}

func noLimit(channels int) string {
	if channels == 0 {
		return " (no limit)"
	}
	return ""
}

func (c *conn) open(d *decoder) error {
	vhost := d.short()
	d.short()
	d.uint8()
	if err := d.finish(); err != nil {
		return err
	}
	if vhost != "/" {
		return failure(codeNotAllowed, "vhost %s not found", vhost)
	}
	c.stage = stageRunning
	c.silence, c.deadline = 2*c.heartbeat, time.Time{}
	if c.silence == 0 {
		_ = c.nc.SetDeadline(time.Time{}) // fails only if it is closed already
	}
	_ = c.b.do(c, func() error {
		c.opened = true
		return nil
	})
	c.send(connectionOpenOk, func(out []byte) []byte { return append(out, 0) })
	c.logf("open: user %q, name %q, heartbeat %v", c.user, c.givenName(), c.heartbeat)
	return nil
}

// givenName is the name that the client gave itself.
func (c *conn) givenName() string {
	name, _ := c.properties.text("connection_name")
	return fmt.Sprint(name)
}
