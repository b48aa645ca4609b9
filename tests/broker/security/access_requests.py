"""Requests for each permission of each API, for clients without that permission.

A ``Case`` names the API's rows of the table of checks (``broker/api/checks.py``) that it meets.
Apache Kafka gets the same cases (``tests/interop/test_access_like_kafka.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from barnabas.broker import handlers
from barnabas.broker.api.checks import CHECKS, Check
from barnabas.broker.api.dispatch import ROUTES, Route
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.alter_configs import AlterableConfig as OldConfig
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas.protocol.messages.alter_configs import AlterConfigsResource as OldResource
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
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
    UserName,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
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
from barnabas.protocol.wire import ZERO_UUID
from barnabas.storage.runtime.clock import now_ns

assert handlers, "importing the package registers the routes"

GRANTED, DENIED = "open-thing", "shut-thing"
"""Topics, groups and transactional IDs of these names exist. The second ones, and all names with
that prefix, are denied."""
DENIED_TO_MAKE = f"{DENIED}-to-make"
HERE, GONE = f"{DENIED}-here", f"{DENIED}-gone"
"""Names of two denied topics, of which the first exists."""
ABSENT = "absent"
"""Name of no object."""
BROKER = "1"

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32
GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2


class Thing(NamedTuple):
    """Name of a topic, group and transactional ID, and the topic's ID."""

    name: str
    topic_id: bytes = ZERO_UUID


Build = Callable[[Sequence[Thing], int], Any]


class Case(NamedTuple):
    """A request that meets some rows of its API's checks."""

    api: str
    label: str
    rows: tuple[int, ...]
    """Rows of the table: a client without the permission of one of them is denied."""
    build: Build
    """Builds the request in a version, about some objects."""
    versions: tuple[int, int] = (0, 32_767)
    things: tuple[str, ...] = (GRANTED, DENIED)
    """Names of the objects in the request; the last of several is denied."""
    is_about_all: bool = False
    """Whether a denial applies to the whole request, not only to the denied object."""
    is_denied_everywhere: bool = False
    """Whether only who lacks the permission for every name is denied."""
    destroys: bool = False
    """Whether a client with the permission destroys or makes what the request is about."""

    @property
    def route(self) -> Route:
        """Return the route of the API."""
        return next(route for route in ROUTES if route.name == self.api)

    @property
    def checks(self) -> list[Check]:
        """The rows."""
        return [CHECKS[self.api][row] for row in self.rows]

    def served_versions(self) -> range:
        """Every version in which there is something to ask."""
        route = self.route
        first, last = self.versions
        return range(max(first, route.min_version), min(last, route.max_version) + 1)


def batch(*, transactional: bool = False) -> memoryview:
    """One record; of a producer that does not exist, if it is part of a transaction."""
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0} if transactional else {}
    record = Record(0, now_ns() // 1_000_000, b"key", b"value")
    return memoryview(encode_batch([record], transactional=transactional, **producer))


def _produce(*, transactional: bool, acks: int = -1) -> Build:
    def build(things: Sequence[Thing], _version: int) -> ProduceRequest:
        return ProduceRequest(
            things[-1].name if transactional else None,
            acks,
            10_000,
            [
                TopicProduceData(
                    *each, [PartitionProduceData(0, batch(transactional=transactional))]
                )
                for each in things
            ],
        )

    return build


def _fetch(*, replica_id: int = -1) -> Build:
    def build(things: Sequence[Thing], version: int) -> FetchRequest:
        return FetchRequest(
            replica_id=replica_id if version < 15 else -1,
            replica_state=ReplicaState(replica_id, -1) if version >= 15 else ReplicaState(),
            min_bytes=0,
            session_epoch=-1,
            topics=[
                FetchTopic(*each, [FetchPartition(0, partition_max_bytes=1000)]) for each in things
            ],
        )

    return build


def _metadata(things: Sequence[Thing], _version: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(ZERO_UUID, each.name) for each in things]
    return MetadataRequest(topics, False, True, True)


def _metadata_by_id(things: Sequence[Thing], _version: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(each.topic_id, None) for each in things]
    return MetadataRequest(topics, False)


def _metadata_to_make(things: Sequence[Thing], version: int) -> MetadataRequest:
    named = [each._replace(name=f"{each.name}-{version}") for each in things]
    topics = [MetadataRequestTopic(ZERO_UUID, each.name) for each in named]
    return MetadataRequest(topics, allow_auto_topic_creation=True)


def _metadata_of_all(_things: Sequence[Thing], version: int) -> MetadataRequest:
    return MetadataRequest([] if version == 0 else None, False)


def _offset_commit(things: Sequence[Thing], _version: int) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(0, 5)]
    topics = [OffsetCommitRequestTopic(*each, partitions) for each in things]
    return OffsetCommitRequest(things[-1].name, topics=topics)


