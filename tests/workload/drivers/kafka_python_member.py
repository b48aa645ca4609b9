"""A member of a group on kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from tests.history.model import ASSIGNED, LOST, Partition, Read
from tests.workload.drivers import MOST_POLLED, POLL_S
from tests.workload.progress import CommitRefused, CommitUnsure, Progress
from tests.workload.settings import Settings

COMMIT_TIMEOUT_MS = 10_000
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
REFUSALS = (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


DOWN = (KafkaConnectionError, KafkaTimeoutError)


class Listener(ConsumerRebalanceListener):
    """Writes down what comes and goes.

    It is called on the thread that does the I/O and cannot commit: what was not committed when the
    group is rebalanced is read again.
    """

    def __init__(
        self,
        progress: Progress,
        forget_offsets: Callable[[], None],
        forget_positions: Callable[[], None],
    ) -> None:
        self._progress = progress
        self._forget_offsets = forget_offsets
        self._forget_positions = forget_positions

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self._forget_offsets()
        self._progress.moved(map(_place, assigned), ASSIGNED)

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        # Its cooperative assignor assigns partitions before they were revoked, when a member comes
        # back that had been removed: that a partition was revoked here proves nothing.
        self._progress.moved(map(_place, revoked), LOST)
        self._forget_positions()

    def on_partitions_lost(self, lost: list[TopicPartition]) -> None:
        self._progress.moved(map(_place, lost), LOST)


class Member:
    """A member of a group, by the classic protocol, eager and cooperative."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._progress = progress
        static: dict[str, Any] = (
            {"group_instance_id": settings.instance} if settings.instance else {}
        )
        self._consumer = _connected(
            bootstrap_servers=settings.servers,
            client_id=settings.name,
            group_id=settings.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[ASSIGNORS[settings.assignor]],
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=2000,
            **static,
        )
        self._is_eager = settings.assignor == "range"
        self._lose_partitions_with_the_membership()
        self._consumer.subscribe(
            topics=() if settings.pattern else list(settings.topics),
            pattern=settings.pattern,
            listener=Listener(progress, self._forget_offsets, self._forget_positions),
        )

    def _forget_offsets(self) -> None:
        """Drop responses to OffsetFetch that were too late for their caller.

        kafka-python 3.0.12 keeps them for the next request for the same partitions, at any later
        time: a member that got its partitions back then started at old offsets of the group.
        """
        self._consumer._coordinator._offset_fetch_futures.clear()

    def _forget_positions(self) -> None:
        """Begin at the committed offsets where the eager protocol has revoked everything.

        kafka-python 3.0.12 keeps the positions of partitions that it gets back, although it may
        have missed a generation in which another member had them. Java's consumer drops them.
        """
        if self._is_eager:
            self._consumer._subscription.assign_from_subscribed([])

    def _lose_partitions_with_the_membership(self) -> None:
        """Drop the partitions of a member that lost its membership while joining (KIP-429).

        kafka-python 3.0.12 prepares a join once: after UNKNOWN_MEMBER_ID it joins as a new member
        that still claims partitions that others have had since, and continues at its old offsets.
        Java's consumer prepares again, and so does this one.
        """
        coordinator = self._consumer._coordinator
        reset_generation = coordinator.reset_generation

        def reset_and_prepare_again(*member_id: Any, **known: Any) -> None:
            reset_generation(*member_id, **known)
            coordinator.rejoining = False

        coordinator.reset_generation = reset_and_prepare_again

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MOST_POLLED)
        except DOWN:
            # Other libraries return nothing while the broker is down.
            time.sleep(POLL_S)
            return []
        records = (record for batch in polled.values() for record in batch)
        return [Read(r.topic, r.partition, r.offset, r.value.decode()) for r in records]

    def close(self) -> None:
        self._consumer.close()

    def commit(self) -> None:
        with self._progress.commit() as (attempt, offsets):
            if offsets:
                self._send_commit(attempt, offsets)

    def _send_commit(self, attempt: str, offsets: dict[Partition, int]) -> None:
        asked = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, attempt)
            for (topic, partition), offset in offsets.items()
        }
        try:
            self._consumer.commit(asked, timeout_ms=COMMIT_TIMEOUT_MS)
        except REFUSALS as error:
            raise CommitRefused from error
        except KafkaError as error:
            raise CommitUnsure from error


def _connected(**settings: Any) -> KafkaConsumer:
    """Make a consumer, as soon as there is a broker."""
    while True:
        try:
            return KafkaConsumer(**settings)
        except DOWN:
            time.sleep(POLL_S)


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
