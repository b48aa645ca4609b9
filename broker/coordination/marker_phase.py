"""Writes the markers of decided transactions, until every partition has its own (C6).

Usually all markers of a transaction are appended in the turn in which it is decided, before the
record of its completion (D5). A marker that cannot be appended then is retried without limit: the
disk is full, a partition is being closed, or ``__consumer_offsets`` is not loaded yet. A
transaction over very many partitions is given several turns of the loop.

In a cluster other brokers lead some of the partitions: their markers are sent
(``remote_markers.py``), and the record of the completion is appended when all are acknowledged
(R3). Those of partitions that are led here precede it as usual; after a refused flush, which may
have dropped some of them, they are written again.

A partition that a later marker has closed already has no pending marker: an operator ended the
transaction there manually (``kafka-transactions.sh abort`` with later epochs). Where a later
transaction is *open* instead, this one's marker must not end it (M4), so it waits. That cannot
happen; if it does it is logged, and an operator's abort of the open transaction lets this one
continue. Apache Kafka stops sending at both, and the transaction hangs until the next start
(KAFKA-19999).

Requests that arrive before a transaction has all its markers wait for that (``TransitionWaits``),
for ``barnabas.transaction.wait.ms`` at most. Apache Kafka refuses them with
CONCURRENT_TRANSACTIONS, so that its clients sleep and try again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.coordinating.remote_markers import (
    AGAIN_MAX_MS,
    AGAIN_MS,
    RemoteMarkers,
)
from barnabas.broker.coordination.runner import Following, Runner
from barnabas.broker.runtime.clock import Timer as ClockTimer
from barnabas.broker.runtime.turns import turn_over
from barnabas.coordinator.transactions.commands import MarkersLost, MarkersPlaced, MarkersWritten
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import CoordinatorLog
    from barnabas.broker.coordination.markers import MarkerWriter
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.coordination.transaction_events import TransactionCounts
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.transactions.shard import TransactionShard

logger = logging.getLogger(__name__)

MARKERS_PER_TURN: Final = 256
"""Markers written before the loop gets a turn."""


@dataclass(slots=True)
class _Retry:
    """A transaction with pending markers."""

    shard: Shard[TransactionShard]
    attempts: int = 0
    timer: ClockTimer | None = None


class MarkerPhase:
    """The marker phases of one coordinator's transactions."""

    def __init__(
        self,
        log: CoordinatorLog[TransactionShard],
        runner: Runner[TransactionShard],
        markers: MarkerWriter,
        host: Host,
        counts: TransactionCounts,
        completed: Callable[[str], None],
        remote_markers: RemoteMarkers[Shard[TransactionShard]] | None,
    ) -> None:
        """``completed`` is called with each transactional id whose transaction is complete.

        ``remote_markers`` writes to partitions that other brokers lead; None if there are no
        others.
        """
        self._log = log
        self._runner = runner
        self._markers = markers
        self._host = host
        self._counts = counts
        self._completed = completed
        self._remote_markers = remote_markers
        self._retries: dict[str, _Retry] = {}
        self._in_turns: set[str] = set()
        """Transactions with markers left for the next turn."""
        self._refusals: dict[str, int] = {}
        """Number of refused flushes at the first marker, by transactional id, until completion."""
        self._closed = False
        if remote_markers is not None:
            remote_markers.belongs_to(self)

    def begin(self, shard: Shard[TransactionShard], key: str) -> Following | None:
        """Append the pending markers of a decided transaction; return its completion, or None.

        The completion is for the runner to append right after them.
        """
        return self._write(shard, key, shard.machine.awaiting_markers(key))

    def resume(self, shard: Shard[TransactionShard], key: str) -> None:
        """Append the pending markers of a transaction and, after the last one, its completion."""
        self._complete(shard, self.begin(shard, key))

    def answered(
        self, shard: Shard[TransactionShard], key: str, placed: list[TopicPartition], refused: str
    ) -> None:
        """Record markers that other brokers wrote; complete a transaction after its last one."""
        machine = shard.machine
        machine.change(MarkersPlaced(key, placed))
        if not machine.owes_markers(key):
            self._complete(shard, self._completion(shard, key))
        elif refused:
            self._try_again(shard, key, refused)

    def forget(self, shard: Shard[TransactionShard]) -> None:
        """Stop sending for a partition that was lost (R6): its next leader does."""
        if self._remote_markers is not None:
            self._remote_markers.forget(shard)
        for key, retry in [*self._retries.items()]:
            if retry.shard is shard:
                self._give_up(key)
        self._refusals = {key: n for key, n in self._refusals.items() if not shard.owns(key)}

    def close(self) -> None:
        """Stop writing when the broker ends; the next process continues."""
        self._closed = True
        if self._remote_markers is not None:
            self._remote_markers.close()
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
    ) -> Following | None:
        """Write some markers now, and the rest in the next turns; return the final completion.

        ``refused`` is the reason why an earlier attempt at a marker failed.
        """
        machine = shard.machine
        transaction = machine.transactions.get(key)
        if transaction is None or not transaction.state.is_decided:
            self._is_over(key)
            return None
        marker = TransactionMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            commit=transaction.commits,
            coordinator_epoch=shard.log.leader_epoch,
            transaction_version=transaction.transaction_version,
        )
        self._refusals.setdefault(key, self._log.refusals)
        counts, remote_markers = self._counts, self._remote_markers
        marked = []
        for partition in owed[:MARKERS_PER_TURN]:
            if remote_markers is not None and remote_markers.takes(shard, transaction, partition):
                continue
            error = self._write_one(partition, marker)
            if shard.is_gone:
                return None  # On the marker's way it was found out that the topic is deleted.
            if error:
                refused = f"{partition.topic}-{partition.partition}: {error.name}"
                counts.markers_delayed += 1
            else:
                marked.append(partition)
        counts.markers_written += len(marked)
        machine.change(MarkersPlaced(key, marked))
        if len(owed) > MARKERS_PER_TURN:
            self._in_turns.add(key)
            rest = self._write_rest(shard, key, owed[MARKERS_PER_TURN:], refused)
            self._host.spawn(rest, f"write markers of {key}")
        elif not machine.owes_markers(key):
            return self._completion(shard, key)
        elif refused:
            self._try_again(shard, key, refused)
        return None

    def _write_one(self, partition: TopicPartition, marker: TransactionMarker) -> ErrorCode:
        """Write one marker; return NONE also if the partition needs none."""
        error = self._markers.write_if_needed(partition.topic, partition.partition, marker)
        if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._remote_markers is None:
            return ErrorCode.NONE  # It was deleted (M5).
        return error

    def _completion(self, shard: Shard[TransactionShard], key: str) -> Following | None:
        """Return the completion of a transaction that has all its markers.

        If a flush was refused since the first marker, markers in other logs of this broker may be
        lost with it: all are written again first, where they are needed (R3).
        """
        machine, refusals = shard.machine, self._log.refusals
        if self._refusals.pop(key, refusals) != refusals:
            machine.change(MarkersLost(key))
            return self.begin(shard, key)
        producer_id, epoch = machine.transactions[key].producer
        command = MarkersWritten(key, producer_id, epoch)
        return Following(key, command, partial(self._settled, shard, key))

    def _complete(self, shard: Shard[TransactionShard], completion: Following | None) -> None:
        """Append the completion of a transaction whose markers were delayed."""
        if completion is not None:
            self._runner.follow(shard, completion)

    def _settled(self, shard: Shard[TransactionShard], key: str, code: ErrorCode) -> None:
        if code:
            self._try_again(shard, key, f"completion: {code.name}")
        else:
            self._is_over(key)
            self._completed(key)

    def _is_over(self, key: str) -> None:
        self._retries.pop(key, None)
        self._refusals.pop(key, None)
        if self._remote_markers is not None:
            self._remote_markers.done(key)

    async def _write_rest(
        self, shard: Shard[TransactionShard], key: str, owed: list[TopicPartition], refused: str
    ) -> None:
        await turn_over()
        self._in_turns.discard(key)
        if not self._closed and self._log.is_here(shard):
            self._complete(shard, self._write(shard, key, owed, refused))
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
        if key in self._in_turns:
            self._try_again(retry.shard, key, "its markers are being written")
        elif self._log.is_here(retry.shard):
            self.resume(retry.shard, key)
            self._host.flush_answers()


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits."""

    then: Callable[[], None]
    timer: ClockTimer


class TransitionWaits:
    """Waiting requests, by transactional id and in order."""

    def __init__(self, host: Host, counts: TransactionCounts) -> None:
        self._host = host
        self._counts = counts
        self._waiting: dict[str, deque[_Waiting]] = {}

    def __contains__(self, key: str) -> bool:
        """Whether requests wait for a transactional id."""
        return key in self._waiting

    def __len__(self) -> int:
        """Number of requests that wait now."""
        return sum(map(len, self._waiting.values()))

    def add(self, key: str, then: Callable[[], None]) -> None:
        """Call ``then`` when the transition in flight has ended, or when the maximum wait has."""
        queue = self._waiting.setdefault(key, deque())

        def give_up() -> None:
            self._counts.requests_given_up += 1
            queue.remove(waiting)
            if not queue and self._waiting.get(key) is queue:
                del self._waiting[key]
            then()
            self._host.flush_answers()

        timer = self._host.clock.call_later(self._host.config.transaction_wait_ms, give_up)
        waiting = _Waiting(then, timer)
        queue.append(waiting)
        self._counts.requests_held += 1

    def release(self, key: str) -> None:
        """Resume the requests that waited for a transition that has ended."""
        for waiting in self._waiting.pop(key, ()):
            waiting.timer.cancel()
            waiting.then()

    def release_lost(self, is_lost: Callable[[str], bool]) -> None:
        """Resume the requests that wait for transactional IDs of lost partitions."""
        for key in [key for key in self._waiting if is_lost(key)]:
            self.release(key)

    def close(self) -> None:
        """Cancel the timers of all waiting requests when the broker ends."""
        for queue in self._waiting.values():
            for waiting in queue:
                waiting.timer.cancel()
        self._waiting.clear()
