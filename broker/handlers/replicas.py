"""ElectLeaders 0-2, ListPartitionReassignments 0, AlterPartitionReassignments 0-1.

Version notes. ElectLeaders: v1 adds the kind of election. AlterPartitionReassignments: v1 can
forbid a change of the replication factor.
The store keeps the copies (see broker/cluster/damaged_copies.py), so the effect of a reassignment
is its first replica: the partition's next leader. It is ongoing until that broker leads. The other
replicas have no further meaning; the replication factor stays. As in Apache Kafka, replicas can be
fenced brokers as long as one of them is in service.
A single broker leads everything already: only itself can be requested, as in Kafka.
The first replica is the preferred leader from then on, which is called a pin; a cancelled
reassignment pins the partition to its present leader. A tag of Barnabas (1000) moves without a pin,
or ends one, and requests a list of the pins.
If a partition is not pinned, its present leader is the preferred one. An election is not needed
while that is in service; and an operator can elect no other when it is not, since the cluster does
that by itself.
Knowingly absent: an election is complete when it is durable that the preferred leader will lead;
the present leader hands over after that.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.waits import Turn
from barnabas.broker.cluster.damaged_copies import Copies
from barnabas.broker.cluster.moves import Moves, Pinning
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.serving.placement import Placement
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import Partition
from barnabas.broker.runtime.turns import next_turn
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
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PinnedPartition,
    PinnedTopic,
)

PARTITIONS_PER_TURN = 1000
"""Number of partitions processed before the loop may get a turn."""


class ElectionType(IntEnum):
    """Kind of an election."""

    PREFERRED = 0
    UNCLEAN = 1


NOT_ELECTED = {
    ElectionType.PREFERRED: (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "The preferred leader was not available.",
    ),
    ElectionType.UNCLEAN: (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "No eligible leaders are available.",
    ),
}
"""Errors of partitions without a leader in service."""


# ----------------------------------------------------------------------------------- ElectLeaders


def refuse_elect_leaders(
    request: ElectLeadersRequest, code: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """Return an error at the top (since v1) and for every partition of the request."""
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
async def elect_leaders(
    catalogue: Catalogue,
    brokers: Brokers,
    moves: Moves | None,
    context: RequestContext,
    request: ElectLeadersRequest,
) -> ElectLeadersResponse:
    """Elect pinned leaders of partitions; return the partitions that need no election."""
    if request.election_type not in set(ElectionType):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        )
    elections = _Elections(catalogue, brokers, moves, ElectionType(request.election_type))
    if request.topic_partitions is None:
        results = elections.everywhere()
    else:
        results = [
            ReplicaElectionResult(
                topic.topic, [elections.of(topic.topic, index) for index in topic.partitions]
            )
            for topic in request.topic_partitions
        ]
    if elections.wishes:
        assert moves is not None, "a broker that is alone leads everything"
        until_s = catalogue.changes.time_in(request.timeout_ms)
        await catalogue.changes.in_time(moves.want(elections.wishes), until_s)
    return ElectLeadersResponse(replica_election_results=results)


class _Elections:
    """Results of elections of one kind."""

    def __init__(
        self, catalogue: Catalogue, brokers: Brokers, moves: Moves | None, kind: ElectionType
    ) -> None:
        self._catalogue = catalogue
        self._view = brokers.view
        self._moves = moves
        self._kind = kind
        self._in_service = {node.node_id for node in self._view.nodes}
        self.wishes: dict[int, int | None] = {}
        """Elected leaders, by partition id."""

    def everywhere(self) -> list[ReplicaElectionResult]:
        """Return all topics, with those of their partitions that need an election."""
        return [
            ReplicaElectionResult(
                topic.name,
                [self._elect(each) for each in topic.partitions if not self._is_well_led(each)],
            )
            for topic in self._catalogue.topics.values()
        ]

    def of(self, topic: str, index: int) -> PartitionResult:
        """Return the result of the election for one partition."""
        if self._catalogue.topic(topic) is None:
            return PartitionResult(
                index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
            )
        partition = self._catalogue.partition(topic, index)
        if partition is None:
            return PartitionResult(
                index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}"
            )
        if not self._is_well_led(partition):
            return self._elect(partition)
        return PartitionResult(
            index,
            ErrorCode.ELECTION_NOT_NEEDED,
            "Leader election not needed for topic partition.",
        )

    def _preferred(self, partition: Partition) -> int | None:
        """Return the preferred leader of a partition, or None for the present one."""
        if self._moves is None or self._kind is not ElectionType.PREFERRED:
            return None
        return self._moves.pinned(partition.partition_id)

    def _takes_partitions(self, node_id: int) -> bool:
        return self._moves is not None and self._moves.takes_partitions(node_id)

    def _is_well_led(self, partition: Partition) -> bool:
        leader_id = self._view.leader_of(partition.partition_id).node_id
        return leader_id in self._in_service and self._preferred(partition) in {None, leader_id}

    def _elect(self, partition: Partition) -> PartitionResult:
        preferred = self._preferred(partition)
        if preferred is None or not self._takes_partitions(preferred):
            return PartitionResult(partition.index, *NOT_ELECTED[self._kind])
        self.wishes[partition.partition_id] = preferred
        return PartitionResult(partition.index, ErrorCode.NONE, None)


# ---------------------------------------------------------------------- ListPartitionReassignments


def refuse_list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Return a response with one error and the requested partitions, without their pins."""
    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        topics=[
            OngoingTopicReassignment(
                topic.name,
                [OngoingPartitionReassignment(index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


@serves(
    LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    refuse=refuse_list_partition_reassignments,
    in_slices=True,
)
async def list_partition_reassignments(
    catalogue: Catalogue,
    brokers: Brokers,
    moves: Moves | None,
    context: RequestContext,
    request: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse:
    """List the partitions that will move to another leader, and pins if requested."""
    response = ListPartitionReassignmentsResponse()
    pinned_topics: list[PinnedTopic] = []
    if request.include_pins:
        response.pinned_topics = pinned_topics
    if moves is None:
        return response
    looked_at = 0
    for name, indexes in _requested(catalogue, request):
        ongoing, pinned = OngoingTopicReassignment(name), PinnedTopic(name)
        for index in indexes:
            partition = catalogue.partition(name, index)
            if partition is not None:
                each = _ongoing(brokers, moves, partition)
                if each is not None:
                    ongoing.partitions.append(each)
                node_id = moves.pinned(partition.partition_id)
                if node_id is not None:
                    pinned.partitions.append(PinnedPartition(index, node_id))
            looked_at += 1
            if looked_at % PARTITIONS_PER_TURN == 0:
                await Turn()
        if ongoing.partitions:
            response.topics.append(ongoing)
        if pinned.partitions:
            pinned_topics.append(pinned)
    return response


def _requested(
    catalogue: Catalogue, request: ListPartitionReassignmentsRequest
) -> list[tuple[str, Iterable[int]]]:
    """Return the requested partitions by topic, also missing ones."""
    if request.topics is None:
        return [(name, range(len(topic.partitions))) for name, topic in catalogue.topics.items()]
    return [(topic.name, topic.partition_indexes) for topic in request.topics]


def _ongoing(
    brokers: Brokers, moves: Moves, partition: Partition
) -> OngoingPartitionReassignment | None:
    """Return an ongoing reassignment as in Kafka, or None if the partition stays where it is."""
    wanted = moves.wanted(partition.partition_id)
    if wanted is None:
        return None
    now, then = _replicas(brokers, partition), _replicas(brokers, partition, wanted)
    removing = [each for each in now if each not in then]
    return OngoingPartitionReassignment(
        partition.index,
        replicas=then + removing,
        adding_replicas=[each for each in then if each not in now],
        removing_replicas=removing,
    )


def _replicas(brokers: Brokers, partition: Partition, leader_id: int | None = None) -> list[int]:
    factor = partition.topic.log_config.replication_factor
    return Copies(brokers.view).of(partition.partition_id, factor, leader_id)


# --------------------------------------------------------------------- AlterPartitionReassignments


@serves(ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1), in_slices=True)
async def alter_partition_reassignments(
    catalogue: Catalogue,
    brokers: Brokers,
    moves: Moves | None,
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse:
    """Pin partitions to leaders, move them without a pin, or end pins."""
    reassigning = _Reassigning(catalogue, brokers, moves)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    looked_at = 0
    for topic in request.topics:
        answers = ReassignableTopicResponse(topic.name)
        for named in topic.partitions:
            answer = ReassignablePartitionResponse(named.partition_index)
            try:
                reassigning.take(
                    topic.name,
                    named,
                    may_change_factor=request.allow_replication_factor_change,
                )
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, error.message
            answers.partitions.append(answer)
            looked_at += 1
            if looked_at % PARTITIONS_PER_TURN == 0:
                await next_turn()
        response.responses.append(answers)
    await reassigning.finish(request.timeout_ms)
    return response


class _Reassigning:
    """The changes of pins and the moves that one request asks for."""

    def __init__(self, catalogue: Catalogue, brokers: Brokers, moves: Moves | None) -> None:
        self._catalogue = catalogue
        self._brokers = brokers
        self._moves = moves
        self._placement = Placement(brokers, moves)
        self._pins: dict[int, int | None] = {}
        self._wishes: dict[int, int | None] = {}
        """Wishes to be written after the pins."""

    def take(self, topic: str, named: ReassignablePartition, *, may_change_factor: bool) -> None:
        """Add the change of a partition; raises KafkaError if it is not possible."""
        partition = self._found(topic, named.partition_index)
        if named.pinning not in set(Pinning):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown pinning {named.pinning}")
        if named.pinning == Pinning.ENDED:
            self._pin(partition, None)
            return
        if named.replicas is None:  # "Cancel it".
            if self._wanted(partition) is None:
                raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            leader_id = self._leader_of(partition)
            self._pin(partition, None if leader_id == NO_NODE else leader_id)
            return
        self._placement.check_replicas(named.replicas)
        if not may_change_factor:
            self._check_factor(partition, len(named.replicas))
        if named.pinning == Pinning.LEFT:
            self._wish(partition, named.replicas[0])
        else:
            self._pin(partition, named.replicas[0])

    async def finish(self, timeout_ms: int) -> None:
        """Make all changes of the request durable; raises KafkaError REQUEST_TIMED_OUT."""
        # A single broker leads every partition already.
        if self._moves is not None and (self._pins or self._wishes):
            changes = self._catalogue.changes
            await changes.in_time(self._store(self._moves), changes.time_in(timeout_ms))

    async def _store(self, moves: Moves) -> None:
        if self._pins:
            await moves.pin(self._pins)
        if self._wishes:
            await moves.want(self._wishes)

    def _found(self, topic: str, index: int) -> Partition:
        if self._catalogue.topic(topic) is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
            )
        partition = self._catalogue.partition(topic, index)
        if partition is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}."
            )
        return partition

    def _check_factor(self, partition: Partition, factor: int) -> None:
        now = len(_replicas(self._brokers, partition))
        if now != factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {now} to {factor}",
            )

    def _pin(self, partition: Partition, node_id: int | None) -> None:
        self._pins[partition.partition_id] = node_id
        self._wishes.pop(partition.partition_id, None)

    def _wish(self, partition: Partition, node_id: int) -> None:
        """Plan a next leader; the present leader needs no plan, and ends an existing one."""
        if node_id != self._leader_of(partition):
            self._wishes[partition.partition_id] = node_id
        elif self._wanted(partition) is not None:
            self._wishes[partition.partition_id] = None

    def _leader_of(self, partition: Partition) -> int:
        return self._brokers.view.leader_of(partition.partition_id).node_id

    def _wanted(self, partition: Partition) -> int | None:
        """Return the next leader of a partition, with the changes of this request so far."""
        partition_id = partition.partition_id
        if partition_id in self._wishes:
            return self._wishes[partition_id]
        if partition_id in self._pins:
            pinned = self._pins[partition_id]
            return None if pinned == self._leader_of(partition) else pinned
        return None if self._moves is None else self._moves.wanted(partition_id)
