"""Who leads the partitions of topics, as one client is told (Metadata, DescribeTopicPartitions).

A partition without a leader in service is LEADER_NOT_AVAILABLE. One whose leader has no listener of
the name that the client has come by is LISTENER_NOT_FOUND; before Metadata 6 clients do not know
that, and are told the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.api.brokers import Broker, Brokers
from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.cluster.copies import copies
from barnabas.broker.cluster.view import NO_NODE, Leader
from barnabas.broker.topics.topic import Partition, Topic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataResponsePartition

LISTENER_NOT_FOUND_SINCE: Final = 6
"""Of Metadata."""


class Leaders:
    """The brokers and leaders that one request is answered with."""

    def __init__(self, brokers: Brokers, context: RequestContext) -> None:
        self._view = brokers.view
        self._reachable = brokers.reachable(context)
        self._controller_id = brokers.controller_id(self._reachable)
        self._reaches_all = len(self._reachable) == len(self._view.nodes)
        is_old = context.api_key == METADATA.key and context.api_version < LISTENER_NOT_FOUND_SINCE
        self._unreachable = (
            ErrorCode.LEADER_NOT_AVAILABLE if is_old else ErrorCode.LISTENER_NOT_FOUND
        )

    @property
    def brokers(self) -> Iterable[Broker]:
        """Return the brokers that the client can reach."""
        return self._reachable.values()

    @property
    def controller_id(self) -> int:
        """Return the broker that the client is to send changes to; NO_NODE if it reaches none."""
        return self._controller_id

    def described(
        self, topic: Topic, first: int = 0, limit: int | None = None
    ) -> list[MetadataResponsePartition]:
        """Return what the client is told of some partitions of a topic, by index."""
        self._describe(topic)
        last = None if limit is None else first + limit
        described = topic.described[first:last]  # The answer may be encoded while this grows.
        if self._reaches_all:
            return described
        return [self._told(each) for each in described]

    def _describe(self, topic: Topic) -> None:
        """Describe what is new since the last request: partitions, or all if leaders have changed.

        Kept with the topic, because topics can have thousands.
        """
        if topic.described_version != self._view.version:
            topic.described_version = self._view.version
            topic.described = []
        if len(topic.described) == len(topic.partitions):
            return
        in_service = {node.node_id for node in self._view.nodes}
        factor = topic.log_config.replication_factor
        alike: dict[int, list[int]] = {}  # One list for all that have one copy, at the same broker.
        for partition in topic.partitions[len(topic.described) :]:
            node_id, epoch = self._view.leader_of(partition.partition_id)
            replicas = copies(partition.partition_id, node_id, in_service, factor)
            if len(replicas) == 1:
                replicas = alike.setdefault(node_id, replicas)
            leader = Leader(node_id if node_id in in_service else NO_NODE, epoch)
            topic.described.append(_partition(partition, leader, replicas))

    def _told(self, partition: MetadataResponsePartition) -> MetadataResponsePartition:
        if partition.error_code or partition.leader_id in self._reachable:
            return partition
        return MetadataResponsePartition(
            error_code=self._unreachable,
            partition_index=partition.partition_index,
            leader_id=NO_NODE,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replica_nodes,
            isr_nodes=partition.isr_nodes,
        )


def _partition(
    partition: Partition, leader: Leader, replicas: list[int]
) -> MetadataResponsePartition:
    is_led = leader.node_id != NO_NODE
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=replicas,
        isr_nodes=replicas if is_led else [],
    )
