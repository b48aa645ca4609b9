"""Reading a piece of a log: batches, and the state of the log after reading them.

The loop determines the limits of a piece and the state of the log; a thread waits for the disk and
iterates over batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.broker.console.records.standing import Standing, standing_of
from barnabas.broker.runtime.threads import Pool
from barnabas.protocol.compression import GZIP, LZ4, SNAPPY, ZSTD, CompressionError, expand
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import HEADER_BYTES, BatchHeader, CorruptBatch, iterate_batches
from barnabas.storage.errors import Corrupt, OffsetOffline, OffsetOutOfRange
from barnabas.storage.log.damage import first_at_or_after
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.segment_read import ReadPlan, read_waiting
from barnabas.storage.log.time_lookup import Search, TimestampOffset, offset_for_timestamp

if TYPE_CHECKING:
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.http.messages.answer_memory import AnswerMemory
    from barnabas.storage.log.partition_log import PartitionLog

THREADS: Final = 2
PIECE_BYTES: Final = 256 * 1024
ROUNDS_MAX: Final = 5
"""Maximum number of attempts to read a piece whose segment is being replaced."""
MEMORY_STEPS_MAX: Final = 200
"""Maximum number of entries in memory inspected to find the beginning of a piece."""
KEPT_BYTES_MOST: Final = 4 * 1024 * 1024
"""Bytes of kept records up to which one request expands another batch."""
LARGE_BYTES: Final = 32 * 1024 * 1024
"""Memory from which on a piece of work has a thread to itself."""
MEASURED_CODECS: Final = frozenset((GZIP, LZ4, ZSTD))
SNAPPY_RATIO_MAX: Final = 22
"""Maximum expansion by Snappy: three bytes become at most 64."""
READS_MAX: Final = 64
"""Reads for one piece: of segments that have little left in them."""

Result = TypeVar("Result")
_base_offset: Final = attrgetter("base_offset")


class Batch(NamedTuple):
    """One batch as it is stored."""

    header: BatchHeader
    data: memoryview


class Unread(NamedTuple):
    """Offsets that cannot be read, and why."""

    from_offset: int
    until_offset: int
    reason: str


@dataclass(slots=True)
class Piece:
    """Whole batches, in the order of their offsets."""

    from_offset: int
    until_offset: int
    """Offset after the last batch; offsets before it that are in no batch do not exist."""
    batches: list[Batch]
    size_bytes: int
    standing: Standing
    unread: list[Unread]


@dataclass(slots=True)
class _Found:
    """Batches read so far in one round."""

    offset: int
    batches: list[Batch] = field(default_factory=list)
    size_bytes: int = 0
    producers: set[int] = field(default_factory=set)
    unread: list[Unread] = field(default_factory=list)
    reads: int = 0


class RecordReaders:
    """Threads of all readers of records, created with the first one."""

    def __init__(self, memory: AnswerMemory) -> None:
        self.memory = memory
        self._threads = Pool("records", THREADS)
        self._large_thread = Pool("large-records")
        """One thread for large work: the C library keeps freed memory for each thread."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work on a thread, and wait for it."""
        return await self._threads.run(work)

    async def expand(
        self, batches: Sequence[Batch], work: Callable[[], Result], most_bytes: int
    ) -> Result:
        """Run work that expands batches one by one, each to ``most_bytes`` at most.

        How far they expand is measured first, without keeping it: what compressed bytes stand for
        is known in no other way, and the largest that is allowed would let one request after the
        other wait.
        """
        measured = [each for each in batches if each.header.compression in MEASURED_CODECS]
        size_bytes = max((_known_expansion(each, most_bytes) for each in batches), default=0)
        if measured:
            measure = partial(_largest_expansion, measured, most_bytes)
            end = await self.memory.begin_work(most_bytes)  # The window of a decoder.
            size_bytes = max(size_bytes, await self._threads.run_counted(measure, end))
        return await self.run_within(2 * size_bytes + KEPT_BYTES_MOST, work)

    async def run_within(self, size_bytes: int, work: Callable[[], Result]) -> Result:
        """Run work on a thread once its bytes fit into the budget, which holds them until its end.

        That may be later than this call, which may be cancelled.
        """
        end = await self.memory.begin_work(size_bytes)
        pool = self._threads if size_bytes < LARGE_BYTES else self._large_thread
        return await pool.run_counted(work, end)

    async def offset_at(self, log: PartitionLog, timestamp_ms: int) -> int:
        """Return the first offset not older than a time, or the end of the log."""
        try:
            found = await self._search(offset_for_timestamp(log, timestamp_ms))
        except (Corrupt, OffsetOffline, OffsetOutOfRange, OSError, CorruptBatch) as error:
            words = f"{log.topic}-{log.partition} cannot be searched by time: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, words) from None
        return log.high_watermark if found is None else found.offset

    async def _search(self, search: Search) -> TimestampOffset | None:
        try:
            work = next(search)
            while True:
                work = search.send(await self.run(work))
        except StopIteration as stop:
            found: TimestampOffset | None = stop.value
            return found

    async def before(self, log: PartitionLog, end: int, size_bytes: int, pace: ThreadPace) -> Piece:
        """Read the last batches before an offset: about the given size, and at least one."""
        start = max(start_of_piece(log, end, size_bytes), log.log_start_offset)
        return await self._piece(log, start, end, None, pace)

    async def after(
        self, log: PartitionLog, start: int, end: int, size_bytes: int, pace: ThreadPace
    ) -> Piece:
        """Read the first batches between two offsets, about the given size."""
        return await self._piece(log, max(start, log.log_start_offset), end, size_bytes, pace)

    async def _piece(
        self, log: PartitionLog, start: int, end: int, size_bytes: int | None, pace: ThreadPace
    ) -> Piece:
        for _ in range(ROUNDS_MAX):
            swaps = log.cleaning.swaps
            found = _Found(start)
            while found.offset < end and (size_bytes is None or found.size_bytes < size_bytes):
                if not await self._read(log, end, found, pace):
                    break
            if log.cleaning.swaps == swaps:
                break
        else:
            words = f"{log.topic}-{log.partition} is being compacted: ask again"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, words)
        begin = min(start, found.batches[0].header.base_offset) if found.batches else start
        # In this very turn: nothing was replaced since the bytes were read.
        standing = standing_of(log, begin, found.producers)
        return Piece(begin, found.offset, found.batches, found.size_bytes, standing, found.unread)

    async def _read(self, log: PartitionLog, end: int, found: _Found, pace: ThreadPace) -> bool:
        """Read the next batches; return False if none precede ``end``."""
        found.reads += 1
        if found.reads > READS_MAX:
            return False
        try:
            plan = log.plan_read(found.offset, PIECE_BYTES)
        except OffsetOffline as offline:
            return _skip(log, end, found, str(offline))
        except OffsetOutOfRange:
            moved = found.offset < log.log_start_offset < end
            found.offset = max(found.offset, log.log_start_offset)
            return moved
        except OSError as error:  # Its topic was deleted.
            words = f"{log.topic}-{log.partition} cannot be read: {error.strerror}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, words) from None
        if plan is None:
            found.offset = max(found.offset, min(end, log.high_watermark))
            return False
        try:
            return await self.run(partial(_walk, plan, end, found, pace))
        except (Corrupt, OSError, CorruptBatch) as error:
            if not isinstance(error, CorruptBatch):
                log.suspect(found.offset, error)
            found.unread.append(Unread(found.offset, end, f"not readable: {error}"))
            found.offset = end
            return False


