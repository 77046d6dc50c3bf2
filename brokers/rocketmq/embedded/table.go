package embedded

// request is a request that the real servers know: its name in RequestCode, and
// what serves it here; nil means that nothing does.
type request struct {
	name  string
	serve func(*broker, *conn, *command) *command
}

// requests are those of the 4.x protocol and of the tools that go with it, by
// code. The 5.x ones (pop, 200050 and so on), those among servers and what is
// not listed are not served either.
func requests() map[int]request {
	return map[int]request{
		10:  {"SEND_MESSAGE", (*broker).sendMessage},
		11:  {"PULL_MESSAGE", (*broker).pullMessage},
		12:  {"QUERY_MESSAGE", nil},
		14:  {"QUERY_CONSUMER_OFFSET", (*broker).queryOffset},
		15:  {"UPDATE_CONSUMER_OFFSET", (*broker).updateOffset},
		17:  {"UPDATE_AND_CREATE_TOPIC", (*broker).createTopic},
		25:  {"UPDATE_BROKER_CONFIG", nil},
		26:  {"GET_BROKER_CONFIG", nil},
		28:  {"GET_BROKER_RUNTIME_INFO", (*broker).runtimeInfo},
		29:  {"SEARCH_OFFSET_BY_TIMESTAMP", (*broker).searchOffset},
		30:  {"GET_MAX_OFFSET", (*broker).maxOffset},
		31:  {"GET_MIN_OFFSET", (*broker).minOffset},
		32:  {"GET_EARLIEST_MSG_STORETIME", (*broker).earliestTime},
		33:  {"VIEW_MESSAGE_BY_ID", nil},
		34:  {"HEART_BEAT", (*broker).heartbeat},
		35:  {"UNREGISTER_CLIENT", (*broker).unregister},
		36:  {"CONSUMER_SEND_MSG_BACK", (*broker).sendBack},
		37:  {"END_TRANSACTION", nil},
		38:  {"GET_CONSUMER_LIST_BY_GROUP", (*broker).consumerList},
		41:  {"LOCK_BATCH_MQ", (*broker).lockQueues},
		42:  {"UNLOCK_BATCH_MQ", (*broker).unlockQueues},
		46:  {"CHECK_CLIENT_CONFIG", (*broker).nothing},
		105: {"GET_ROUTEINFO_BY_TOPIC", (*broker).routeInfo},
		106: {"GET_BROKER_CLUSTER_INFO", (*broker).clusterInfo},
		200: {"UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", (*broker).createGroup},
		201: {"GET_ALL_SUBSCRIPTIONGROUP_CONFIG", (*broker).allGroups},
		202: {"GET_TOPIC_STATS_INFO", (*broker).topicStats},
		203: {"GET_CONSUMER_CONNECTION_LIST", (*broker).connectionList},
		204: {"GET_PRODUCER_CONNECTION_LIST", nil},
		206: {"GET_ALL_TOPIC_LIST_FROM_NAMESERVER", (*broker).allTopics},
		207: {"DELETE_SUBSCRIPTIONGROUP", (*broker).deleteGroup},
		208: {"GET_CONSUME_STATS", nil},
		215: {"DELETE_TOPIC_IN_BROKER", (*broker).deleteTopic},
		216: {"DELETE_TOPIC_IN_NAMESRV", (*broker).nothing}, // the broker has done it
		222: {"INVOKE_BROKER_TO_RESET_OFFSET", nil},
		307: {"GET_CONSUMER_RUNNING_INFO", nil},
		309: {"CONSUME_MESSAGE_DIRECTLY", nil},
		310: {"SEND_MESSAGE_V2", (*broker).sendMessageV2},
		320: {"SEND_BATCH_MESSAGE", (*broker).sendBatch},
		324: {"SEND_REPLY_MESSAGE", nil},
		325: {"SEND_REPLY_MESSAGE_V2", nil},
	}
}

// run serves a request under the broker's lock. It returns nil when the answer
// comes later.
func (b *broker) run(c *conn, q *command) *command {
	r, known := b.requests[q.Code]
	if !known || r.serve == nil {
		return bad(codeNotSupported, " request type %d not supported", q.Code)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.serve(b, c, q)
}

// nothing is for what has no effect here.
func (b *broker) nothing(*conn, *command) *command { return good() }
