"""Topic and partitions, as requests use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.broker.metadata.pending_retries import RefusedBatches
from barnabas.broker.metadata.topic_names import INTERNAL
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import MetadataResponsePartition
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.partition_log import PartitionLog

Configs = Mapping[str, str]

NO_EPOCH: Final = -1
"""Epoch from a client that does not know a partition's leader epoch."""


class LogNotHere(KafkaError):
    """Access to a partition whose log this broker does not have: another broker leads it, or
    none.
    """

    def __init__(self, code: ErrorCode, partition: Partition) -> None:
        super().__init__(code)
        self.partition = partition


class Partition:
    """Partition of a topic, and its log, if this broker leads it."""

    __slots__ = (
        "index",
        "is_coming",
        "is_unreadable",
        "log",
        "partition_id",
        "refused",
        "topic",
        "topic_partition",
    )

    def __init__(
        self, topic: Topic, index: int, partition_id: int, log: PartitionLog | None
    ) -> None:
        self.topic = topic
        self.index = index
        self.partition_id = partition_id
        self.log = log
        """Log, or None if another broker or none leads the partition."""
        self.is_coming = False
        """Whether this broker leads the partition, and does not serve it yet."""
        self.is_unreadable = False
        """Whether this broker leads the partition, and cannot read its log."""
        self.refused: RefusedBatches | None = None
        """Temporarily refused batches, or None without any."""
        self.topic_partition = TopicPartition(topic.name, index)
        """Name of the partition in transactions."""

    def note_refused(self, producer_id: int, epoch: int, sequence: int, now_s: float) -> None:
        """Record a refused batch; see ``RefusedBatches.note``."""
        if self.refused is None:
            self.refused = RefusedBatches()
        self.refused.note(producer_id, epoch, sequence, now_s)

    @property
    def error_without_log(self) -> ErrorCode:
        """Return the error for a missing log; after KAFKA_STORAGE_ERROR clients also look up the
        leader.
        """
        if self.is_unreadable:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def leader_epoch_error(self, current_leader_epoch: int) -> ErrorCode:
        """Compare a client's leader epoch with this broker's; -1 is no epoch (KIP-320).

        If another broker leads the partition, the result is ``error_without_log`` in any case: this
        broker's epoch for that leader may be outdated.
        """
        if self.log is None:
            return self.error_without_log
        own = self.log.leader_epoch
        if current_leader_epoch in {NO_EPOCH, own}:
            return ErrorCode.NONE
        if current_leader_epoch < own:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def log_here(self) -> PartitionLog:
        """Return the log; raises LogNotHere with ``error_without_log`` if this broker has none."""
        if self.log is None:
            raise LogNotHere(self.error_without_log, self)
        return self.log


class LeasedPartition(Partition):
    """Partition of a cluster, which is read only while this broker is sure of its lease.

    After the lease has expired another broker may lead it, and this log may be incomplete. Requests
    other than reads are refused as a whole (``broker/cluster/serving/lease_gate.py``).
    """

    __slots__ = ("_may_serve",)

    def __init__(
        self,
        topic: Topic,
        index: int,
        partition_id: int,
        log: PartitionLog | None,
        may_serve: Callable[[], bool],
    ) -> None:
        super().__init__(topic, index, partition_id, log)
        self._may_serve = may_serve

    def leader_epoch_error(self, current_leader_epoch: int) -> ErrorCode:
        """Return the error as ``Partition``, or NOT_LEADER_OR_FOLLOWER without a valid lease."""
        if not self._may_serve():
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return super().leader_epoch_error(current_leader_epoch)


class Topic:
    """Topic: its partitions by index, its own settings, and their effect on storage."""

    __slots__ = (
        "configs",
        "described",
        "described_version",
        "is_internal",
        "log_config",
        "name",
        "partitions",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: bytes, configs: Configs, settings: LogConfig) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = name in INTERNAL
        self.configs = configs
        self.log_config = settings
        self.partitions: list[Partition] = []
        self.described: list[MetadataResponsePartition] = []
        """Partitions in Metadata's form, kept because topics can have thousands."""
        self.described_version = 0
        """Version of the cluster's view in ``described``."""

    def partitions_here(self) -> list[tuple[Partition, PartitionLog]]:
        """Return the partitions that this broker leads, and their logs."""
        return [(each, each.log) for each in self.partitions if each.log is not None]
