"""Drives log compaction: which log is next, one pass at a time, beside the loop.

Rules of this file:

1. The loop surveys and takes over; reading, deciding and writing happen on a thread, which rests
   so often that the loop is not held up, and keeps to ``log.cleaner.io.max.bytes.per.second``.
2. The dirtiest log that is due goes first. After a pass the next look comes at once, after a look
   that found nothing in ``log.cleaner.backoff.ms``.
3. A damaged log is left alone until the scrubber has looked at it, then compacted in front of the
   damage; a full disk only ends the pass. An error in writing stops the broker (D9).
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.runtime.threads import Pool
from barnabas.storage.compaction.cleanable import Cleanable, plan, survey
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.errors import Corrupt
from barnabas.storage.journal.committer import FULL_DISK
from barnabas.storage.log.cleaned_segment import CleanedGroup, CleaningPlan, Unreadable
from barnabas.storage.log.segment_swap import discard, take_over
from barnabas.storage.runtime.chance import random_bytes
from barnabas.storage.runtime.clock import monotonic, processor_seconds
from barnabas.storage.runtime.threads import LONGEST_WAIT_SECONDS, new_event

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.files.file_system import FileSystem
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.runtime.threads import Event
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger(__name__)

LOGS_PER_TURN: Final = 64
"""Logs looked at before the loop gets a turn."""

SWAPS_WAITING_MAX: Final = 32
"""Cleaned segments that may wait for the next checkpoint, each with its file open; then one is
asked for."""

WORK_SECONDS: Final = 0.002
REST_SECONDS: Final = 0.004
"""How long the thread computes before it lets others have the interpreter, and for how long."""
THREADS_MOST: Final = 32
"""Most passes at a time; ``log.cleaner.threads`` sets a smaller number."""
PASSES_REMEMBERED: Final = 50


class CompactionPass(NamedTuple):
    """A pass that has put something smaller in place."""

    time_ms: int
    """When it ended."""
    topic: str
    partition: int
    bytes_before: int
    """Of the segments that were replaced."""
    bytes_after: int


class PassEnded(Exception):
    """The pass is to end: the broker stops, or the disk has no room to spare."""


@dataclass(slots=True)
class CleaningCounts:
    """What compaction has done since the start, for metrics."""

    passes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    failures: int = 0
    unreadable: int = 0
    last_pass_ms: int = -1
    max_dirty_ratio: float = 0.0


class Pace:
    """Holds a pass back, on its thread."""

    def __init__(self, logs: LogStore, bytes_per_second: float, stopped: Event) -> None:
        self._logs = logs
        self._stopped = stopped
        self._bytes_per_second = max(1.0, bytes_per_second)
        self._begun = monotonic()
        self._bytes = 0
        self._rested = processor_seconds()

    def __call__(self, size: int) -> None:
        """Wait as long as it takes; raises PassEnded."""
        if self._stopped.is_set() or self._logs.full:
            raise PassEnded
        self._bytes += size
        early = self._begun + self._bytes / self._bytes_per_second - monotonic()
        if early > 0:
            self._rest(early)
        elif processor_seconds() - self._rested >= WORK_SECONDS:
            self._rest(REST_SECONDS)

    def _rest(self, seconds: float) -> None:
        if self._stopped.wait(min(seconds, LONGEST_WAIT_SECONDS)):
            raise PassEnded
        self._rested = processor_seconds()


class LogCleaner:
    """The compaction of one broker."""

    def __init__(self, host: Host, logs: LogStore, file_system: FileSystem) -> None:
        self._host = host
        self._logs = logs
        self._file_system = file_system
        self._timer: Timer | None = None
        self._stopped = new_event()
        self._threads = Pool("cleaner", THREADS_MOST, loop=host.loop)
        self._running: set[PartitionLog] = set()
        self._is_looking = False
        self._swaps = 0
        self._salt = random_bytes(16)
        self.counts = CleaningCounts()
        self.latest: deque[CompactionPass] = deque(maxlen=PASSES_REMEMBERED)
        """The last passes that have changed something, the oldest first."""

    def start(self) -> None:
        """Look for work from now on."""
        self._wait()

    def stop(self) -> None:
        """End what is under way; nothing is written after that."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._threads.close(waits=True)

    # Looking

    def _wait(self) -> None:
        delay_ms = max(1, self._host.config.log_cleaner_backoff_ms)
        self._timer = self._host.clock.call_later(delay_ms, self._due)

    def _due(self) -> None:
        self._wait()
        self.look()

    @property
    def _may_begin(self) -> bool:
        config = self._host.config
        return (
            config.log_cleaner_enable
            and len(self._running) < config.log_cleaner_threads
            and not self._stopped.is_set()
            and not self._logs.full
        )

    def look(self) -> None:
        """Survey all logs, some in each turn of the loop, and begin with the dirtiest."""
        if self._is_looking or not self._may_begin:
            return
        self._is_looking = True
        pending = list(self._logs.logs.values())
        due: list[tuple[float, int, PartitionLog, Cleanable]] = []
        ratios = [0.0]

        def turn() -> None:
            now_ms = self._host.clock.now_ms()
            for _ in range(min(LOGS_PER_TURN, len(pending))):
                log = pending.pop()
                cleanable = None if log in self._running else survey(log, now_ms)
                if cleanable is None:
                    continue
                ratios.append(cleanable.dirty_ratio)
                if cleanable.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((cleanable.dirty_ratio, log.partition_id, log, cleanable))
            if pending and not self._stopped.is_set():
                self._host.loop.call_soon(turn)
                return
            self._is_looking = False
            self.counts.max_dirty_ratio = max(ratios)
            for _, _, log, cleanable in sorted(due, key=lambda each: each[:2], reverse=True):
                if not self._may_begin:
                    break
                self._begin(log, cleanable)

        turn()

    # Passes

    def _begin(self, log: PartitionLog, cleanable: Cleanable) -> None:
        config = self._host.config
        if self._logs.logs.get(log.partition_id) is not log or log.closed:
            return  # Deleted while the others were looked at.
        self._running.add(log)
        planned = plan(
            log,
            cleanable,
            now_ms=self._host.clock.now_ms(),
            map_bytes=config.log_cleaner_dedupe_buffer_size // max(1, config.log_cleaner_threads),
            salt=self._salt,
        )
        self._step(_Pass(log, planned, self._run(planned)))

    def _run(self, planned: CleaningPlan) -> Iterator[CleanedGroup]:
        bytes_per_second = self._host.config.log_cleaner_io_max_bytes_per_second
        pace = Pace(self._logs, bytes_per_second, self._stopped)
        return clean(self._file_system, planned, pace)

    def _step(self, under_way: _Pass) -> None:
        """Have the next group cleaned on a thread."""
        future = self._threads.run(partial(next, under_way.groups, None))
        future.add_done_callback(lambda done: self._stepped(under_way, done))

    def _stepped(self, under_way: _Pass, done: Future[CleanedGroup | None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if self._stopped.is_set():
            return
        if error is not None:
            self._failed(under_way, error)
            return
        group = done.result()
        if group is None or not self._take_over(under_way, group):
            self._end(under_way)
            return
        self._step(under_way)

    def _take_over(self, under_way: _Pass, group: CleanedGroup) -> bool:
        log = under_way.log
        counts = self.counts
        counts.bytes_read += group.bytes_read
        if not take_over(log, group):
            discard(log.directory, group)  # The log has changed too much meanwhile.
            return False
        if group.changed:
            counts.bytes_written += group.size_bytes
            under_way.bytes_before += group.bytes_read
            under_way.bytes_after += group.size_bytes
            self._swaps += 1
            if self._swaps % SWAPS_WAITING_MAX == 0:
                self._logs.checkpoint()
        if group.unreadable is not None:
            self._note_unreadable(log, group.unreadable)
        if group.last:
            counts.passes += 1
            counts.last_pass_ms = self._host.clock.now_ms()
        return True

    def _note_unreadable(self, log: PartitionLog, found: Unreadable) -> None:
        """Count and log what this process has not met before."""
        if found.last_offset <= log.cleaning.unreadable_offset:
            return
        log.cleaning.unreadable_offset = found.last_offset
        self.counts.unreadable += found.batches
        logger.warning(
            "unreadable batches kept topic=%s partition=%d batches=%d first_offset=%d "
            "last_offset=%d reason=%s",
            *_name(log),
            found.batches,
            found.first_offset,
            found.last_offset,
            found.reason,
        )

    def _end(self, under_way: _Pass) -> None:
        self._running.discard(under_way.log)
        if under_way.bytes_before:
            ended = CompactionPass(
                self._host.clock.now_ms(),
                *_name(under_way.log),
                under_way.bytes_before,
                under_way.bytes_after,
            )
            self.latest.append(ended)
            logger.info(
                "compacted topic=%s partition=%d bytes_before=%d bytes_after=%d", *ended[1:]
            )
        self.look()

    def _failed(self, under_way: _Pass, error: BaseException) -> None:
        log = under_way.log
        self._running.discard(log)
        if isinstance(error, PassEnded) or self._is_outdated(under_way):
            return
        self.counts.failures += 1
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            if error.errno not in FULL_DISK:
                self._host.fatal(error)
                return
            logger.warning("disk full, not compacted topic=%s partition=%d", *_name(log))
            return
        log.cleaning.failure = str(error)
        if isinstance(error, Corrupt):
            # Once it is known, and told, what exactly is damaged, a pass ends in front of it.
            logger.warning("not compacted for now topic=%s partition=%d %s", *_name(log), error)
            log.suspect(under_way.plan.first_dirty_offset, error)
            return
        logger.error(
            "not compacted until the next start topic=%s partition=%d %s",
            *_name(log),
            error,
            exc_info=None if isinstance(error, FileNotFoundError) else error,
        )

    def _is_outdated(self, under_way: _Pass) -> bool:
        """Whether the log is gone, or segments of it: then files that are missing mean nothing."""
        log = under_way.log
        if self._logs.logs.get(log.partition_id) is not log:
            return True
        return log.segments[0].base_offset > under_way.plan.segments[0].base_offset


@dataclass(slots=True, eq=False)
class _Pass:
    """One pass under way."""

    log: PartitionLog
    plan: CleaningPlan
    groups: Iterator[CleanedGroup]
    bytes_before: int = 0
    bytes_after: int = 0


def _name(log: PartitionLog) -> tuple[str, int]:
    return log.topic, log.partition
