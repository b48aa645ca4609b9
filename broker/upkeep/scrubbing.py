"""Drives the scrubber: which segment is looked at next, how fast, and what follows from it.

Rules of this file:

1. The loop says what is due and takes the verdict over; reading happens on one thread, which keeps
   to ``barnabas.scrub.bytes.per.second`` and rests fifty times as long as it computes.
2. A pass goes over everything that is due when it begins: what was never verified first, the newest
   of each partition before what is older, then what was verified longest ago. What comes meanwhile
   waits for the next pass, so that nothing waits for ever.
3. A segment that a reader could not read goes before all others, at more speed: until it has been
   looked at it is not known what of it can be served.
4. Damage is logged once, a line for each range, and stays in the log's list: no reader gets it.
   Damaged segments are looked at again every ten minutes. A disk may only have been away: what it
   did not give is tried again some seconds later if a reader still wants it, scrubber or not.
5. In a cluster the files are copies. A log of which a copy is damaged is read anew from where it is
   durable, if that is done here (``on_damaged_copy``), but not the same one again and again: then
   the range stays offline as elsewhere. What was verified is not noted, for no start will find it.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.broker.runtime.threads import Pool
from barnabas.storage.errors import OffsetOffline
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
from barnabas.storage.runtime.threads import Event, new_event
from barnabas.storage.store.log_store import LogStore

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

LOGS_PER_TURN: Final = 64
"""Logs surveyed before the loop gets a turn."""

LOOK_INTERVAL_MS: Final = 10_000
"""How often it is asked whether anything is due while nothing is."""

DAMAGED_AGAIN_MS: Final = 600_000
NOTE_INTERVAL_MS: Final = 300_000
"""How often what was verified is written down while a pass goes on; damage at once."""

SUSPECTED_AGAIN_MS: Final = 60_000
"""A segment that was just found to be sound is not looked at again for every read that fails."""

UNREADABLE_AGAIN_MS: Final = 5_000
"""A range that the disk did not give is not tried again for every read that is refused."""

WORK_SECONDS: Final = 0.001
REST_FACTOR: Final = 50
REST_FACTOR_URGENT: Final = 2

SEGMENT_BYTES_MIN: Final = 64 * 1024
"""What the smallest segment counts for: opening it costs as well."""

RANGES_NAMED: Final = 5
"""So many damaged ranges ``/readyz`` names; the metric has their number."""


class ScrubEndedError(Exception):
    """The broker stops."""


@dataclass(slots=True)
class ScrubCounts:
    """What was verified since the start."""

    bytes_read: int = 0
    batches: int = 0
    segments: int = 0
    indexes_rebuilt: int = 0
    pending: int = 0
    last_full_pass_ms: int = 0


class ScrubPace:
    """Holds the scrubber back, on its thread."""

    def __init__(self, bytes_per_second: int, counts: ScrubCounts, stopped: Event) -> None:
        self._bytes_per_second = bytes_per_second
        self._counts = counts
        self._stopped = stopped
        self._next = 0.0
        self._worked_since = 0.0
        self.urgent = False

    def begin(self, *, urgent: bool) -> None:
        """Begin with a segment; ``urgent``: a reader waits for the verdict."""
        self.urgent = urgent
        self._worked_since = processor_seconds()
        self(0)
        if not urgent:
            self._next += SEGMENT_BYTES_MIN / self._bytes_per_second

    def __call__(self, size: int) -> None:
        """Wait as long as it takes; raises ScrubEndedError."""
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
    """A segment to look at; ``error``: what a reader met in it."""

    order: tuple[int, int, int]
    log: PartitionLog
    segment: Segment
    error: Exception | None = None


_order = attrgetter("order")


def _is_offline(error: Exception | None) -> bool:
    """Whether what a reader met is known already: a range that could not be read before."""
    return isinstance(error, OffsetOffline)


def _wanted(due: _Due) -> tuple[DamagedRange, ...]:
    """The ranges that are to be tried before the whole segment is looked at once more."""
    if not _is_offline(due.error):
        return ()
    base_offset = due.segment.base_offset
    return tuple(
        each for each in due.log.damaged if each.segment == base_offset and each.is_unreadable
    )


class LogScrubber:
    """Verifies what the logs of one store have on disk."""

    def __init__(
        self,
        store: LogStore,
        loop: AbstractEventLoop,
        clock: Clock,
        *,
        bytes_per_second: int,
        interval_ms: int,
    ) -> None:
        """``bytes_per_second`` 0: only what a reader could not read is looked at."""
        self._store = store
        self._loop = loop
        self._clock = clock
        self._enabled = bytes_per_second > 0
        self._interval_ms = interval_ms
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
        """Has a log read anew, the files of which are copies; None: they are all there is."""
        self._renewed_ms: dict[int, int] = {}
        """When a partition's log was read anew for being damaged, if that was not long ago."""

    # What others see

    def damaged(self) -> list[tuple[PartitionLog, DamagedRange]]:
        """Return every damaged range there is now, with its log."""
        alive = self._store.logs
        self._damaged = {
            log for log in self._damaged if log.damaged and alive.get(log.partition_id) is log
        }
        logs = sorted(self._damaged, key=lambda log: (log.topic, log.partition))
        return [(log, each) for log in logs for each in log.damaged]

    def describe_damage(self) -> str | None:
        """Return one line for operators; None when all is well."""
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
        """Take up what a former run has noted; ``clean``: it ended in good order.

        Call it once it is known whether the store keeps a journal: what does not is a copy.
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
        """Note what is known now. Waits for the disk; does without if it will not take it."""
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
        """Look for work from now on."""
        self._due()

    def stop(self) -> None:
        """End what is under way."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._thread.close(waits=True)

    def suspect(self, log: PartitionLog, base_offset: int, error: Exception) -> None:
        """Look at a segment as soon as possible: reading it failed, or had (OffsetOffline)."""
        segment = log.segments[log.segment_at(base_offset)]
        cleared_ms = self._cleared.get(segment)
        pause_ms = UNREADABLE_AGAIN_MS if _is_offline(error) else SUSPECTED_AGAIN_MS
        if cleared_ms is not None and self._clock.now_ms() - cleared_ms < pause_ms:
            return
        if self._running is not None and self._running.segment is segment:
            return
        if segment not in self._suspected:
            self._suspected[segment] = _Due((0, 0, 0), log, segment, error)
            self._next()

    # What is due

    def _due(self) -> None:
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._due)
        if self._enabled and not self._is_surveying and not self._in_pass:
            self._survey()

    def _survey(self) -> None:
        """Look what is due, some logs in each turn of the loop, and begin a pass over it."""
        self._is_surveying = True
        pending = list(self._store.logs.values())
        due: list[_Due] = []

        def turn() -> None:
            now_ms = self._clock.now_ms()
            for _ in range(min(LOGS_PER_TURN, len(pending))):
                due.extend(self._due_of(pending.pop(), now_ms))
            if self._stopped.is_set():
                return
            if pending:
                self._loop.call_soon(turn)
                return
            self._is_surveying = False
            if due:
                self._in_pass = True
                self._pass = sorted(due, key=_order, reverse=True)
                self.counts.pending = len(due)
                self._next()

        turn()

    def _due_of(self, log: PartitionLog, now_ms: int) -> Iterator[_Due]:
        newest = len(log.segments) - 1
        for at, segment in enumerate(log.segments):
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
        """Have the next segment looked at on the thread."""
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
        """Have the thread write down what is known, before it goes on with ``due``."""
        self._is_noted = True
        self._noted_ms = self._clock.now_ms()
        if due is not None:
            self._pass.append(due)
        self._run(self.save, self._saved)

    def _saved(self, done: Future[None]) -> None:
        """What was not written down is verified once more after a restart."""
        if (error := done.exception()) is not None:
            logger.error("scrub progress not saved error=%r", error)

    def _run(self, work: Callable[[], Result], then: Callable[[Future[Result]], None]) -> None:
        """Do one thing on the thread, then go on."""

        def done(future: Future[Result]) -> None:
            self._is_running = False
            # Looked at in any case: asyncio logs an exception that is not asked for.
            if future.cancelled() or isinstance(future.exception(), ScrubEndedError):
                return
            if not self._stopped.is_set():
                then(future)
                self._next()

        self._is_running = True
        self._thread.run(work).add_done_callback(done)

    def _take(self) -> _Due | None:
        """The next segment that is still there; None at the end of a pass."""
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
        """Look at a segment; None if only ``wanted`` is asked for, and cannot be read still."""
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
        """Have a log read anew from where it is durable; False where it cannot be, or just was."""
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
