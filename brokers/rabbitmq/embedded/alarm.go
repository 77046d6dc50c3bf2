package embedded

import (
	"context"
	"time"
)

// alarm is when the next message at the head of a queue expires.
type alarm struct {
	at      int64 // 0 for never
	changed chan struct{}
}

// wakeAt makes the reaper look at the queues at that time at the latest.
func (b *broker) wakeAt(t int64) {
	if t == 0 || b.alarm.at != 0 && b.alarm.at <= t {
		return
	}
	b.alarm.at = t
	select {
	case b.alarm.changed <- struct{}{}:
	default:
	}
}

// reap expires messages until the context ends: one goroutine for all queues.
func (b *broker) reap(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.untilAlarm())
		select {
		case <-ctx.Done():
			return
		case <-b.alarm.changed:
		case <-timer.C:
			_ = b.do(nil, b.expireAll)
		}
	}
}

func (b *broker) untilAlarm() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alarm.at == 0 {
		return time.Hour
	}
	return max(0, time.Duration(b.alarm.at-b.now()))
}

func (b *broker) expireAll() error {
	b.alarm.at = 0
	for _, q := range b.queues {
		if m := q.ready.first(); m != nil && m.expires != 0 {
			b.schedule(q)
		}
	}
	return nil
}
