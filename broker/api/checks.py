"""One table of the permissions that each API requires, and of the response to a denial.

The table is data. ``Routes.add`` refuses an API without a row. ``guarded`` checks the rows that
concern a whole request before it calls the handler; handlers check the items of a request. The
table of the documentation, and the tests that send each API with each permission missing, are
generated from the same rows. The rows are those of Apache Kafka 4.3.0 (measured);
docs/security/reference.md lists the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from barnabas.broker.security.acls.operations import CLUSTER_NAME, Operation, ResourceType, shown
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.security.acls.access import Access

ALTER, ALTER_CONFIGS, CLUSTER_ACTION, CREATE, DELETE = (
    Operation.ALTER,
    Operation.ALTER_CONFIGS,
    Operation.CLUSTER_ACTION,
    Operation.CREATE,
    Operation.DELETE,
)
DESCRIBE, DESCRIBE_CONFIGS, IDEMPOTENT_WRITE, READ, WRITE = (
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
    Operation.READ,
    Operation.WRITE,
)
TWO_PHASE_COMMIT: Final = Operation.TWO_PHASE_COMMIT

CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID = (
    ResourceType.CLUSTER,
    ResourceType.GROUP,
    ResourceType.TOPIC,
    ResourceType.TRANSACTIONAL_ID,
)

TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Denial(Enum):
    """Response to a client that lacks the permission."""

    REQUEST = "the whole request"
    """The error for the request as a whole: by ``guarded``, before the handler is called."""
    ITEM = "each item"
    """An error for each item that is not allowed; the other items are processed."""
    LEFT_OUT = "left out"
    """The response omits the items that are not allowed, without an error."""


class Check(NamedTuple):
    """One permission that an API asks for."""

    operation: Operation
    resource_type: ResourceType
    name: str
    """The field of the request with the resource's name, or "" for the cluster. For readers, also
    the items of a list that the check concerns."""
    code: ErrorCode
    denial: Denial
    or_else: tuple[tuple[Operation, ResourceType], ...] = ()
    """Permissions of which each is as good."""
    versions: tuple[int, int] = (0, 32_767)
    when: str = ""
    """Condition under which the permission is required, as text for the documentation."""


def _request(
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    code: ErrorCode,
    *or_else: tuple[Operation, ResourceType],
    versions: tuple[int, int] = (0, 32_767),
) -> Check:
    return Check(operation, resource_type, name, code, Denial.REQUEST, or_else, versions)


def _item(
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    code: ErrorCode,
    *or_else: tuple[Operation, ResourceType],
    when: str = "",
) -> Check:
    return Check(operation, resource_type, name, code, Denial.ITEM, or_else, when=when)


def _left_out(
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *or_else: tuple[Operation, ResourceType],
) -> Check:
    return Check(operation, resource_type, name, ErrorCode.NONE, Denial.LEFT_OUT, or_else)


def _on_cluster(operation: Operation, *or_else: tuple[Operation, ResourceType]) -> Check:
    return _request(operation, CLUSTER, "", CLUSTER_DENIED, *or_else)


Checks: TypeAlias = Mapping[str, tuple[Check, ...]]

CHECKS: Final[Checks] = {
    "Produce": (
        _item(WRITE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED,
            when="a batch is transactional"),
        _item(WRITE, TOPIC, "topic_data", TOPIC_DENIED),
    ),
    "Fetch": (
        _item(READ, TOPIC, "topics", TOPIC_DENIED),
        _item(CLUSTER_ACTION, CLUSTER, "", TOPIC_DENIED, when="a replica fetches"),
    ),
    "ListOffsets": (_item(DESCRIBE, TOPIC, "topics", TOPIC_DENIED),),
    "Metadata": (
        _item(DESCRIBE, TOPIC, "topics", TOPIC_DENIED),
        _item(CREATE, TOPIC, "topics", TOPIC_DENIED, (CREATE, CLUSTER),
            when="the topic is to be created"),
        _left_out(DESCRIBE, TOPIC, "all topics"),
    ),
    "OffsetCommit": (
        _request(READ, GROUP, "group_id", GROUP_DENIED),
        _item(READ, TOPIC, "topics", TOPIC_DENIED),
    ),
    "OffsetFetch": (
        _item(DESCRIBE, GROUP, "groups", GROUP_DENIED),
        _item(DESCRIBE, TOPIC, "topics", TOPIC_DENIED),
        _left_out(DESCRIBE, TOPIC, "all topics"),
    ),
    "FindCoordinator": (
        _item(DESCRIBE, GROUP, "coordinator_keys", GROUP_DENIED, when="of a group"),
        _item(DESCRIBE, TRANSACTIONAL_ID, "coordinator_keys", TRANSACTIONAL_ID_DENIED,
            when="of a transactional id"),
        _item(CLUSTER_ACTION, CLUSTER, "", CLUSTER_DENIED, when="of a share group"),
    ),
    "JoinGroup": (_request(READ, GROUP, "group_id", GROUP_DENIED),),
    "Heartbeat": (_request(READ, GROUP, "group_id", GROUP_DENIED),),
    "LeaveGroup": (_request(READ, GROUP, "group_id", GROUP_DENIED),),
    "SyncGroup": (
        _item(READ, GROUP, "group_id", GROUP_DENIED, when="from v5 on: the protocol is named"),
    ),
    "DescribeGroups": (_item(DESCRIBE, GROUP, "groups", GROUP_DENIED),),
    "ListGroups": (_left_out(DESCRIBE, GROUP, "all groups", (DESCRIBE, CLUSTER)),),
    "SaslHandshake": (),
    "ApiVersions": (
        _item(CLUSTER_ACTION, CLUSTER, "", CLUSTER_DENIED, when="a broker says who it is"),
    ),
    "SaslAuthenticate": (),
    "CreateTopics": (
        _item(CREATE, TOPIC, "topics", TOPIC_DENIED, (CREATE, CLUSTER)),
        _item(DESCRIBE_CONFIGS, TOPIC, "topics", TOPIC_DENIED,
            when="from v5 on: for what the answer says of its settings"),
    ),
    "DeleteTopics": (_item(DELETE, TOPIC, "topics", TOPIC_DENIED, (DELETE, CLUSTER)),),
    "DeleteRecords": (_item(DELETE, TOPIC, "topics", TOPIC_DENIED),),
    "InitProducerId": (
        _item(WRITE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED,
            when="there is one"),
        _item(TWO_PHASE_COMMIT, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED,
            when="it is for two-phase commit"),
        _item(IDEMPOTENT_WRITE, CLUSTER, "", CLUSTER_DENIED, (WRITE, TOPIC),
            when="there is no transactional id; WRITE on any topic will do"),
    ),
    "OffsetForLeaderEpoch": (
        _item(DESCRIBE, TOPIC, "topics", TOPIC_DENIED, (CLUSTER_ACTION, CLUSTER)),
    ),
    "AddPartitionsToTxn": (
        _request(WRITE, TRANSACTIONAL_ID, "v3_and_below_transactional_id",
            TRANSACTIONAL_ID_DENIED, versions=(0, 3)),
        _request(CLUSTER_ACTION, CLUSTER, "", CLUSTER_DENIED, versions=(4, 32_767)),
        _item(WRITE, TOPIC, "v3_and_below_topics", TOPIC_DENIED),
    ),
    "AddOffsetsToTxn": (
        _request(WRITE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED),
        _request(READ, GROUP, "group_id", GROUP_DENIED),
    ),
    "EndTxn": (_request(WRITE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED),),
    "WriteTxnMarkers": (_on_cluster(ALTER, (CLUSTER_ACTION, CLUSTER)),),
    "TxnOffsetCommit": (
        _request(WRITE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED),
        _request(READ, GROUP, "group_id", GROUP_DENIED),
        _item(READ, TOPIC, "topics", TOPIC_DENIED),
    ),
    "DescribeAcls": (_on_cluster(DESCRIBE),),
    "CreateAcls": (_on_cluster(ALTER),),
    "DeleteAcls": (_on_cluster(ALTER),),
    "DescribeConfigs": (
        _item(DESCRIBE_CONFIGS, TOPIC, "resources", TOPIC_DENIED),
        _item(DESCRIBE_CONFIGS, GROUP, "resources", GROUP_DENIED),
        _item(DESCRIBE_CONFIGS, CLUSTER, "resources", CLUSTER_DENIED, when="any other resource"),
    ),
    "AlterConfigs": (
        _item(ALTER_CONFIGS, TOPIC, "resources", TOPIC_DENIED),
        _item(ALTER_CONFIGS, GROUP, "resources", GROUP_DENIED),
        _item(ALTER_CONFIGS, CLUSTER, "resources", CLUSTER_DENIED, when="any other resource"),
    ),
    "IncrementalAlterConfigs": (
        _item(ALTER_CONFIGS, TOPIC, "resources", TOPIC_DENIED),
        _item(ALTER_CONFIGS, GROUP, "resources", GROUP_DENIED),
        _item(ALTER_CONFIGS, CLUSTER, "resources", CLUSTER_DENIED, when="any other resource"),
    ),
    "DescribeLogDirs": (_on_cluster(DESCRIBE),),
    "CreatePartitions": (_item(ALTER, TOPIC, "topics", TOPIC_DENIED),),
    "DeleteGroups": (_item(DELETE, GROUP, "groups_names", GROUP_DENIED),),
    "ElectLeaders": (_on_cluster(ALTER),),
    "AlterPartitionReassignments": (_on_cluster(ALTER),),
    "ListPartitionReassignments": (_on_cluster(DESCRIBE),),
    "UpdateFeatures": (_on_cluster(ALTER),),
    "OffsetDelete": (
        _request(DELETE, GROUP, "group_id", GROUP_DENIED),
        _item(READ, TOPIC, "topics", TOPIC_DENIED),
    ),
    "DescribeClientQuotas": (_on_cluster(DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (_on_cluster(ALTER_CONFIGS),),
    "DescribeUserScramCredentials": (_on_cluster(DESCRIBE),),
    "AlterUserScramCredentials": (_on_cluster(ALTER),),
    "DescribeCluster": (),
    "DescribeProducers": (
        _item(READ, TOPIC, "topics", TOPIC_DENIED, (CLUSTER_ACTION, CLUSTER)),
    ),
    "DescribeTransactions": (
        _item(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", TRANSACTIONAL_ID_DENIED),
        _left_out(DESCRIBE, TOPIC, "topics of a transaction"),
    ),
    "ListTransactions": (_left_out(DESCRIBE, TRANSACTIONAL_ID, "all transactional ids"),),
    "ConsumerGroupHeartbeat": (
        _request(READ, GROUP, "group_id", GROUP_DENIED),
        _item(DESCRIBE, TOPIC, "subscribed_topic_names", TOPIC_DENIED),
        _left_out(DESCRIBE, TOPIC, "topics that a pattern finds"),
    ),
    "ConsumerGroupDescribe": (
        _item(DESCRIBE, GROUP, "group_ids", GROUP_DENIED),
        _item(DESCRIBE, TOPIC, "topics of the group", TOPIC_DENIED),
    ),
    "ListConfigResources": (_on_cluster(DESCRIBE_CONFIGS),),
    "DescribeTopicPartitions": (
        _item(DESCRIBE, TOPIC, "topics", TOPIC_DENIED),
        _left_out(DESCRIBE, TOPIC, "all topics"),
    ),
}  # fmt: skip
"""Checks of each API by its name, in the order of evaluation."""


def guarded(checks: tuple[Check, ...], handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that first checks the permissions for the whole request.

    The returned handler raises KafkaError on a denial. Without such checks, ``handler`` itself is
    returned.
    """
    of_requests = [check for check in checks if check.denial is Denial.REQUEST]
    if not of_requests:
        return handler

    def checked(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for check in of_requests:
            _require(check, context, request)
        return handler(context, request)

    return checked


def _require(check: Check, context: RequestContext, request: Any) -> None:  # noqa: ANN401
    first, last = check.versions
    if not first <= context.api_version <= last:
        return
    name = getattr(request, check.name) if check.name else CLUSTER_NAME
    others = ((operation, kind, CLUSTER_NAME) for operation, kind in check.or_else)
    if not context.access.may_either((check.operation, check.resource_type, name or ""), *others):
        raise denied(check.code, check.operation, check.resource_type, name or "")


def denied(
    code: ErrorCode, operation: Operation, resource_type: ResourceType, name: str
) -> KafkaError:
    """Return the error of a denial; it contains no names that the request did not contain."""
    return KafkaError(code, f"{operation.name} on {shown(resource_type)}:{name} is denied")


# ------------------------------------------------------------------------ what several handlers ask


def may_create(access: Access, name: str) -> bool:
    """Return whether a client may create a topic."""
    return access.may_see(CLUSTER, CLUSTER_NAME, CREATE) or access.may(CREATE, TOPIC, name)


def transaction_denial(access: Access, transactional_id: str, group_id: str) -> ErrorCode:
    """Return the error for committing a group's offsets in a transaction, or NONE if allowed."""
    if not access.may(WRITE, TRANSACTIONAL_ID, transactional_id):
        return TRANSACTIONAL_ID_DENIED
    return ErrorCode.NONE if access.may(READ, GROUP, group_id) else GROUP_DENIED