def _offset_commit_in_group(things: Sequence[Thing], version: int) -> OffsetCommitRequest:
    request = _offset_commit(things, version)
    request.group_id = GRANTED
    return request


def _offset_fetch(things: Sequence[Thing], _version: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        things[-1].name,
        [OffsetFetchRequestTopic(each.name, [0]) for each in things],
        [
            OffsetFetchRequestGroup(
                group.name, topics=[OffsetFetchRequestTopics(*each, [0]) for each in things]
            )
            for group in things
        ],
    )


def _offset_fetch_in_group(things: Sequence[Thing], version: int) -> OffsetFetchRequest:
    request = _offset_fetch(things, version)
    request.group_id = GRANTED
    request.groups = [each for each in request.groups if each.group_id == GRANTED]
    return request


def _offset_fetch_of_all(_things: Sequence[Thing], _version: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(GRANTED, None, [OffsetFetchRequestGroup(GRANTED, topics=None)])


def _find_coordinator(key_type: int) -> Build:
    def build(things: Sequence[Thing], _version: int) -> FindCoordinatorRequest:
        return FindCoordinatorRequest(things[-1].name, key_type, [each.name for each in things])

    return build


def _add_partitions(things: Sequence[Thing], _version: int) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(each.name, [0]) for each in things]
    return AddPartitionsToTxnRequest(
        [AddPartitionsToTxnTransaction(GRANTED, 1, 0, topics=topics)],
        v3_and_below_transactional_id=things[-1].name,
        v3_and_below_producer_id=1,
        v3_and_below_topics=topics,
    )


def _add_partitions_in_transaction(
    things: Sequence[Thing], version: int
) -> AddPartitionsToTxnRequest:
    request = _add_partitions(things, version)
    request.v3_and_below_transactional_id = GRANTED
    return request


def _txn_offset_commit(things: Sequence[Thing], _version: int) -> TxnOffsetCommitRequest:
    partitions = [TxnOffsetCommitRequestPartition(0, 5)]
    topics = [TxnOffsetCommitRequestTopic(each.name, partitions) for each in things]
    return TxnOffsetCommitRequest(
        transactional_id=things[-1].name, group_id=things[-1].name, producer_id=1, topics=topics
    )


def _txn_offset_commit_of(things: Sequence[Thing], version: int) -> TxnOffsetCommitRequest:
    request = _txn_offset_commit(things, version)
    request.transactional_id = request.group_id = GRANTED
    return request


def _configs_of(kind: int, request: Any) -> Build:
    def build(things: Sequence[Thing], _version: int) -> Any:
        return request(kind, [each.name for each in things])

    return build


def _describe(kind: int, names: Sequence[str]) -> DescribeConfigsRequest:
    keys = ["log.dir", "retention.ms", "consumer.session.timeout.ms", "interval.ms"]
    return DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys) for name in names])


def _alter(kind: int, names: Sequence[str]) -> AlterConfigsRequest:
    config = OldConfig("retention.ms" if kind == TOPIC_RESOURCE else "log.retention.ms", "1000")
    resources = [OldResource(kind, name, [config]) for name in names]
    return AlterConfigsRequest(resources, validate_only=True)


