package rocketmq

import (
	"context"

	"mqlab/brokers"
)

// BrokerOf is the broker's address as the name server advertises it.
func BrokerOf(ctx context.Context, at brokers.Address) (string, error) {
	s, err := open(ctx, at, "")
	if err != nil {
		return "", err
	}
	defer s.close()
	return s.addr, nil
}
