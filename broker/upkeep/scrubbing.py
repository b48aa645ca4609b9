"""Scrubber: chooses the next segment to verify and the speed, and handles the result.

Rules of this file:

1. The event loop determines what is due and applies the verdict; reading runs on one thread, which
   keeps to ``barnabas.scrub.bytes.per.second`` and pauses fifty times as long as it computes.
2. A pass covers all segments that are due at its start: first those never verified, the newest of
   each partition before older ones, then those verified longest ago. Segments that become due later
   wait for the next pass, so that none waits forever.
3. A segment that a reader could not read precedes all others, at a higher speed: before its check
   it is unknown which part of it can be served.
4. Damage is logged once, one line for each range, and stays in the log's list: no reader gets it.
   Damaged segments are checked again every ten minutes. A disk may have been unavailable only
   temporarily: bytes that it did not return are tried again some seconds later if a reader still
   needs them, even without a scrubber.
5. In a cluster the files are copies. A log with a damaged copy is loaded again from the store, if
   it is led here (``on_damaged_copy``), but not repeatedly: then the range stays offline as in a
   standalone broker. Verified segments are not recorded, since no start will find them.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import run_in_turns
from barnabas.storage.errors import Corrupt, OffsetOffline
from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import TRANSACTION_INDEX_SUFFIX
from barnabas.storage.repair.scrub import (
    SegmentCheck,
    Verdict,
    can_be_read,
    check_segment,
    is_complete,
    plan_check,
    take_findings,
)
from barnabas.storage.repair.scrub_notes import (
    FILE_NAME,
    apply_notes,
    encode_notes,
    progress_of,
    read_notes,
    survey,
)
from barnabas.storage.runtime.clock import monotonic, processor_seconds
from barnabas.storage.runtime.log_lines import LogLines
from barnabas.storage.runtime.threads import Event, new_event
from barnabas.storage.store.log_store import LogStore

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


LOOK_INTERVAL_MS: Final = 10_000
"""Interval, in milliseconds, between surveys while nothing is due."""

DAMAGED_AGAIN_MS: Final = 600_000
NOTE_INTERVAL_MS: Final = 300_000
"""Interval, in milliseconds, at which a pass records verified segments; damage is recorded at
once."""

SUSPECTED_AGAIN_MS: Final = 60_000
"""Time, in milliseconds, for which a segment that was just verified is not checked again after
failed reads."""

UNREADABLE_AGAIN_MS: Final = 5_000
"""Time, in milliseconds, for which a range that the disk did not return is not tried again."""

WORK_SECONDS: Final = 0.001
REST_FACTOR: Final = 50
REST_FACTOR_URGENT: Final = 2

SEGMENT_BYTES_MIN: Final = 64 * 1024
"""Minimum size that a segment counts for, since opening it costs as well."""

RANGES_NAMED: Final = 5
"""Maximum number of damaged ranges that ``/readyz`` names; the metric has their number."""


class ScrubEndedError(Exception):
    """Request to end, since the broker stops."""


@dataclass(slots=True)
class ScrubCounts:
    """Counts of verified data since the start."""

    bytes_read: int = 0
    batches: int = 0
    segments: int = 0
    indexes_rebuilt: int = 0
    pending: int = 0
    last_full_pass_ms: int = 0


class ScrubPace:
    """Speed limit of the scrubber, on its thread."""

    def __init__(self, bytes_per_second: int, counts: ScrubCounts, stopped: Event) -> None:
        self._bytes_per_second = bytes_per_second
        self._counts = counts
        self._stopped = stopped
        self._next = 0.0
        self._worked_since = 0.0
        self.urgent = False

    def begin(self, *, urgent: bool) -> None:
        """Start a segment; ``urgent``: a reader waits for the verdict."""
        self.urgent = urgent
        self._worked_since = processor_seconds()
        self(0)
        if not urgent:
            self._next += SEGMENT_BYTES_MIN / self._bytes_per_second

    def __call__(self, size: int) -> None:
        """Wait as long as the limit requires; raises ScrubEndedError."""
        self._counts.bytes_read += size
        worked = processor_seconds() - self._worked_since
        rest = 0.0
        if worked >= WORK_SECONDS:
            rest = worked * (REST_FACTOR_URGENT if self.urgent else REST_FACTOR)
        if size and not self.urgent:
            now = monotonic()
            rest = max(rest, self._next - now)
            self._next = max(self._next, now) + size / self._bytes_per_second
        if self._stopped.is_set() or (rest > 0 and self._stopped.wait(rest)):
            raise ScrubEndedError
        if rest > 0:
            self._worked_since = processor_seconds()


@dataclass(frozen=True, slots=True)
class _Due:
    """Segment to check; ``error`` is the error of a reader, or None."""

    order: tuple[int, int, int]
    log: PartitionLog
    segment: Segment
    error: Exception | None = None


_order = attrgetter("order")


def _is_offline(error: Exception | None) -> bool:
    """Return whether a reader's error is about a known unreadable range."""
    return isinstance(error, OffsetOffline)


