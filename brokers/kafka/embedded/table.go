package embedded

// NotServed lists the requests of Kafka's protocol that the stand-in does not
// serve, by their names there. It says so in its answer to ApiVersions, as a
// broker does, so that clients do not send them; one that is sent all the same
// ends its connection.
func NotServed() []string {
	// Delegation tokens, Kafka Streams, and what brokers and controllers say to
	// each other.
	return []string{
		"LeaderAndISR", "StopReplica", "UpdateMetadata", "ControlledShutdown", "CreateDelegationToken", "RenewDelegationToken",
		"ExpireDelegationToken", "DescribeDelegationToken", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum",
		"AlterPartition", "Envelope", "FetchSnapshot", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker",
		"AllocateProducerIDs", "ControllerRegistration", "AssignReplicasToDirs", "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter",
		"InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState",
		"ReadShareGroupStateSummary", "StreamsGroupHeartbeat", "StreamsGroupDescribe", "StreamsGroupTopologyDescriptionUpdate",
		"UnregisterController",
	}
}
