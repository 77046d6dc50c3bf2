package embedded

// method runs a method that came in on an open channel, under the lock.
func (ch *channel) method(m method, d *decoder) error {
	switch m.class() {
	case 20:
		return ch.channelMethod(m, d)
	case 40, 50:
		return ch.topologyMethod(m, d)
	case classBasic:
		return ch.basicMethod(m, d)
	}
	if m == confirmSelect {
		return ch.confirmSelect(d)
	}
	return unserved(m)
}

func (ch *channel) channelMethod(m method, d *decoder) error {
	switch m {
	case channelOpen:
		return failure(codeChannelError, "second 'channel.open' seen")
	case channelFlow:
		return ch.flow(d)
	case channelClose:
		ch.shut()
		ch.conn.forget(ch)
		ch.send(channelCloseOk, nil)
		return nil
	case channelCloseOk:
		return failure(codeCommandInvalid, "unexpected 'channel.close-ok'")
	}
	return unserved(m)
}

func (ch *channel) flow(d *decoder) error {
	on := d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	if !on {
		return failure(codeNotImplemented, "active=false")
	}
	ch.send(channelFlowOk, func(out []byte) []byte { return append(out, 1) })
	return nil
}

func (ch *channel) topologyMethod(m method, d *decoder) error {
	switch m {
	case exchangeDeclare:
		return ch.exchangeDeclare(d)
	case exchangeDelete:
		return ch.exchangeDelete(d)
	case queueDeclare:
		return ch.queueDeclare(d)
	case queueBind:
		return ch.queueBind(d)
	case queueUnbind:
		return ch.queueUnbind(d)
	case queuePurge:
		return ch.queuePurge(d)
	case queueDelete:
		return ch.queueDelete(d)
	}
	return unserved(m)
}

func (ch *channel) basicMethod(m method, d *decoder) error {
	switch m {
	case basicQos:
		return ch.basicQos(d)
	case basicConsume:
		return ch.basicConsume(d)
	case basicCancel:
		return ch.basicCancel(d)
	case basicCancelOk:
		return nil // the answer to our own cancel
	case basicGet:
		return ch.basicGet(d)
	case basicAck:
		return ch.basicAck(d)
	case basicReject:
		return ch.basicReject(d)
	case basicNack:
		return ch.basicNack(d)
	case basicRecover:
		return ch.basicRecover(d, true)
	case basicRecoverAsync:
		return ch.basicRecover(d, false)
	}
	return unserved(m)
}

func (ch *channel) confirmSelect(d *decoder) error {
	noWait := d.bits().has(0)
	if err := d.finish(); err != nil {
		return err
	}
	ch.confirm = true
	ch.reply(noWait, confirmSelectOk, nil)
	return nil
}
