"""Leaders of partitions, and their moves by Kafka's reassignments.

Where the store keeps the copies, the first replica of a reassignment is the new leader. Apache
Kafka only reorders the replicas; once all of them exist it also gets an election of the first one.
So one procedure serves both. Barnabas pins a partition to the broker it was moved to; Apache Kafka
moves partitions by itself only to their first replica.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.admin.exchange import Rejected, check, gathered, partition_text
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cluster.moves import Pinning
from barnabas.broker.cluster.view import NO_NODE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
)
from barnabas.storage.runtime.clock import monotonic, sleep

if TYPE_CHECKING:
    from barnabas.broker.admin.exchange import TopicPartition
    from barnabas.broker.cli.cluster_view import Cluster

LOOK_EVERY_S: Final = 0.1
PREFERRED: Final = 0
"""The kind of election, in Kafka's numbers."""


class Placed(NamedTuple):
    """Partition, its leader (-1 for none), and its replicas, the preferred leader first."""

    topic: str
    number: int
    leader_id: int
    replicas: Sequence[int]

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and number."""
        return self.topic, self.number

    def led_by(self, node_id: int) -> list[int]:
        """Return the replicas with another broker as the first one."""
        others = [each for each in self.replicas if each != node_id]
        return [node_id, *others[: max(len(self.replicas) - 1, 0)]]


class Move(NamedTuple):
    """A partition and its intended leader."""

    partition: Placed
    to: int


def placed(cluster: Cluster, topics: list[str] | None = None) -> list[Placed]:
    """Return the partitions of some topics, or of all; raises Rejected for an unknown topic.

    Topics deleted meanwhile are omitted if all are requested.
    """
    found = []
    for topic in cluster.topics(topics):
        name = topic.name or ""
        if topics is not None:
            check(name, topic.error_code)
        found += [
            Placed(name, each.partition_index, each.leader_id, each.replica_nodes)
            for each in topic.partitions
        ]
    return found


class Asked(NamedTuple):
    """Requested reassignments by partition."""

    ongoing: Mapping[TopicPartition, int]
    """New leaders of partitions whose move is not finished."""
    pins: Mapping[TopicPartition, int] | None
    """Node IDs to which partitions are pinned, or None if the brokers know no pins."""


def asked_for(cluster: Cluster) -> Asked:
    """Return the requested reassignments; raises Rejected."""
    timeout_ms = int(cluster.timeout_seconds * 1000)
    request = ListPartitionReassignmentsRequest(timeout_ms, None, include_pins=True)
    response = cluster.ask(LIST_PARTITION_REASSIGNMENTS, request)
    check("reassignments", response.error_code, response.error_message)
    ongoing = {
        (topic.name, each.partition_index): each.replicas[0]
        for topic in response.topics
        for each in topic.partitions
    }
    if response.pinned_topics is None:
        return Asked(ongoing, None)
    pins = {
        (topic.name, each.partition_index): each.node_id
        for topic in response.pinned_topics
        for each in topic.partitions
    }
    return Asked(ongoing, pins)


def away_from(node_id: int, partitions: Iterable[Placed], node_ids: Iterable[int]) -> list[Move]:
    """Return the moves that empty a broker and distribute its leaderships evenly.

    ``node_ids`` are the possible leaders. A partition with other replicas goes to one of them.
    Raises CommandError if there is no other broker.
    """
    others = [each for each in node_ids if each != node_id]
    if not others:
        raise CommandError(f"broker {node_id} is the only broker: no other can lead its partitions")
    partitions = list(partitions)
    load = Counter(dict.fromkeys(others, 0))
    load.update(each.leader_id for each in partitions if each.leader_id in load)
    moves = []
    for each in partitions:
        if each.leader_id == node_id:
            candidates = [other for other in each.replicas if other in load] or others
            to = min(candidates, key=lambda other: (load[other], other))
            load[to] += 1
            moves.append(Move(each, to))
    return moves


class Mover:
    """Asks for moves, and waits for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = int(cluster.timeout_seconds * 1000)
        self.problems: dict[TopicPartition, Rejected] = {}
        """Refused moves and their errors."""
        self.leaders: Mapping[TopicPartition, int] = {}
        """Leaders of the awaited partitions, when they were last read."""

    def ask(self, moves: Sequence[Move], pinning: Pinning = Pinning.SET) -> list[Move]:
        """Request moves; return the accepted ones."""
        self._alter(
            (partition, ReassignablePartition(partition.number, partition.led_by(to), pinning))
            for partition, to in moves
        )
        return [each for each in moves if each.partition.topic_partition not in self.problems]

    def release(self, partitions: Iterable[Placed]) -> None:
        """Remove the pins of partitions, at brokers that know pins."""
        self._alter(
            (each, ReassignablePartition(each.number, None, Pinning.ENDED)) for each in partitions
        )

    def _alter(self, changes: Iterable[tuple[Placed, ReassignablePartition]]) -> None:
        by_topic = gathered((partition.topic, asked) for partition, asked in changes)
        topics = [ReassignableTopic(*each) for each in by_topic.items()]
        request = AlterPartitionReassignmentsRequest(self._timeout_ms, topics=topics)
        response = self._cluster.ask(ALTER_PARTITION_REASSIGNMENTS, request)
        check("reassignments", response.error_code, response.error_message)
        for topic in response.responses:
            for each in topic.partitions:
                place = topic.name, each.partition_index
                if each.error_code:
                    problem = Rejected(partition_text(place), each.error_code, each.error_message)
                    self.problems[place] = problem

    def wait(self, moves: Sequence[Move], *, anywhere: bool = False) -> list[Move]:
        """Wait until the partitions have their new leaders; return those that do not in time.

        With ``anywhere`` any other broker than the previous leader is accepted.
        """
        until_s = monotonic() + self._cluster.timeout_seconds
        while left := self._left(moves, anywhere=anywhere):
            if monotonic() >= until_s:
                return left
            self._elect(left)
            sleep(LOOK_EVERY_S)
        return []

    def _left(self, moves: Sequence[Move], *, anywhere: bool) -> list[Move]:
        self.leaders = self._leaders(moves)
        left = []
        for each in moves:
            leader_id = self.leaders.get(each.partition.topic_partition, NO_NODE)
            has_left = leader_id not in {each.partition.leader_id, NO_NODE}
            if leader_id != each.to and not (anywhere and has_left):
                left.append(each)
        return left

    def _leaders(self, moves: Sequence[Move]) -> Mapping[TopicPartition, int]:
        topics = sorted({each.partition.topic for each in moves})
        return {
            (topic.name or "", each.partition_index): each.leader_id
            for topic in self._cluster.topics(topics)
            for each in topic.partitions
        }

    def _elect(self, moves: Sequence[Move]) -> None:
        """Elect the first replica of partitions that only need an election.

        The leaders show the result. Brokers that know pins need no election, which would return a
        partition moved without a pin to its pinned broker.
        """
        under_way, pins = asked_for(self._cluster)
        if pins is not None:
            return
        by_topic = gathered(
            each.topic_partition for each, _ in moves if each.topic_partition not in under_way
        )
        if by_topic:
            asked = [TopicPartitions(*each) for each in by_topic.items()]
            request = ElectLeadersRequest(PREFERRED, asked, self._timeout_ms)
            response = self._cluster.ask(ELECT_LEADERS, request)
            if response.error_code != ErrorCode.NOT_CONTROLLER:
                check("elections", response.error_code)
