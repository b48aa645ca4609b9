"""One request for every API the broker serves, that it can answer with success in any version.

Where it has no success to give, ``REFUSED`` has the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.protocol.messages.alter_configs import AlterableConfig as OldConfig
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_acls import CreateAclsRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import Record, encode_batch

TOPIC = 2
"""Resource type of DescribeConfigs and its relatives."""

SECURITY_DISABLED = 54
ILLEGAL_SASL_STATE = 34

UNKNOWN_MEMBER_ID = 25
GROUP_ID_NOT_FOUND = 69
NOT_COORDINATOR = 16
TRANSACTIONAL_ID_NOT_FOUND = 105

REFUSED = {
    "ConsumerGroupHeartbeat": {69},  # GROUP_ID_NOT_FOUND
    "ConsumerGroupDescribe": {69},
    "DescribeAcls": {SECURITY_DISABLED},
    "SaslHandshake": {ILLEGAL_SASL_STATE},
    "SaslAuthenticate": {ILLEGAL_SASL_STATE},
    # A member of a group that has none: what there is beyond is in the tests of groups.
    "JoinGroup": {UNKNOWN_MEMBER_ID},
    "SyncGroup": {UNKNOWN_MEMBER_ID},
    "Heartbeat": {UNKNOWN_MEMBER_ID},
    "LeaveGroup": {0, UNKNOWN_MEMBER_ID},
    "DescribeGroups": {0, GROUP_ID_NOT_FOUND},
    "DeleteGroups": {GROUP_ID_NOT_FOUND},
    "DescribeTransactions": {NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND},
}

Sample = Callable[[str, bytes, str, bytes], Any]


def batch() -> memoryview:
    return memoryview(encode_batch([Record(0, 1_700_000_000_000, b"key", b"value")]))


# Each function gets the name and the id of a topic, and those of a second one to be deleted.
# ``identify`` puts in the transactional id and producer of a transaction.
SAMPLES: dict[str, Sample] = {
    "Produce": lambda name, id_, _n, _i: ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name, id_, [PartitionProduceData(0, batch())])],
    ),
    "Fetch": lambda name, id_, _n, _i: FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(name, id_, [FetchPartition(0, partition_max_bytes=1000)])],
    ),
    "ListOffsets": lambda name, _id, _n, _i: ListOffsetsRequest(
        -1, 0, [ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, -1)])]
    ),
    "Metadata": lambda name, _id, _n, _i: MetadataRequest([MetadataRequestTopic(name=name)]),
    "ApiVersions": lambda _name, _id, _n, _i: ApiVersionsRequest("sample", "1.0"),
    "CreateTopics": lambda name, _id, _n, _i: CreateTopicsRequest(
        [CreatableTopic(name + "-2", 1, 1)], 1000, validate_only=True
    ),
    "DeleteTopics": lambda _name, _id, name, id_: DeleteTopicsRequest(
        topics=[DeleteTopicState(name, bytes(16))], topic_names=[name], timeout_ms=1000
    ),
    "DeleteRecords": lambda name, _id, _n, _i: DeleteRecordsRequest(
        [DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)])], 1000
    ),
    "InitProducerId": lambda _name, _id, _n, _i: InitProducerIdRequest(None, 0),
    "OffsetForLeaderEpoch": lambda name, _id, _n, _i: OffsetForLeaderEpochRequest(
        -2, [OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, -1, 1)])]
    ),
    "DescribeConfigs": lambda name, _id, _n, _i: DescribeConfigsRequest(
        [DescribeConfigsResource(TOPIC, name, None)]
    ),
    "AlterConfigs": lambda name, _id, _n, _i: AlterConfigsRequest(
        [AlterConfigsResource(TOPIC, name, [OldConfig("retention.ms", "1000")])],
        validate_only=True,
    ),
    "IncrementalAlterConfigs": lambda name, _id, _n, _i: IncrementalAlterConfigsRequest(
        [IncrementalResource(TOPIC, name, [AlterableConfig("retention.ms", 0, "1000")])],
        validate_only=True,
    ),
    "ListConfigResources": lambda _name, _id, _n, _i: ListConfigResourcesRequest(),
    "CreatePartitions": lambda name, _id, _n, _i: CreatePartitionsRequest(
        [CreatePartitionsTopic(name, 5, None)], 1000, validate_only=True
    ),
    "OffsetCommit": lambda name, id_, _n, _i: OffsetCommitRequest(
        "group", topics=[OffsetCommitRequestTopic(name, id_, [OffsetCommitRequestPartition(0, 5)])]
    ),
    "OffsetFetch": lambda name, id_, _n, _i: OffsetFetchRequest(
        "group",
        [OffsetFetchRequestTopic(name, [0])],
        [OffsetFetchRequestGroup("group", topics=[OffsetFetchRequestTopics(name, id_, [0])])],
    ),
    "OffsetDelete": lambda name, _id, _n, _i: OffsetDeleteRequest(
        "group", [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)])]
    ),
    "FindCoordinator": lambda _name, _id, _n, _i: FindCoordinatorRequest("group", 0, ["group"]),
    "JoinGroup": lambda _name, _id, _n, _i: JoinGroupRequest(
        "group", 10_000, 10_000, "member", None, "consumer", [JoinGroupRequestProtocol("range")]
    ),
    "SyncGroup": lambda _name, _id, _n, _i: SyncGroupRequest(
        "group", 1, "member", None, "consumer", "range"
    ),
    "Heartbeat": lambda _name, _id, _n, _i: HeartbeatRequest("group", 1, "member"),
    "LeaveGroup": lambda _name, _id, _n, _i: LeaveGroupRequest(
        "group", "member", [MemberIdentity("member")]
    ),
    "ListGroups": lambda _name, _id, _n, _i: ListGroupsRequest(["Stable"], ["classic"]),
    "DescribeTransactions": lambda _name, _id, _n, _i: DescribeTransactionsRequest(["no-id"]),
    "ListTransactions": lambda _name, _id, _n, _i: ListTransactionsRequest(
        ["Ongoing"], [1], 1, "no.*"
    ),
    "DescribeGroups": lambda _name, _id, _n, _i: DescribeGroupsRequest(["no-group"]),
    "DeleteGroups": lambda _name, _id, _n, _i: DeleteGroupsRequest(["no-group"]),
    "ConsumerGroupHeartbeat": lambda _name, _id, _n, _i: ConsumerGroupHeartbeatRequest(
        "no-group", "member", 1
    ),
    "ConsumerGroupDescribe": lambda _name, _id, _n, _i: ConsumerGroupDescribeRequest(["no-group"]),
    "AddPartitionsToTxn": lambda name, _id, _n, _i: AddPartitionsToTxnRequest(
        [AddPartitionsToTxnTransaction(topics=[AddPartitionsToTxnTopic(name, [0])])],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name, [0])],
    ),
    "AddOffsetsToTxn": lambda _name, _id, _n, _i: AddOffsetsToTxnRequest(group_id="group"),
    "EndTxn": lambda _name, _id, _n, _i: EndTxnRequest(committed=True),
    "WriteTxnMarkers": lambda name, _id, _n, _i: WriteTxnMarkersRequest(
        [WritableTxnMarker(topics=[WritableTxnMarkerTopic(name, [0])], coordinator_epoch=1)]
    ),
    "TxnOffsetCommit": lambda name, _id, _n, _i: TxnOffsetCommitRequest(
        group_id="group",
        topics=[TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(0, 5)])],
    ),
    "DescribeCluster": lambda _name, _id, _n, _i: DescribeClusterRequest(),
    "DescribeTopicPartitions": lambda name, _id, _n, _i: DescribeTopicPartitionsRequest(
        [TopicRequest(name)]
    ),
    "DescribeLogDirs": lambda name, _id, _n, _i: DescribeLogDirsRequest(
        [DescribableLogDirTopic(name, [0])]
    ),
    "DescribeProducers": lambda name, _id, _n, _i: DescribeProducersRequest(
        [ProducersOfTopic(name, [0])]
    ),
    "ElectLeaders": lambda name, _id, _n, _i: ElectLeadersRequest(0, [TopicPartitions(name)]),
    "UpdateFeatures": lambda _name, _id, _n, _i: UpdateFeaturesRequest(
        1000, [FeatureUpdateKey("transaction.version", 2)]
    ),
    "ListPartitionReassignments": lambda name, _id, _n, _i: ListPartitionReassignmentsRequest(
        1000, [ListPartitionReassignmentsTopics(name, [0])]
    ),
    "AlterPartitionReassignments": lambda name, _id, _n, _i: AlterPartitionReassignmentsRequest(
        1000, topics=[ReassignableTopic(name, [ReassignablePartition(0, [1])])]
    ),
    "DescribeClientQuotas": lambda _name, _id, _n, _i: DescribeClientQuotasRequest(
        [ComponentData("user", 2, None)], strict=True
    ),
    "AlterClientQuotas": lambda _name, _id, _n, _i: AlterClientQuotasRequest(),
    "DescribeUserScramCredentials": lambda _name, _id, _n, _i: DescribeUserScramCredentialsRequest(
        None
    ),
    "AlterUserScramCredentials": lambda _name, _id, _n, _i: AlterUserScramCredentialsRequest(),
    "DescribeAcls": lambda _name, _id, _n, _i: DescribeAclsRequest(1, operation=1),
    "SaslHandshake": lambda _name, _id, _n, _i: SaslHandshakeRequest("PLAIN"),
    "SaslAuthenticate": lambda _name, _id, _n, _i: SaslAuthenticateRequest(b"\0user\0password"),
    "CreateAcls": lambda _name, _id, _n, _i: CreateAclsRequest(),
    "DeleteAcls": lambda _name, _id, _n, _i: DeleteAclsRequest(),
}


TRANSACTIONAL = {"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"}
"""Requests that need a transaction to be open."""


def identify(message: Any, **identity: Any) -> None:
    """Put transactional id, producer id and epoch wherever a request has a place for them."""
    if isinstance(message, list):
        for item in message:
            identify(item, **identity)
    elif hasattr(message, "__dataclass_fields__"):
        for name in message.__dataclass_fields__:
            plain = name.removeprefix("v3_and_below_")
            if plain in identity:
                setattr(message, name, identity[plain])
            else:
                identify(getattr(message, name), **identity)


def error_codes(message: Any) -> Iterator[int]:
    """Every error code anywhere in a response."""
    if isinstance(message, list):
        for item in message:
            yield from error_codes(item)
    elif hasattr(message, "__dataclass_fields__"):
        for name in message.__dataclass_fields__:
            value = getattr(message, name)
            if name.endswith("error_code"):
                yield value
            else:
                yield from error_codes(value)
