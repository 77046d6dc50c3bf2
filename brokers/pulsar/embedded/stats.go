package embedded

// topicStats are the numbers of a topic, under the names of the admin API.
type topicStats struct {
	Subscriptions map[string]subscriptionStats `json:"subscriptions"`
}

type subscriptionStats struct {
	Backlog        int64           `json:"msgBacklog"`
	Delayed        int64           `json:"msgDelayed"`
	Unacknowledged int64           `json:"unackedMessages"`
	Type           string          `json:"type"`
	Consumers      []consumerStats `json:"consumers"`
	Durable        bool            `json:"durable"`
}

type consumerStats struct {
	Name           string `json:"consumerName"`
	Permits        int64  `json:"availablePermits"`
	Unacknowledged int64  `json:"unackedMessages"`
	Address        string `json:"address"`
}

// stats counts at the moment of the question.
func (t *topic) stats() topicStats {
	st := topicStats{map[string]subscriptionStats{}}
	for name, s := range t.subs {
		sub := subscriptionStats{Backlog: s.backlog(), Type: "None", Consumers: []consumerStats{}, Durable: true}
		if len(s.consumers) > 0 {
			sub.Type = s.kind.String()
		}
		for _, co := range s.consumers {
			n := co.unacknowledged()
			sub.Unacknowledged += n
			sub.Consumers = append(sub.Consumers, consumerStats{co.name, co.permits, n, co.c.nc.RemoteAddr().String()})
		}
		st.Subscriptions[name] = sub
	}
	return st
}
