"""Writes the markers of decided transactions, until every partition has its own (C6).

Usually all markers of a transaction are appended in the turn in which it is decided, in front of
the record that says it is complete (D5). What cannot be appended then (the disk is full, a
partition is being closed, ``__consumer_offsets`` is not loaded yet) is tried again for as long as
it takes; a transaction over very many partitions is given several turns of the loop.

A partition that a later marker has closed already owes nothing: an operator ended the transaction
there by hand (``kafka-transactions.sh abort`` with later epochs). Where a later transaction is
*open* instead, this one's marker must not end it (M4), so it waits: that cannot happen, and if it
does it is said aloud, and an operator's abort of what is open there lets this one go on. Apache
Kafka stops sending at both, and the transaction hangs until the next start (KAFKA-19999).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.runtime.clock import Timer as ClockTimer
from barnabas.coordinator.transactions.commands import MarkersPlaced, MarkersWritten
from barnabas.coordinator.transactions.state import TopicPartition, Transaction
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from barnabas.broker.coordination.appended_runner import AppendedRunner
    from barnabas.broker.coordination.coordinator_log import CoordinatorLog
    from barnabas.broker.coordination.markers import MarkerWriter
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.coordination.transaction_counts import TransactionCounts
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.transactions.shard import TransactionShard

logger = logging.getLogger(__name__)

MARKERS_PER_TURN: Final = 256
"""Markers written before the loop gets a turn."""
AGAIN_MS: Final = 100
AGAIN_MAX_MS: Final = 1000
"""How soon what could not be written is tried again: at first, and after many attempts."""

_SUPERSEDED: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
"""A marker with a later epoch, of the producer or of a coordinator, was here already."""


@dataclass(slots=True)
class _Retry:
    """A transaction that still owes markers."""

    shard: Shard[TransactionShard]
    attempts: int = 0
    timer: ClockTimer | None = None


class MarkerPhase:
    """The marker phases of one coordinator's transactions."""

    def __init__(
        self,
        log: CoordinatorLog[TransactionShard],
        runner: AppendedRunner[TransactionShard],
        markers: MarkerWriter,
        host: Host,
        counts: TransactionCounts,
        completed: Callable[[str], None],
    ) -> None:
        """``completed`` is called with each transactional id whose transaction is complete."""
        self._log = log
        self._runner = runner
        self._markers = markers
        self._host = host
        self._counts = counts
        self._completed = completed
        self._retries: dict[str, _Retry] = {}
        self._closed = False

    def begin(self, key: str) -> None:
        """Append the markers that a decided transaction owes; when all are there, complete it."""
        shard = self._log.shard_here(key)
        if shard is not None:
            self._write(shard, key, shard.machine.awaiting_markers(key))

    def forget(self, shard: Shard[TransactionShard]) -> None:
        """Send nothing more for a partition that was lost (R6): its next leader does."""
        for key, retry in [*self._retries.items()]:
            if retry.shard is shard:
                self._give_up(key)

    def close(self) -> None:
        """Write nothing more: the broker ends. The next one goes on."""
        self._closed = True
        for key in [*self._retries]:
            self._give_up(key)

    def _give_up(self, key: str) -> None:
        retry = self._retries.pop(key)
        if retry.timer is not None:
            retry.timer.cancel()

    def _write(
        self,
        shard: Shard[TransactionShard],
        key: str,
        owed: list[TopicPartition],
        refused: str = "",
    ) -> None:
        """Write some markers now, and the rest in the next turns.

        ``refused`` says what happened to one of those that were tried before.
        """
        machine = shard.machine
        transaction = machine.transactions.get(key)
        if transaction is None or not transaction.state.is_decided:
            self._retries.pop(key, None)
            return
        marker = TransactionMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            commit=transaction.commits,
            coordinator_epoch=shard.log.leader_epoch,
            transaction_version=transaction.transaction_version,
        )
        counts = self._counts
        marked = []
        for partition in owed[:MARKERS_PER_TURN]:
            error = self._write_one(partition, marker)
            if shard.is_gone:
                return  # On the marker's way it was found out that the topic is deleted.
            if error:
                refused = f"{partition.topic}-{partition.partition}: {error.name}"
                counts.markers_delayed += 1
            else:
                marked.append(partition)
        counts.markers_written += len(marked)
        machine.change(MarkersPlaced(key, marked))
        if len(owed) > MARKERS_PER_TURN:
            rest = owed[MARKERS_PER_TURN:]
            self._host.loop.call_soon(self._next_turn, shard, key, rest, refused)
        elif not machine.awaiting_markers(key):
            self._complete(shard, key, transaction)
        else:
            self._try_again(shard, key, refused)

    def _write_one(self, partition: TopicPartition, marker: TransactionMarker) -> ErrorCode:
        """Write one marker; NONE also where the partition needs none."""
        topic, index = partition
        error = self._markers.write(topic, index, marker)
        if not error:
            return error
        if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ErrorCode.NONE  # It was deleted (M5).
        is_superseded = error in _SUPERSEDED
        if is_superseded and not self._markers.has_open_transaction(
            topic, index, marker.producer_id
        ):
            logger.warning(
                "marker not needed, a later one ended it partition=%s-%d producer=%d epoch=%d",
                *partition,
                marker.producer_id,
                marker.producer_epoch,
            )
            return ErrorCode.NONE
        return error

    def _complete(self, shard: Shard[TransactionShard], key: str, transaction: Transaction) -> None:
        try:
            self._runner.run(key, MarkersWritten(key, *transaction.producer))
        except KafkaError as error:
            self._try_again(shard, key, f"completion: {error.code.name}")
        else:
            self._completed(key)
            self._retries.pop(key, None)

    def _next_turn(
        self, shard: Shard[TransactionShard], key: str, owed: list[TopicPartition], refused: str
    ) -> None:
        if not self._closed and self._log.is_here(shard):
            self._write(shard, key, owed, refused)
            self._host.flush_answers()

    def _try_again(self, shard: Shard[TransactionShard], key: str, reason: str) -> None:
        if self._closed:
            return
        retry = self._retries.setdefault(key, _Retry(shard))
        if retry.timer is not None:
            return
        retry.attempts += 1
        if retry.attempts & (retry.attempts - 1) == 0:  # 1, 2, 4, 8 ...: it may take days.
            owed = len(shard.machine.awaiting_markers(key))
            logger.warning(
                "transaction waits for its markers id=%s missing=%d attempts=%d reason=%s",
                key,
                owed,
                retry.attempts,
                reason,
            )
        delay_ms = min(AGAIN_MS * retry.attempts, AGAIN_MAX_MS)
        retry.timer = self._host.clock.call_later(delay_ms, self._retry, key, retry)

    def _retry(self, key: str, retry: _Retry) -> None:
        retry.timer = None
        if self._log.is_here(retry.shard):
            self.begin(key)
            self._host.flush_answers()
