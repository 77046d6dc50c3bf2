package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"mqlab/brokers"
)

// inspector asks for the log's ends and the group's positions and subtracts:
// the client's own lag says 0 for a group that never committed.
type inspector struct{ s *session }

// OpenInspector connects.
func (Driver) OpenInspector(ctx context.Context, at brokers.Address) (brokers.Inspector, error) {
	s, err := open(at, "mqlab inspector")
	if err != nil {
		return nil, err
	}
	if err := s.client.Ping(ctx); err != nil {
		defer s.close()
		return nil, fmt.Errorf("reach the broker: %w", s.reason(ctx, err))
	}
	return &inspector{s}, nil
}

// State is exact for a broker at rest. The ends are asked for after the
// positions, so that what is committed is never more than what is there.
func (i *inspector) State(ctx context.Context, d brokers.Destination) (brokers.State, error) {
	start := time.Now()
	if _, err := i.s.topic(ctx, d); err != nil {
		return brokers.State{}, err
	}
	ms, err := i.s.members(ctx, d)
	if err != nil {
		return brokers.State{}, err
	}
	positions, err := i.positions(ctx, d)
	if err != nil {
		return brokers.State{}, err
	}
	begins, err := i.offsets(ctx, d, i.s.admin.ListStartOffsets)
	if err != nil {
		return brokers.State{}, err
	}
	ends, err := i.offsets(ctx, d, i.s.admin.ListEndOffsets)
	if err != nil {
		return brokers.State{}, err
	}
	var committed *int64
	var end, lag int64
	for partition, e := range ends {
		from := begins[partition]
		if at, ok := positions[partition]; ok {
			if committed == nil {
				committed = new(int64)
			}
			*committed += at
			from = max(from, at)
		}
		end += e
		lag += e - from
	}
	count := int64(len(ms))
	idle := true
	for _, m := range ms {
		idle = idle && m.instance != "" // a static one may be away: nobody can tell
	}
	return brokers.State{Left: lag, Idle: idle, Took: time.Since(start), Figures: map[string]*int64{
		"committed": committed, "end": &end, "lag": &lag, "members": &count}}, nil
}

// positions are what the group has committed, by partition; nothing for a
// partition without a commit.
func (i *inspector) positions(ctx context.Context, d brokers.Destination) (map[int32]int64, error) {
	res, err := i.s.admin.FetchOffsetsForTopics(ctx, d.OnWire(d.Readers()), d.OnWire(d.Topic))
	if err == nil {
		err = res.Error()
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("ask for the positions of group %s: %w", d.Readers(), i.s.reason(ctx, err))
	}
	at := map[int32]int64{}
	res.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			at[o.Partition] = o.At
		}
	})
	return at, nil
}

func (i *inspector) offsets(ctx context.Context, d brokers.Destination, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (map[int32]int64, error) {
	res, err := list(ctx, d.OnWire(d.Topic))
	if err == nil {
		err = res.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the offsets of topic %s: %w", d.Topic, i.s.reason(ctx, err))
	}
	at := map[int32]int64{}
	res.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	return at, nil
}

// Close ends the connection.
func (i *inspector) Close() error {
	i.s.close()
	return nil
}
