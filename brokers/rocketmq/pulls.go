package rocketmq

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// remembers is the offset in a topic's queue that the client will send, 0 for a
// queue that it does not have. The method's result is of a package that only the
// client may import.
func (c *consumer) remembers(topic string) int64 {
	info := reflect.ValueOf(c.client).MethodByName("GetConsumerRunningInfo").Call([]reflect.Value{reflect.ValueOf(false)})[0]
	for queues := info.Elem().FieldByName("MQTable").MapRange(); queues.Next(); {
		if mq, ok := queues.Key().Interface().(primitive.MessageQueue); ok && mq.Topic == topic {
			return queues.Value().FieldByName("CommitOffset").Int()
		}
	}
	return 0
}

// pullOnItsWay reports whether a client of this process is about to send a pull.
// Every pull carries the offset that the client remembered before, and the broker
// takes it, backwards too: one that is sent after a newer offset undoes the ack.
// (Client 2.1.3, pushConsumer.pullMessage; broker 5.4.0, PullMessageProcessor.)
// The client has no word for it, so its goroutines are looked at.
func (c *consumer) pullOnItsWay() bool {
	stacks := make([]runtime.StackRecord, runtime.NumGoroutine()+16)
	n, ok := runtime.GoroutineProfile(stacks)
	if !ok {
		return true // more of them by now: the caller asks again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range stacks[:n] {
		if at := c.places.of(s.Stack()); at&pulls != 0 && at&waits == 0 {
			return true
		}
	}
	return false
}

// place is what a goroutine is doing.
type place int

const (
	pulls place = 1 << iota // it makes pulls
	// waits: the next thing is a new pull, after the answer to the last one, after a
	// pause, or after the role has taken messages.
	waits
)

// places remembers what a program counter stands for: to find out takes longer
// than everything else in an ack.
type places map[uintptr]place

func (p places) of(stack []uintptr) (at place) {
	for _, pc := range stack {
		one, known := p[pc]
		if !known {
			frames := runtime.CallersFrames([]uintptr{pc}) // more than one where calls are inlined
			for more := true; more; {
				var f runtime.Frame
				f, more = frames.Next()
				one |= placeOf(f.Function)
			}
			p[pc] = one
		}
		at |= one
	}
	return at
}

func placeOf(function string) place {
	switch {
	case strings.HasSuffix(function, "(*pushConsumer).pullMessage"):
		return pulls
	case function == "time.Sleep", strings.HasSuffix(function, "(*processQueue).putMessage"), strings.HasSuffix(function, "(*ResponseFuture).waitResponse"):
		return waits
	}
	return 0
}
