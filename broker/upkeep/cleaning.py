"""Log compaction: chooses the next log, and runs one pass at a time beside the event loop.

Rules of this file:

1. The event loop surveys the logs and applies the results; reading, deciding and writing run on a
   thread. The thread pauses often enough for the loop, and keeps to
   ``log.cleaner.io.max.bytes.per.second``.
2. The dirtiest log that is due comes first. The next survey follows at once after a pass, or after
   ``log.cleaner.backoff.ms`` if nothing was due.
3. A damaged log is not compacted until the scrubber has checked it, and then only up to the damage;
   a full disk only ends the pass. A write error stops the broker (D9).
4. In a cluster the segments that passes have written leave the disk again, once the store has
   followed (``broker/cluster/leading/upkeep.py``). A pass waits for that between two segments while
   they have more than ``UNFOLLOWED_BYTES_MAX`` together, or a quarter of the cache (F14).
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
from barnabas.broker.runtime.turns import run_in_turns
from barnabas.storage.compaction.cleanable import Cleanable, plan, survey
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.errors import Corrupt, StoreSilent
from barnabas.storage.journal.committer import FULL_DISK
from barnabas.storage.log.cleaned_segment import CleanedGroup, CleaningPlan, Unreadable
from barnabas.storage.log.segment_swap import discard, take_over
from barnabas.storage.replicated.offloading import unfollowed_bytes
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


SWAPS_WAITING_MAX: Final = 32
"""Maximum number of cleaned segments that wait for the next checkpoint, each with its file open;
then a checkpoint is requested."""

WORK_SECONDS: Final = 0.002
REST_SECONDS: Final = 0.004
"""Time, in seconds, that the thread computes before it releases the interpreter, and the pause
after it."""
UNFOLLOWED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Size of the cleaned segments that the store of a cluster may not have followed yet."""
FOLLOWED_MS: Final = 1000
"""Pause before a pass that waits for the store looks again."""
THREADS_MOST: Final = 32
"""Maximum number of passes at a time; ``log.cleaner.threads`` sets a smaller number."""
PASSES_REMEMBERED: Final = 50


class CompactionPass(NamedTuple):
    """Pass that has replaced segments by smaller ones."""

    time_ms: int
    """Time of its end."""
    topic: str
    partition: int
    bytes_before: int
    """Size of the replaced segments."""
    bytes_after: int


class PassEnded(Exception):
    """Request to end the pass: the broker stops, or the disk has no room to spare."""


@dataclass(slots=True)
class CleaningCounts:
    """Counts of compaction since the start, for metrics."""

    passes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    failures: int = 0
    unreadable: int = 0
    last_pass_ms: int = -1
    max_dirty_ratio: float = 0.0


