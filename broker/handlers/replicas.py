"""ElectLeaders 0-2, ListPartitionReassignments 0, AlterPartitionReassignments 0-1.

Version notes. ElectLeaders: v1 adds the kind of election. AlterPartitionReassignments: v1 can
forbid a change of the replication factor.
One broker holds the one replica of everything: it leads already, nothing is ever being moved, and
the only assignment that can be asked for is the one there is. Such a request succeeds, as in Kafka;
any other is refused with the error Kafka has for brokers that it does not know.
Knowingly absent: ``timeout_ms``, because there is nothing to wait for.
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.handlers.topics import check_replicas
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.storage.metastore.interface import Identity


class ElectionType(IntEnum):
    """Who may be elected."""

    PREFERRED = 0
    UNCLEAN = 1


# ----------------------------------------------------------------------------------- ElectLeaders


def refuse_elect_leaders(
    request: ElectLeadersRequest, code: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """Answer an error at the top (since v1) and for every partition of the request."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic, [PartitionResult(index, code, message) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


@serves(ELECT_LEADERS, versions=(0, 2), refuse=refuse_elect_leaders)
def elect_leaders(
    catalogue: Catalogue, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Say that no election is needed, since this broker leads every partition there is."""
    if request.election_type not in set(ElectionType):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        )
    if request.topic_partitions is None:
        # Asked for all, only partitions with a new leader are listed: none.
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(name) for name in catalogue.topics]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic,
                [_election(catalogue, topic.topic, index) for index in topic.partitions],
            )
            for topic in request.topic_partitions
        ]
    )


def _election(catalogue: Catalogue, topic: str, index: int) -> PartitionResult:
    if catalogue.topic(topic) is None:
        return PartitionResult(
            index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
        )
    if catalogue.partition(topic, index) is None:
        return PartitionResult(
            index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}"
        )
    return PartitionResult(
        index,
        ErrorCode.ELECTION_NOT_NEEDED,
        "Leader election not needed for topic partition.",
    )


# ---------------------------------------------------------------------------------- reassignments


@serves(LIST_PARTITION_REASSIGNMENTS, versions=(0, 0))
def list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List what is being moved to other brokers: nothing, whatever was asked for."""
    del request
    return ListPartitionReassignmentsResponse()


@serves(ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1))
def alter_partition_reassignments(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse:
    """Accept what is so already, refuse what would need another broker."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [
                    _reassignment(catalogue, identity, topic.name, asked)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassignment(
    catalogue: Catalogue, identity: Identity, topic: str, asked: ReassignablePartition
) -> ReassignablePartitionResponse:
    response = ReassignablePartitionResponse(asked.partition_index)
    try:
        _check_reassignment(catalogue, identity, topic, asked)
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = error.message
    return response


def _check_reassignment(
    catalogue: Catalogue, identity: Identity, topic: str, asked: ReassignablePartition
) -> None:
    """Raise KafkaError unless the partition is where it is wanted."""
    if catalogue.topic(topic) is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
        )
    if catalogue.partition(topic, asked.partition_index) is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {topic}:{asked.partition_index}.",
        )
    if asked.replicas is None:  # "Cancel it".
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(asked.replicas, identity.node_id)
