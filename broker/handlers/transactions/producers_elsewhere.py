"""DescribeProducers of partitions that other brokers lead: their leaders describe them.

Apache Kafka's ``kafka-transactions find-hanging --broker-id`` sends DescribeProducers to a replica,
leader or not, and fails on NOT_LEADER_OR_FOLLOWER. In Apache Kafka each replica
has a log of its own. Here only the leader has it, so a broker that is shown among the replicas
forwards the request for such partitions to their leaders, over the connections between brokers.

Rules of this file:

* A request that came over such a connection is never forwarded: no request can go round in circles.
* What a client may not read is not forwarded. The leader trusts the broker that forwards.
* A partition is forwarded once, however often the request names it. Time and memory are limited:
  ``TOTAL_MS``, and as many producers as one response may have.
* A partition that has moved meanwhile is forwarded a second time, to its new leader. A partition
  without a result gets NOT_LEADER_OR_FOLLOWER. Java's client looks up the leader again then, unless
  its user has named a broker: ``kafka-transactions --broker-id`` fails, and has to be run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.damaged_copies import Copies
from barnabas.broker.cluster.peers.interface import Failure, NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.runtime.turns import next_turn
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.serving.brokers import Brokers
    from barnabas.broker.metadata.topic import Partition
    from barnabas.broker.runtime.host import Host

PRODUCERS_PER_ANSWER_MAX: Final = 100_000
"""Maximum of one response: a short request can name a partition very often."""
NO_ROOM: Final = f"One answer has no room for more than {PRODUCERS_PER_ANSWER_MAX} producers."

VERSION: Final = 0
TOTAL_MS: Final = 10_000
"""Maximum time for all leaders together."""
LEADER_MS: Final = 3_000
"""Maximum time for one response of a leader, so that a leader that hangs leaves time for others."""
PARTITIONS_AT_ONCE: Final = 1_000
"""Partitions of one forwarded request."""

_WITHOUT_RESULT: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    # A leader of an earlier release wants READ of the broker that forwards; the client has it.
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}

Partitions = Mapping[TopicPartition, "Partition"]


class ProducersElsewhere:
    """The leaders that one request is forwarded to; make a new one for each request."""

    def __init__(self, brokers: Brokers, peers: Peers, host: Host, producers_max: int) -> None:
        """``producers_max``: limit of producers, above which no other leader gets a request."""
        self._brokers = brokers
        self._view = brokers.view
        self._peers = peers
        self._host = host
        self._copies = Copies(brokers.view)
        self._room = producers_max
        self._ends_ms = self._now_ms() + TOTAL_MS

    def is_replica(self, partition: Partition) -> bool:
        """Return whether another broker leads the partition and clients see this one a replica."""
        factor = partition.topic.log_config.replication_factor
        if partition.log is not None or factor <= 1:
            return False
        return self._view.node_id in self._copies.of(partition.partition_id, factor)

    async def describe(self, partitions: Partitions) -> Mapping[TopicPartition, PartitionResponse]:
        """Return the descriptions of the leaders; a partition without a result is left out."""
        found: dict[TopicPartition, PartitionResponse] = {}
        tried = await self._forward(partitions, found)
        misses = self._brokers.misses
        if len(found) < len(partitions) and misses is not None:
            await misses.wait_for_poll()
            moved = {
                place: partition
                for place, partition in partitions.items()
                if place not in found and self._leader_of(partition) != tried[place]
            }
            await self._forward(moved, found)
        return found

    async def _forward(
        self, partitions: Partitions, found: dict[TopicPartition, PartitionResponse]
    ) -> Mapping[TopicPartition, int]:
        """Add the descriptions of the leaders to ``found``; return the leader of each partition."""
        leaders = {place: self._leader_of(each) for place, each in partitions.items()}
        by_leader: dict[int, list[TopicPartition]] = {}
        for place, node_id in leaders.items():
            if node_id not in {NO_NODE, self._view.node_id}:
                by_leader.setdefault(node_id, []).append(place)
        # One leader after the other: only one response at a time is in memory besides `found`.
        for node_id, places in by_leader.items():
            for start in range(0, len(places), PARTITIONS_AT_ONCE):
                some = places[start : start + PARTITIONS_AT_ONCE]
                if self._room <= 0:
                    found.update((each, _no_room(each)) for each in some)
                    continue
                response = await self._ask(node_id, some)
                if isinstance(response, NoAnswer):
                    break
                self._take(response, frozenset(some), found)
                await next_turn()
        return leaders

    async def _ask(
        self, node_id: int, places: Sequence[TopicPartition]
    ) -> DescribeProducersResponse | NoAnswer:
        """Return the response of a leader."""
        left_ms = self._ends_ms - self._now_ms()
        if left_ms <= 0:
            return NoAnswer(Failure.LATE, "no time is left for this leader")
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        answered: asyncio.Future[DescribeProducersResponse | NoAnswer]
        answered = self._host.loop.create_future()

        def on_answer(response: DescribeProducersResponse | NoAnswer) -> None:
            if not answered.done():  # The client may have gone meanwhile.
                answered.set_result(response)

        self._peers.ask(
            node_id,
            Purpose.PRODUCERS,
            DESCRIBE_PRODUCERS,
            VERSION,
            DescribeProducersRequest([TopicRequest(*each) for each in topics.items()]),
            on_answer,
            timeout_ms=min(LEADER_MS, left_ms),
        )
        return await answered

    def _take(
        self,
        response: DescribeProducersResponse,
        places: Collection[TopicPartition],
        found: dict[TopicPartition, PartitionResponse],
    ) -> None:
        """Keep the descriptions that a leader was to return, and no others."""
        for topic in response.topics:
            for partition in topic.partitions:
                place = TopicPartition(topic.name, partition.partition_index)
                if place in places and partition.error_code not in _WITHOUT_RESULT:
                    found[place] = partition
                    self._room -= len(partition.active_producers)

    def _leader_of(self, partition: Partition) -> int:
        return self._view.leader_of(partition.partition_id).node_id

    def _now_ms(self) -> float:
        return self._host.clock.monotonic() * 1000


def _no_room(place: TopicPartition) -> PartitionResponse:
    return PartitionResponse(place.partition, ErrorCode.INVALID_REQUEST, NO_ROOM)