class Pace:
    """Speed limit of a pass, on its thread."""

    def __init__(self, logs: LogStore, bytes_per_second: float, stopped: Event) -> None:
        self._logs = logs
        self._stopped = stopped
        self._bytes_per_second = max(1.0, bytes_per_second)
        self._begun = monotonic()
        self._bytes = 0
        self._rested = processor_seconds()

    def __call__(self, size: int) -> None:
        """Wait as long as the limit requires; raises PassEnded."""
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
    """Compaction of one broker."""

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
        """Last passes that have changed something, the oldest first."""

    def start(self) -> None:
        """Start looking for due logs."""
        self._wait()

    def stop(self) -> None:
        """End the current pass; nothing is written after that."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._threads.close(waits=True)

    # Surveys

    def _wait(self) -> None:
        delay_ms = max(1, self._host.config.log_cleaner_backoff_ms)
        self._timer = self._host.clock.call_later(delay_ms, self._due)

    def _due(self) -> None:
        self._wait()
        self.survey()

    @property
    def _may_begin(self) -> bool:
        config = self._host.config
        return (
            config.log_cleaner_enable
            and len(self._running) < config.log_cleaner_threads
            and not self._stopped.is_set()
            and not self._logs.full
        )

    def survey(self) -> None:
        """Survey all logs, in slices of the loop, and start with the dirtiest."""
        if not self._is_looking and self._may_begin:
            self._is_looking = True
            run_in_turns(self._host.loop, self._survey())

    def _survey(self) -> Iterator[None]:
        due: list[tuple[float, int, PartitionLog, Cleanable]] = []
        most = 0.0
        for log in list(self._logs.logs.values()):
            if self._stopped.is_set():
                break
            cleanable = None if log in self._running else survey(log, self._host.clock.now_ms())
            if cleanable is not None:
                most = max(most, cleanable.dirty_ratio)
                if cleanable.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((cleanable.dirty_ratio, log.partition_id, log, cleanable))
            yield
        self._is_looking = False
        self.counts.max_dirty_ratio = most
        for _, _, log, cleanable in sorted(due, key=lambda each: each[:2], reverse=True):
            if not self._may_begin:
                break
            self._begin(log, cleanable)

    # Passes

    def _begin(self, log: PartitionLog, cleanable: Cleanable) -> None:
        config = self._host.config
        if self._logs.logs.get(log.partition_id) is not log or log.closed:
            return  # Deleted during the survey.
        self._running.add(log)
        log_start_offset = log.log_start_offset
        planned = plan(
            log,
            cleanable,
            now_ms=self._host.clock.now_ms(),
            map_bytes=config.log_cleaner_dedupe_buffer_size // max(1, config.log_cleaner_threads),
            salt=self._salt,
        )
        under_way = _Pass(log, planned, self._run(planned), log_start_offset)
        under_way.note_read(planned.segments[0].base_offset if planned.segments else 0)
        self._step_when_followed(under_way)

    def _run(self, planned: CleaningPlan) -> Iterator[CleanedGroup]:
        bytes_per_second = self._host.config.log_cleaner_io_max_bytes_per_second
        pace = Pace(self._logs, bytes_per_second, self._stopped)
        return clean(self._file_system, planned, pace)

    def _step_when_followed(self, under_way: _Pass) -> None:
        """Clean the next group once the store has followed enough of those before."""
        if self._stopped.is_set():
            return
        log = under_way.log
        if log.closed or self._logs.logs.get(log.partition_id) is not log:
            self._end(under_way)
        elif self._is_followed:
            self._step(under_way)
        else:
            if any(each.cleaning.pending for each in self._logs.logs.values()):
                self._logs.checkpoint()  # It gives the cleaned files their names.
            again = partial(self._step_when_followed, under_way)
            self._host.clock.call_later(FOLLOWED_MS, again)

    @property
    def _is_followed(self) -> bool:
        logs = self._logs
        if not logs.is_cache:
            return True
        most = UNFOLLOWED_BYTES_MAX
        cache_bytes = self._host.config.cache_max_bytes
        if cache_bytes:
            most = min(most, cache_bytes // 4)
        return unfollowed_bytes(logs.logs.values()) <= most

    def _step(self, under_way: _Pass) -> None:
        """Clean the next group on a thread."""
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
        under_way.note_read(group.end_offset)
        self._step_when_followed(under_way)

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
        """Count and log batches that this process has not found before."""
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
        self._leave_off(under_way.log)
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
        self.survey()

    def _leave_off(self, log: PartitionLog) -> None:
        log.cleaning.unread = range(0)
        self._running.discard(log)

    def _failed(self, under_way: _Pass, error: BaseException) -> None:
        log = under_way.log
        self._leave_off(log)
        if isinstance(error, PassEnded) or self._is_outdated(under_way):
            return
        if isinstance(error, StoreSilent):
            words = "not compacted now, the store is silent topic=%s partition=%d reason=%s"
            logger.warning(words, *_name(log), error)
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
            # Once the damage is located and logged, a pass ends before it.
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
        """Whether the log, or segments of it, were deleted: then missing files are not an error."""
        log = under_way.log
        if self._logs.logs.get(log.partition_id) is not log:
            return True
        return log.log_start_offset > under_way.log_start_offset


@dataclass(slots=True, eq=False)
class _Pass:
    """Pass in progress."""

    log: PartitionLog
    plan: CleaningPlan
    groups: Iterator[CleanedGroup]
    log_start_offset: int
    """Log start offset when the pass was planned."""
    bytes_before: int = 0
    bytes_after: int = 0

    def note_read(self, offset: int) -> None:
        """Note that the pass needs no segment before an offset any more."""
        end_offset = self.plan.segments[-1].end_offset if self.plan.segments else offset
        self.log.cleaning.unread = range(offset, end_offset)


def _name(log: PartitionLog) -> tuple[str, int]:
    return log.topic, log.partition