def _known_expansion(batch: Batch, most_bytes: int) -> int:
    """Return the maximum expanded size of a batch, by its own size."""
    ratio = SNAPPY_RATIO_MAX if batch.header.compression == SNAPPY else 1
    return min(most_bytes, ratio * len(batch.data))


def _largest_expansion(batches: Sequence[Batch], most_bytes: int) -> int:
    """Return the expanded size of the largest batch, at most ``most_bytes``. Runs on a thread."""
    largest = 0
    for header, data in batches:
        size_bytes = 0
        try:
            for piece in expand(header.compression, data[HEADER_BYTES:], most_bytes):
                size_bytes += len(piece)
        except CompressionError:
            size_bytes = most_bytes
        largest = max(largest, size_bytes)
    return largest


def _skip(log: PartitionLog, end: int, found: _Found, reason: str) -> bool:
    """Continue after a damaged range."""
    damage = first_at_or_after(log.damaged, found.offset)
    until = end if damage is None else min(end, damage.end_offset)
    found.unread.append(Unread(found.offset, until, reason))
    found.offset = max(until, found.offset)
    return until < end


def _walk(plan: ReadPlan | MemorySlice, end: int, found: _Found, pace: ThreadPace) -> bool:
    """Load the planned ranges and find their batches. Runs on a thread."""
    if isinstance(plan, MemorySlice):
        chunks = plan.chunks
    else:
        loaded = plan.load(read_waiting)
        chunks = [] if loaded is None else [loaded.data]
    before = found.offset
    for chunk in chunks:
        for position, header in iterate_batches(chunk):
            pace.step()
            if header.base_offset >= end:
                found.offset = max(found.offset, end)
                return False
            found.batches.append(Batch(header, chunk[position : position + header.size]))
            found.producers.add(header.producer_id)
            found.size_bytes += header.size
            found.offset = header.next_offset
    if found.offset == before:
        found.offset = max(before, end)  # Compaction has left nothing up to there.
        return False
    return True


def start_of_piece(log: PartitionLog, end: int, size_bytes: int) -> int:
    """Return an offset about this many bytes before ``end``."""
    unflushed = log.unflushed
    if unflushed and unflushed[0].base_offset < end:
        at = bisect_left(unflushed, end, key=_base_offset) - 1
        size = 0
        first = max(0, at - MEMORY_STEPS_MAX)
        while at > first and size < size_bytes:
            size += unflushed[at].end - unflushed[at].start
            at -= 1
        return int(unflushed[at].base_offset)
    at = log.segment_at(end - 1)
    segment = log.segments[at]
    while at > 0 and segment.size_bytes == 0:  # Compaction has left nothing in it.
        at -= 1
        segment = log.segments[at]
    offsets = segment.index.offsets
    _, position = offsets.entry_at(end - 1)
    offset, _ = offsets.floor(max(0, position - size_bytes))
    return int(min(offset, end - 1))