def _alter_incrementally(kind: int, names: Sequence[str]) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(
        "retention.ms" if kind == TOPIC_RESOURCE else "log.retention.ms", 0, "1"
    )
    resources = [AlterConfigsResource(kind, name, [config]) for name in names]
    return IncrementalAlterConfigsRequest(resources, validate_only=True)


def _configs_cases(api: str, request: Any) -> tuple[Case, ...]:
    others = {"client metrics": METRICS_RESOURCE, "a broker": BROKER_RESOURCE}
    if api != "AlterConfigs":
        others["loggers"] = LOGGER_RESOURCE
    return (
        Case(api, "topics", (0,), _configs_of(TOPIC_RESOURCE, request)),
        Case(api, "groups", (1,), _configs_of(GROUP_RESOURCE, request)),
        *(
            Case(api, label, (2,), _configs_of(kind, request), things=(BROKER,), is_about_all=True)
            for label, kind in others.items()
        ),
    )


def _init_producer_id(*, two_phase: bool = False) -> Build:
    def build(things: Sequence[Thing], _version: int) -> InitProducerIdRequest:
        return InitProducerIdRequest(things[-1].name, 60_000, enable2_pc=two_phase)

    return build


def _names(things: Sequence[Thing]) -> list[str]:
    return [each.name for each in things]


ONE = (DENIED,)
UNHARMED = (ABSENT, DENIED)
"""For what would destroy the granted thing."""

