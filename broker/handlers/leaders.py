"""Leaders of partitions in responses to one client (Metadata, DescribeTopicPartitions).

A partition without a leader in service is LEADER_NOT_AVAILABLE. If the leader has no listener of
the client's listener name, it is LISTENER_NOT_FOUND; before Metadata 6 clients do not know that
code, and get the first.
A list of replicas is as long as the topic's replication factor, if that many brokers are known.
Fenced brokers in it are offline, and not in sync. Metadata 0 has brokers in service only, as in
Apache Kafka: clients of that time look up each replica among the brokers of the same response.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.cluster.damaged_copies import Copies
from barnabas.broker.cluster.serving.brokers import Broker, Brokers
from barnabas.broker.cluster.view import NO_NODE, Leader
from barnabas.broker.metadata.topic import Partition, Topic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataResponsePartition

LISTENER_NOT_FOUND_SINCE: Final = 6
"""Version of Metadata."""
OFFLINE_REPLICAS_SINCE: Final = 1
"""Version of Metadata: before, all replicas are among the brokers of the response."""


class Leaders:
    """Brokers and leaders for the response to one request."""

    def __init__(self, brokers: Brokers, context: RequestContext) -> None:
        self._view = brokers.view
        self._reachable = brokers.reachable(context)
        self._controller_id = brokers.controller_id(self._reachable)
        self._reaches_all = len(self._reachable) == len(self._view.nodes)
        version = LISTENER_NOT_FOUND_SINCE
        if context.api_key == METADATA.key:
            version = context.api_version
        self._unreachable = (
            ErrorCode.LEADER_NOT_AVAILABLE
            if version < LISTENER_NOT_FOUND_SINCE
            else ErrorCode.LISTENER_NOT_FOUND
        )
        self._names_offline = version >= OFFLINE_REPLICAS_SINCE

    @property
    def brokers(self) -> Iterable[Broker]:
        """Return the brokers that the client can reach."""
        return self._reachable.values()

    @property
    def controller_id(self) -> int:
        """Return the node ID for the client's changes, or NO_NODE if it reaches none."""
        return self._controller_id

    def described(
        self, topic: Topic, first: int = 0, limit: int | None = None
    ) -> list[MetadataResponsePartition]:
        """Return some partitions of a topic, by index, as the client sees them."""
        self._describe(topic)
        last = None if limit is None else first + limit
        described = topic.described[first:last]  # The response may be encoded while this grows.
        if self._reaches_all and self._names_offline:
            return described
        return [self._visible(each) for each in described]

    def _describe(self, topic: Topic) -> None:
        """Describe new partitions, or all if leaders have changed.

        Kept with the topic, because topics can have thousands.
        """
        if topic.described_version != self._view.version:
            topic.described_version = self._view.version
            topic.described = []
        if len(topic.described) == len(topic.partitions):
            return
        copies = Copies(self._view)
        factor = topic.log_config.replication_factor
        alike: dict[int, list[int]] = {}  # One list for all that have one copy, at the same broker.
        for partition in topic.partitions[len(topic.described) :]:
            node_id, epoch = self._view.leader_of(partition.partition_id)
            replicas = copies.of(partition.partition_id, factor, node_id)
            if len(replicas) == 1:
                replicas = alike.setdefault(node_id, replicas)
            leader = Leader(node_id if node_id in copies.in_service else NO_NODE, epoch)
            topic.described.append(_partition(partition, leader, replicas, copies.in_service))

    def _visible(self, partition: MetadataResponsePartition) -> MetadataResponsePartition:
        """Return a partition as for a client that does not reach all brokers."""
        reachable = self._reachable
        replicas = partition.replica_nodes
        offline = [each for each in replicas if each not in reachable]
        if not offline:
            return partition
        is_led_afar = not partition.error_code and partition.leader_id not in reachable
        return MetadataResponsePartition(
            error_code=self._unreachable if is_led_afar else partition.error_code,
            partition_index=partition.partition_index,
            leader_id=NO_NODE if is_led_afar else partition.leader_id,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas
            if self._names_offline
            else [each for each in replicas if each in reachable],
            isr_nodes=partition.isr_nodes
            if self._names_offline
            else [each for each in partition.isr_nodes if each in reachable],
            offline_replicas=offline,
        )


def _partition(
    partition: Partition, leader: Leader, replicas: list[int], in_service: Collection[int]
) -> MetadataResponsePartition:
    """Return a partition as for a client that reaches all brokers in service."""
    is_led = leader.node_id != NO_NODE
    offline = [each for each in replicas if each not in in_service]
    in_sync = [each for each in replicas if each in in_service] if offline else replicas
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=replicas,
        isr_nodes=in_sync if is_led else [],
        offline_replicas=offline,
    )