def _wanted(due: _Due) -> tuple[DamagedRange, ...]:
    """Return the ranges to read before a check of the whole segment."""
    if not _is_offline(due.error):
        return ()
    base_offset = due.segment.base_offset
    return tuple(
        each for each in due.log.damaged if each.segment == base_offset and each.is_unreadable
    )


class LogScrubber:
    """Verifier of the logs of one store on disk."""

    def __init__(
        self,
        config: BrokerConfig,
        store: LogStore,
        loop: AbstractEventLoop,
        clock: Clock,
    ) -> None:
        """Rate 0 in ``config`` limits checks to segments that a reader could not read."""
        bytes_per_second = config.scrub_bytes_per_second
        self._store = store
        self._loop = loop
        self._clock = clock
        self._enabled = bytes_per_second > 0
        self._interval_ms = config.scrub_interval_ms
        self._stopped = new_event()
        self.counts = ScrubCounts()
        self._pace = ScrubPace(max(1, bytes_per_second), self.counts, self._stopped)
        self._thread = Pool("scrubber", loop=loop)
        self._timer: Timer | None = None
        self._pass: list[_Due] = []
        self._is_surveying = False
        self._in_pass = False
        self._is_running = False
        self._running: _Due | None = None
        self._suspected: dict[Segment, _Due] = {}
        self._cleared: dict[Segment, int] = {}
        self._damaged: set[PartitionLog] = set()
        self._noted_ms = 0
        self._is_noted = True
        self.on_damaged_copy: Callable[[PartitionLog], None] | None = None
        """Loads a log again whose files are copies, or is None if they are the only data."""
        self._renewed_ms: dict[int, int] = {}
        """Time at which a partition's damaged log was loaded again, for a limited time."""
        self._stored: dict[int, LogLines] = {}
        """Lines about damaged records in the store of a cluster, by partition ID."""

    # What others see

    def damaged(self) -> list[tuple[PartitionLog, DamagedRange]]:
        """Return every current damaged range, with its log."""
        alive = self._store.logs
        self._damaged = {
            log for log in self._damaged if log.damaged and alive.get(log.partition_id) is log
        }
        logs = sorted(self._damaged, key=lambda log: (log.topic, log.partition))
        return [(log, each) for log in logs for each in log.damaged]

    def describe_damage(self) -> str | None:
        """Return one line for operators, or None without damage."""
        found = self.damaged()
        if not found:
            return None
        named = "; ".join(
            f"{log.topic}-{log.partition} {each}" for log, each in found[:RANGES_NAMED]
        )
        more = len(found) - RANGES_NAMED
        return named if more <= 0 else f"{named}; and {more} more"

    # Coming and going

    def open(self, *, clean: bool) -> None:
        """Load the records of the previous process; ``clean``: it stopped cleanly.

        Call it once the store knows whether it has a journal: without one, its files are copies.
        """
        store = self._store
        if store.files is None:
            return
        notes = read_notes(store.file_system, store.root)
        if notes is None:
            return
        for log in apply_notes(notes, store.logs.values(), clean=clean):
            self._damaged.add(log)
            for each in log.damaged:
                logger.error(
                    "log still damaged topic=%s partition=%d %s", log.topic, log.partition, each
                )
        if clean:
            self.counts.last_full_pass_ms = progress_of(notes).last_full_pass_ms

    def save(self) -> None:
        """Record the current state. Waits for the disk; a failed write is only logged."""
        store = self._store
        if store.files is None:
            return
        logs = list(store.logs.values())
        progress = survey(
            logs,
            noted_ms=self._clock.now_ms(),
            last_full_pass_ms=self.counts.last_full_pass_ms,
        )
        try:
            store.file_system.write_file_atomically(
                store.file_system.join(store.root, FILE_NAME), encode_notes(logs, progress)
            )
        except OSError as error:
            logger.warning("scrub progress not saved reason=%s", error)

    def start(self) -> None:
        """Start looking for due segments."""
        self._due()

    def stop(self) -> None:
        """End the current check."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._thread.close(waits=True)

    def suspect(self, log: PartitionLog, base_offset: int, error: Exception) -> None:
        """Verify a segment as soon as possible after a failed read or OffsetOffline."""
        segment = log.segments[log.segment_at(base_offset)]
        if not isinstance(segment, Segment):
            # Its reader has verified it, and reads it again from the store.
            self._report_stored(log, error)
            return
        cleared_ms = self._cleared.get(segment)
        pause_ms = UNREADABLE_AGAIN_MS if _is_offline(error) else SUSPECTED_AGAIN_MS
        if cleared_ms is not None and self._clock.now_ms() - cleared_ms < pause_ms:
            return
        if self._running is not None and self._running.segment is segment:
            return
        if segment not in self._suspected:
            self._suspected[segment] = _Due((0, 0, 0), log, segment, error)
            self._next()

    def _report_stored(self, log: PartitionLog, error: Exception) -> None:
        """Log damage of records in the store, at most once a minute for each partition.

        Errors of its connection have lines of their own.
        """
        if not isinstance(error, Corrupt):
            return
        if self._stored.setdefault(log.partition_id, LogLines()).is_due(monotonic()):
            words = "stored records damaged, clients get KAFKA_STORAGE_ERROR partition=%s-%d: %s"
            logger.warning(words, log.topic, log.partition, error)

    # What is due

    def _due(self) -> None:
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._due)
        if self._enabled and not self._is_surveying and not self._in_pass:
            self._is_surveying = True
            run_in_turns(self._loop, self._survey())

    def _survey(self) -> Iterator[None]:
        """Find the due segments, in slices of the loop, and start a pass over them."""
        due: list[_Due] = []
        for log in list(self._store.logs.values()):
            due.extend(self._due_of(log, self._clock.now_ms()))
            yield
            if self._stopped.is_set():
                return
        self._is_surveying = False
        if due:
            self._in_pass = True
            self._pass = sorted(due, key=_order, reverse=True)
            self.counts.pending = len(due)
            self._next()

    def _due_of(self, log: PartitionLog, now_ms: int) -> Iterator[_Due]:
        segments = log.local_segments
        newest = len(segments) - 1
        for at, segment in enumerate(segments):
            is_damaged = any(each.segment == segment.base_offset for each in log.damaged)
            if not is_damaged and not is_complete(segment):
                continue
            verified_ms = segment.verified_ms
            if not verified_ms:
                yield _Due((0, newest - at, log.partition_id), log, segment)
                continue
            interval_ms = self._interval_ms
            if is_damaged:
                interval_ms = min(interval_ms, DAMAGED_AGAIN_MS)
            if now_ms - verified_ms >= interval_ms:
                yield _Due((1, verified_ms, log.partition_id), log, segment)

    # One segment after the other

    def _next(self) -> None:
        """Check the next segment on the thread."""
        if self._is_running or self._stopped.is_set():
            return
        due = self._take()
        if not self._is_noted and (due is None or self._is_time_to_note()):
            self._note(due)
            return
        if due is None:
            return
        self._running = due
        plan = plan_check(due.log, due.segment)
        self._run(
            partial(self._check, plan, _wanted(due), urgent=due.error is not None),
            partial(self._checked, due, plan),
        )

    def _is_time_to_note(self) -> bool:
        return self._clock.now_ms() - self._noted_ms >= NOTE_INTERVAL_MS

    def _note(self, due: _Due | None) -> None:
        """Record the current state on the thread, before it continues with ``due``."""
        self._is_noted = True
        self._noted_ms = self._clock.now_ms()
        if due is not None:
            self._pass.append(due)
        self._run(self.save, self._saved)

    def _saved(self, done: Future[None]) -> None:
        """Log an error: unrecorded segments are verified once more after a restart."""
        if (error := done.exception()) is not None:
            logger.error("scrub progress not saved error=%r", error)

    def _run(self, work: Callable[[], Result], then: Callable[[Future[Result]], None]) -> None:
        """Run one task on the thread, then continue."""

        def done(future: Future[Result]) -> None:
            self._is_running = False
            # Retrieved in any case: otherwise asyncio logs the exception.
            if future.cancelled() or isinstance(future.exception(), ScrubEndedError):
                return
            if not self._stopped.is_set():
                then(future)
                self._next()

        self._is_running = True
        self._thread.run(work).add_done_callback(done)

    def _take(self) -> _Due | None:
        """Return the next segment that still exists, or None at the end of a pass."""
        while self._suspected or self._pass:
            if self._suspected:
                due = self._suspected.pop(next(iter(self._suspected)))
            else:
                due = self._pass.pop()
                self.counts.pending = len(self._pass)
            if self._is_there(due):
                return due
        if self._in_pass:
            self._in_pass = False
            self.counts.last_full_pass_ms = self._clock.now_ms()
        return None

    def _is_there(self, due: _Due) -> bool:
        log, segment = due.log, due.segment
        return (
            self._store.logs.get(log.partition_id) is log
            and log.segments[log.segment_at(segment.base_offset)] is segment
        )

    def _check(
        self, plan: SegmentCheck, wanted: tuple[DamagedRange, ...], *, urgent: bool
    ) -> Verdict | None:
        """Check a segment; return None if only ``wanted`` is due, and still cannot be read."""
        self._pace.begin(urgent=urgent)
        files = self._store.file_system
        if wanted and not can_be_read(files, plan, wanted, self._pace):
            return None
        return check_segment(files, plan, self._pace)

    def _checked(self, due: _Due, plan: SegmentCheck, done: Future[Verdict | None]) -> None:
        self._running = None
        error = done.exception()
        if error is not None:
            # Nothing is known now; the next pass tries again.
            logger.error("segment not verified log=%s error=%r", due.log, error)
            self._clear(due, is_sound=False)
        elif (verdict := done.result()) is None:
            self._clear(due, is_sound=False)
        elif self._is_there(due):
            self._take_over(due, plan, verdict)

    def _take_over(self, due: _Due, plan: SegmentCheck, verdict: Verdict) -> None:
        log, segment = due.log, due.segment
        self.counts.batches += verdict.batches
        self.counts.segments += 1
        before = log.damaged
        new = take_findings(log, plan, verdict)
        for each in new:
            logger.error("log damaged topic=%s partition=%d %s", log.topic, log.partition, each)
        for each in before:
            if each not in log.damaged and not new:
                logger.info("log mended topic=%s partition=%d %s", log.topic, log.partition, each)
        if new and self._renews(log):
            return
        if log.damaged:
            self._damaged.add(log)
        segment.verified_ms = self._clock.now_ms()
        self._is_noted = False
        if new:
            self._noted_ms = 0  # At once.
        if verdict.wrong_files:
            self._write_indexes(log, segment, verdict)
        elif verdict.index_checksum is not None:
            segment.index_checksum = verdict.index_checksum
        if due.error is not None:
            log.cleaning.failure = None  # If this was why: now it is known where to stop.
            is_sound = not verdict.damaged and not verdict.wrong_files
            self._clear(due, is_sound=is_sound and not _is_offline(due.error))

    def _renews(self, log: PartitionLog) -> bool:
        """Load a damaged log again from the store; return False if impossible or done recently."""
        if self.on_damaged_copy is None or self._store.files is not None:
            return False
        now_ms = self._clock.now_ms()
        self._renewed_ms = {
            partition_id: renewed_ms
            for partition_id, renewed_ms in self._renewed_ms.items()
            if now_ms - renewed_ms < DAMAGED_AGAIN_MS
        }
        if log.partition_id in self._renewed_ms:
            return False
        self._renewed_ms[log.partition_id] = now_ms
        self.on_damaged_copy(log)
        return True

    def _write_indexes(self, log: PartitionLog, segment: Segment, verdict: Verdict) -> None:
        self.counts.indexes_rebuilt += 1
        segment.use_index(verdict.index)
        self._store.journal.add_operation(segment.index_operation())
        if not len(segment.transactions):
            remove = partial(log.directory.unlink, segment.stem + TRANSACTION_INDEX_SUFFIX)
            self._store.journal.add_operation(remove)
        logger.warning(
            "indexes rebuilt topic=%s partition=%d segment=%s files=%s",
            log.topic,
            log.partition,
            segment.stem,
            ",".join(verdict.wrong_files),
        )

    def _clear(self, due: _Due, *, is_sound: bool) -> None:
        now_ms = self._clock.now_ms()
        self._cleared = {
            segment: cleared_ms
            for segment, cleared_ms in self._cleared.items()
            if now_ms - cleared_ms < SUSPECTED_AGAIN_MS
        }
        self._cleared[due.segment] = now_ms
        if is_sound:
            logger.warning(
                "read error in an undamaged segment topic=%s partition=%d segment=%s error=%s",
                due.log.topic,
                due.log.partition,
                due.segment.stem,
                due.error,
            )
