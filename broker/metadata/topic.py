"""One topic and its partitions, as requests meet them."""

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
"""What a client says that does not know a partition's leader epoch."""


class LogNotHere(KafkaError):
    """A partition whose log this broker has not: another broker leads it, or no broker does."""

    def __init__(self, code: ErrorCode, partition: Partition) -> None:
        super().__init__(code)
        self.partition = partition


class Partition:
    """One partition of a topic, and its log, if this broker leads it."""

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
        """None: another broker leads the partition, or none."""
        self.is_coming = False
        """Whether this broker leads the partition, and does not serve it yet."""
        self.is_unreadable = False
        """Whether it is this broker that leads the partition, and cannot read its log."""
        self.refused: RefusedBatches | None = None
        """What was refused here for a moment; None: nothing, as nearly always."""
        self.topic_partition = TopicPartition(topic.name, index)
        """What transactions call it."""

    def note_refused(self, producer_id: int, epoch: int, sequence: int, now_s: float) -> None:
        """See ``RefusedBatches.note``."""
        if self.refused is None:
            self.refused = RefusedBatches()
        self.refused.note(producer_id, epoch, sequence, now_s)

    @property
    def error_without_log(self) -> ErrorCode:
        """Why there is no log here; KAFKA_STORAGE_ERROR has clients ask again who leads, too."""
        if self.is_unreadable:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def leader_epoch_error(self, current_leader_epoch: int) -> ErrorCode:
        """Compare the epoch a client believes in with ours; -1 is no belief (KIP-320).

        ``error_without_log``, whatever it believes, where another broker leads the partition: what
        is known here of that one's epoch may be old.
        """
        if self.log is None:
            return self.error_without_log
        ours = self.log.leader_epoch
        if current_leader_epoch in {NO_EPOCH, ours}:
            return ErrorCode.NONE
        if current_leader_epoch < ours:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def log_here(self) -> PartitionLog:
        """Return the log; raises LogNotHere of ``error_without_log`` if this broker has none."""
        if self.log is None:
            raise LogNotHere(self.error_without_log, self)
        return self.log


class LeasedPartition(Partition):
    """A partition of a cluster: it is read here while this broker is sure of its lease only.

    Another broker may lead it once the lease is over, and what is read here ends too early then.
    What is not read is refused as a whole (``broker/cluster/serving/lease_gate.py``).
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
        """See ``Partition``; NOT_LEADER_OR_FOLLOWER, too, without a valid lease."""
        if not self._may_serve():
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return super().leader_epoch_error(current_leader_epoch)


class Topic:
    """One topic: its partitions by index, its own settings, and what they mean to storage."""

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
        """What Metadata says of the partitions: kept, because topics can have thousands."""
        self.described_version = 0
        """Of the cluster's view when that was made."""

    def partitions_here(self) -> list[tuple[Partition, PartitionLog]]:
        """Return the partitions that this broker leads, and their logs."""
        return [(each, each.log) for each in self.partitions if each.log is not None]
