package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mqlab/brokers"
)

// member is one consumer of a group.
type member struct {
	id, instance string
	next         bool // it is a member by the protocol of KIP-848
}

// members lists who is in the group, whatever its protocol. A group that does
// not exist has none.
func (s *session) members(ctx context.Context, d brokers.Destination) ([]member, error) {
	group := d.OnWire(d.Readers())
	gs, err := s.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("ask for group %s: %w", d.Readers(), s.reason(ctx, err))
	}
	g := gs[group]
	if g.Err != nil && !noGroup(g.Err) {
		return nil, fmt.Errorf("ask for group %s: %w", d.Readers(), s.reason(ctx, g.Err))
	}
	var ms []member
	for _, m := range g.Members {
		ms = append(ms, member{id: m.MemberID, instance: text(m.InstanceID)})
	}
	if len(ms) > 0 { // none is also the answer for a group of the other protocol
		return ms, nil
	}
	cs, err := s.admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("ask for group %s: %w", d.Readers(), s.reason(ctx, err))
	}
	c := cs[group]
	if c.Err != nil && !noGroup(c.Err) {
		return nil, fmt.Errorf("ask for group %s: %w", d.Readers(), s.reason(ctx, c.Err))
	}
	for _, m := range c.Members {
		ms = append(ms, member{id: m.MemberID, instance: text(m.InstanceID), next: true})
	}
	return ms, nil
}

// noGroup reports whether an answer says that there is no such group, or that
// it is one of the other protocol.
func noGroup(err error) bool {
	return errors.Is(err, kerr.GroupIDNotFound) || errors.Is(err, kerr.UnsupportedVersion)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// removeGroup deletes the group. Members that never said goodbye, static ones
// and crashed ones, are shown out first: a group with members is not deleted.
func (s *session) removeGroup(ctx context.Context, d brokers.Destination) error {
	ms, err := s.members(ctx, d)
	if err != nil {
		return err
	}
	group := d.OnWire(d.Readers())
	for _, m := range ms {
		if err := s.showOut(ctx, group, m); err != nil {
			return fmt.Errorf("remove a member of group %s: %w", d.Readers(), s.reason(ctx, err))
		}
	}
	for {
		res, err := s.admin.DeleteGroup(ctx, group)
		if err == nil {
			err = res.Err
		}
		switch {
		case err == nil, errors.Is(err, kerr.GroupIDNotFound):
			return nil
		case !errors.Is(err, kerr.NonEmptyGroup) || ctx.Err() != nil:
			return fmt.Errorf("delete group %s: %w", d.Readers(), s.reason(ctx, err))
		}
		select { // a leaving member is gone a moment after the answer
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}

// showOut says goodbye for a member: by LeaveGroup, or in the newer protocol by
// a heartbeat with the epoch that means it (KIP-848).
func (s *session) showOut(ctx context.Context, group string, m member) error {
	if m.next {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Group, req.MemberID, req.MemberEpoch = group, m.id, -1
		res, err := req.RequestWith(ctx, s.client)
		if err == nil {
			err = kerr.ErrorForCode(res.ErrorCode)
		}
		return unless(err, kerr.UnknownMemberID, kerr.GroupIDNotFound)
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = m.id
	if m.instance != "" {
		leaving.MemberID, leaving.InstanceID = "", &m.instance
	}
	req.Members = append(req.Members, leaving)
	req.MemberID = m.id // before version 3
	res, err := req.RequestWith(ctx, s.client)
	if err == nil {
		err = kerr.ErrorForCode(res.ErrorCode)
	}
	if err == nil && len(res.Members) > 0 {
		err = kerr.ErrorForCode(res.Members[0].ErrorCode)
	}
	return unless(err, kerr.UnknownMemberID, kerr.GroupIDNotFound)
}

// unless is err, if it is none of those.
func unless(err error, those ...error) error {
	for _, e := range those {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