CASES: tuple[Case, ...] = (
    Case("Produce", "in a transaction", (0,), _produce(transactional=True), is_about_all=True),
    Case("Produce", "", (1,), _produce(transactional=False)),
    Case("Fetch", "", (0,), _fetch()),
    Case("Fetch", "as a replica", (1,), _fetch(replica_id=1), is_about_all=True),
    Case(
        "ListOffsets",
        "",
        (0,),
        lambda things, _v: ListOffsetsRequest(
            -1,
            0,
            [ListOffsetsTopic(each.name, [ListOffsetsPartition(0, -1, -2)]) for each in things],
        ),
    ),
    Case("Metadata", "", (0,), _metadata),
    Case("Metadata", "by id", (0,), _metadata_by_id, (12, 13)),
    Case("Metadata", "to make", (1,), _metadata_to_make, (4, 13), (DENIED_TO_MAKE,), destroys=True),
    Case("Metadata", "of all", (2,), _metadata_of_all),
    Case("OffsetCommit", "", (0,), _offset_commit, is_about_all=True),
    Case("OffsetCommit", "of a topic", (1,), _offset_commit_in_group),
    Case("OffsetFetch", "", (0,), _offset_fetch, (1, 7), is_about_all=True),
    Case("OffsetFetch", "of groups", (0,), _offset_fetch, (8, 10)),
    Case("OffsetFetch", "of topics", (1,), _offset_fetch_in_group),
    Case("OffsetFetch", "of all", (2,), _offset_fetch_of_all, (2, 10)),
    Case("FindCoordinator", "of a group", (0,), _find_coordinator(GROUP_KEY), (0, 3), ONE),
    Case("FindCoordinator", "of groups", (0,), _find_coordinator(GROUP_KEY), (4, 6)),
    Case("FindCoordinator", "of an id", (1,), _find_coordinator(TRANSACTION_KEY), (1, 3), ONE),
    Case("FindCoordinator", "of ids", (1,), _find_coordinator(TRANSACTION_KEY), (4, 6)),
    Case(
        "FindCoordinator", "to share", (2,), _find_coordinator(SHARE_KEY), (6, 6), is_about_all=True
    ),
    Case(
        "JoinGroup",
        "",
        (0,),
        lambda things, _v: JoinGroupRequest(
            things[0].name,
            10_000,
            10_000,
            "m",
            None,
            "consumer",
            [JoinGroupRequestProtocol("range")],
        ),
        things=ONE,
    ),
    Case(
        "Heartbeat",
        "",
        (0,),
        lambda things, _v: HeartbeatRequest(things[0].name, 1, "m"),
        things=ONE,
    ),
    Case(
        "LeaveGroup",
        "",
        (0,),
        lambda things, _v: LeaveGroupRequest(things[0].name, "m", [MemberIdentity("m")]),
        things=ONE,
        is_about_all=True,
    ),
    Case(
        "SyncGroup",
        "",
        (0,),
        lambda things, _v: SyncGroupRequest(things[0].name, 1, "m", None, "consumer", "range"),
        things=ONE,
    ),
    Case(
        "DescribeGroups", "", (0,), lambda things, _v: DescribeGroupsRequest(_names(things), True)
    ),
    Case("ListGroups", "", (0,), lambda _things, _v: ListGroupsRequest()),
    Case(
        "CreateTopics",
        "",
        (0,),
        lambda things, _v: CreateTopicsRequest(
            [CreatableTopic(each.name, 1, 1) for each in things], 10_000, validate_only=True
        ),
        things=UNHARMED,
    ),
    Case(
        "CreateTopics",
        "and their settings",
        (1,),
        lambda _things, version: CreateTopicsRequest(
            [CreatableTopic(f"{DENIED}-checked-{version}", 1, 1)], 10_000, validate_only=True
        ),
        (5, 7),
        ONE,
    ),
    Case(
        "DeleteTopics",
        "",
        (0,),
        lambda things, _v: DeleteTopicsRequest(
            [DeleteTopicState(each.name) for each in things], _names(things), 10_000
        ),
        things=UNHARMED,
        destroys=True,
    ),
    Case(
        "DeleteTopics",
        "by id",
        (0,),
        lambda things, _v: DeleteTopicsRequest(
            [DeleteTopicState(None, each.topic_id) for each in things], timeout_ms=10_000
        ),
        (6, 6),
        things=ONE,
        destroys=True,
    ),
    Case(
        "DeleteRecords",
        "",
        (0,),
        lambda things, _v: DeleteRecordsRequest(
            [DeleteRecordsTopic(each.name, [DeleteRecordsPartition(0, 0)]) for each in things],
            10_000,
        ),
    ),
    Case("InitProducerId", "transactional", (0,), _init_producer_id(), things=ONE),
    Case("InitProducerId", "two-phase", (1,), _init_producer_id(two_phase=True), (6, 6), ONE),
    Case(
        "InitProducerId",
        "idempotent",
        (2,),
        lambda _things, _v: InitProducerIdRequest(None, 0),
        things=ONE,
        is_about_all=True,
        is_denied_everywhere=True,
    ),
    Case(
        "OffsetForLeaderEpoch",
        "",
        (0,),
        lambda things, _v: OffsetForLeaderEpochRequest(
            -2,
            [
                OffsetForLeaderTopic(each.name, [OffsetForLeaderPartition(0, -1, 1)])
                for each in things
            ],
        ),
    ),
    Case("AddPartitionsToTxn", "", (0,), _add_partitions, (0, 3), is_about_all=True),
    Case("AddPartitionsToTxn", "by a broker", (1,), _add_partitions, (4, 5), is_about_all=True),
    Case("AddPartitionsToTxn", "of a topic", (2,), _add_partitions_in_transaction, (0, 3)),
    Case(
        "AddOffsetsToTxn",
        "",
        (0,),
        lambda things, _v: AddOffsetsToTxnRequest(things[0].name, 1, 0, GRANTED),
        things=ONE,
    ),
    Case(
        "AddOffsetsToTxn",
        "of a group",
        (1,),
        lambda things, _v: AddOffsetsToTxnRequest(GRANTED, 1, 0, things[0].name),
        things=ONE,
    ),
    Case(
        "EndTxn", "", (0,), lambda things, _v: EndTxnRequest(things[0].name, 1, 0, True), things=ONE
    ),
    Case(
        "WriteTxnMarkers",
        "",
        (0,),
        lambda things, _v: WriteTxnMarkersRequest(
            [
                WritableTxnMarker(
                    1, 0, True, [WritableTxnMarkerTopic(each.name, [0]) for each in things]
                )
            ]
        ),
        things=(ABSENT,),
        is_about_all=True,
    ),
    Case("TxnOffsetCommit", "", (0, 1), _txn_offset_commit, is_about_all=True),
    Case("TxnOffsetCommit", "of a topic", (2,), _txn_offset_commit_of),
    Case(
        "DescribeAcls",
        "",
        (0,),
        lambda _things, _v: DescribeAclsRequest(1, None, 1, None, None, 1, 1),
    ),
    Case(
        "CreateAcls",
        "",
        (0,),
        lambda things, _v: CreateAclsRequest(
            [AclCreation(TOPIC_RESOURCE, each.name, 3, "User:made", "*", 3, 3) for each in things]
        ),
        is_about_all=True,
    ),
    Case(
        "DeleteAcls",
        "",
        (0,),
        lambda things, _v: DeleteAclsRequest(
            [DeleteAclsFilter(TOPIC_RESOURCE, ABSENT, 3, None, None, 1, 1) for _each in things]
        ),
        is_about_all=True,
    ),
    *_configs_cases("DescribeConfigs", _describe),
    *_configs_cases("AlterConfigs", _alter),
    *_configs_cases("IncrementalAlterConfigs", _alter_incrementally),
    Case(
        "DescribeLogDirs",
        "",
        (0,),
        lambda things, _v: DescribeLogDirsRequest(
            [DescribableLogDirTopic(each.name, [0]) for each in things]
        ),
    ),
    Case(
        "CreatePartitions",
        "",
        (0,),
        lambda things, _v: CreatePartitionsRequest(
            [CreatePartitionsTopic(each.name, 5, None) for each in things], 10_000, True
        ),
    ),
    Case(
        "DeleteGroups",
        "",
        (0,),
        lambda things, _v: DeleteGroupsRequest(_names(things)),
        things=UNHARMED,
        destroys=True,
    ),
    Case(
        "ElectLeaders",
        "",
        (0,),
        lambda things, _v: ElectLeadersRequest(
            0, [TopicPartitions(each.name, [0]) for each in things], 10_000
        ),
        is_about_all=True,
    ),
    Case(
        "AlterPartitionReassignments",
        "",
        (0,),
        lambda things, _v: AlterPartitionReassignmentsRequest(
            10_000,
            topics=[
                ReassignableTopic(each.name, [ReassignablePartition(0, None)]) for each in things
            ],
        ),
    ),
    Case(
        "UpdateFeatures",
        "",
        (0,),
        lambda _things, version: UpdateFeaturesRequest(
            10_000, [FeatureUpdateKey("transaction.version", 2)], validate_only=version > 0
        ),
    ),
    Case(
        "ListPartitionReassignments",
        "",
        (0,),
        lambda things, _v: ListPartitionReassignmentsRequest(
            10_000, [ListPartitionReassignmentsTopics(each.name, [0]) for each in things]
        ),
    ),
    Case("OffsetDelete", "", (0,), lambda things, _v: _offset_delete(things[-1].name, things)),
    Case("OffsetDelete", "of a topic", (1,), lambda things, _v: _offset_delete(GRANTED, things)),
    Case(
        "DescribeClientQuotas",
        "",
        (0,),
        lambda _things, _v: DescribeClientQuotasRequest([ComponentData("user", 2, None)]),
    ),
    Case(
        "AlterClientQuotas",
        "",
        (0,),
        lambda things, _v: AlterClientQuotasRequest(
            [
                EntryData([EntityData("user", each.name)], [OpData("producer_byte_rate", 0, True)])
                for each in things
            ],
            True,
        ),
        is_about_all=True,
    ),
    Case(
        "DescribeUserScramCredentials",
        "",
        (0,),
        lambda things, _v: DescribeUserScramCredentialsRequest(
            [UserName(each.name) for each in things]
        ),
    ),
    Case(
        "AlterUserScramCredentials",
        "",
        (0,),
        lambda things, _v: AlterUserScramCredentialsRequest(
            [ScramCredentialDeletion(each.name, 1) for each in things]
        ),
        is_about_all=True,
    ),
    Case(
        "DescribeProducers",
        "",
        (0,),
        lambda things, _v: DescribeProducersRequest(
            [ProducersOfTopic(each.name, [0]) for each in things]
        ),
    ),
    Case(
        "DescribeTransactions",
        "",
        (0,),
        lambda things, _v: DescribeTransactionsRequest(_names(things)),
    ),
    Case(
        "DescribeTransactions",
        "on topics",
        (1,),
        lambda _t, _v: DescribeTransactionsRequest([GRANTED]),
    ),
    Case("ListTransactions", "", (0,), lambda _things, _v: ListTransactionsRequest()),
    Case(
        "ConsumerGroupHeartbeat",
        "",
        (0,),
        lambda things, _v: ConsumerGroupHeartbeatRequest(things[0].name, "m", 1),
        things=ONE,
    ),
    Case(
        "ConsumerGroupHeartbeat",
        "of topics",
        (1,),
        lambda things, _v: ConsumerGroupHeartbeatRequest(
            GRANTED, "m", 1, subscribed_topic_names=_names(things)
        ),
        is_about_all=True,
    ),
    Case(
        "ConsumerGroupDescribe",
        "",
        (0,),
        lambda things, _v: ConsumerGroupDescribeRequest(_names(things)),
    ),
    Case("ListConfigResources", "", (0,), lambda _things, _v: ListConfigResourcesRequest([2])),
    Case(
        "DescribeTopicPartitions",
        "",
        (0,),
        lambda things, _v: DescribeTopicPartitionsRequest(
            [TopicRequest(each.name) for each in things]
        ),
    ),
    Case(
        "DescribeTopicPartitions",
        "of all",
        (1,),
        lambda _things, _v: DescribeTopicPartitionsRequest(),
    ),
)

ELSEWHERE = {
    ("ConsumerGroupHeartbeat", 2): "a pattern is looked at later, by a timer",
    ("ConsumerGroupDescribe", 1): "there must be a group with members",
    ("ApiVersions", 0): "a broker says once on a connection who it is",
}
"""Rows without a case, which have tests of their own."""


def _offset_delete(group: str, things: Sequence[Thing]) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(5)]  # It does not exist, so no offset is deleted.
    topics = [OffsetDeleteRequestTopic(each.name, partitions) for each in things]
    return OffsetDeleteRequest(group, topics)


# ------------------------------------------------------------------------------- reading an answer

NAMES = (
    "name",
    "topic",
    "topic_name",
    "group_id",
    "transactional_id",
    "resource_name",
    "key",
    "user",
    "topic_id",
    "producer_id",
    "partition_index",
    "partition",
    "partition_id",
    "index",
)
"""Keys of the items in a response, in the order of preference."""


def codes(message: Any, ids: Mapping[bytes, str], path: str = "") -> Iterator[tuple[str, int]]:
    """Every error code of an answer, with the way to it; ``ids`` has the names of topic ids."""
    if isinstance(message, list):
        for number, item in enumerate(message):
            yield from codes(item, ids, f"{path}[{label_of(item, ids) or number}]")
    elif is_dataclass(message):
        for field in fields(message):
            value = getattr(message, field.name)
            if field.name.endswith("error_code"):
                yield f"{path}.{field.name}", value
            else:
                yield from codes(value, ids, f"{path}.{field.name}")


def label_of(item: Any, ids: Mapping[bytes, str]) -> str:
    """Return the name or number of an item's object, or ""."""
    for name in NAMES:
        value = getattr(item, name, None)
        if isinstance(value, bytes):
            value = ids.get(value)
        if value not in (None, ""):
            return str(value)
    return ""
