"""Verification of a segment: each batch and each index entry is checked once.

Rules of this file:

1. A check runs on a thread, on a :class:`SegmentCheck` that the loop has made; it knows nothing of
   live logs, touches no file but to read it, and keeps little in memory: a batch may be large.
2. A batch is sound if its checksum is right, its offsets continue at the end of the previous batch
   (after compaction, they may skip some) and its leader epoch has existed.
3. After an unsound byte the next sound batch is searched, byte by byte; all in between is one
   damaged range. Unreadable bytes count as zeros.
4. Index files are derived: a wrong one is not damage of the log, it is written again (D7).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from barnabas.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    BatchHeader,
    read_header,
)
from barnabas.storage.files.file_system import File, FileSystem
from barnabas.storage.files.io import PAGE_BYTES
from barnabas.storage.log.damage import UNREADABLE, DamagedRange, from_offset, with_findings
from barnabas.storage.log.index import (
    NO_TIMESTAMP,
    CorruptIndex,
    OffsetIndex,
    SegmentIndex,
    TimeIndex,
    TransactionIndex,
    index_checksum,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
)

CHUNK_BYTES: Final = 256 * 1024
"""Bytes that are read at a time; the interpreter is released in between."""

PIECE_BYTES: Final = CHUNK_BYTES - PAGE_BYTES
"""Bytes of a chunk that certainly follow any position, as reads start with whole pages."""

UNREADABLE_PAGES_MAX: Final = 256
"""Number of unreadable pages in a row after which the rest of a file is not tried: each may take
the disk seconds."""

PROBE_BYTES: Final = 1024 * 1024
"""Bytes of an unreadable range that are tried before all of its segment is."""

_MAGIC_POSITION: Final = 16
_MAGIC_BYTE: Final = bytes([MAGIC])

_BATCHES_PER_LOOK: Final = 32
"""Number of batches after which ``pace`` may release the interpreter."""

_INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

Pace = Callable[[int], None]
"""Told of bytes that are about to be read; may wait, and may raise to end the check."""


@dataclass(frozen=True, slots=True)
class SegmentCheck:
    """A segment as the loop knows it: offsets from ``base_offset`` up to ``end_offset``.

    ``size_bytes`` of its log file are to be checked. ``has_gaps``: compaction may have removed
    offsets. ``leader_epoch`` is the highest there has been. ``transactions`` is None if the index
    files are not to be checked, because they are not written yet.
    """

    path: str
    base_offset: int
    end_offset: int
    size_bytes: int
    has_gaps: bool
    leader_epoch: int
    index_interval_bytes: int
    transactions: TransactionIndex | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a check.

    ``index`` is built from the sound batches, the last of which ends at ``data_end_offset``.
    ``wrong_files`` names the index files that contradict the log. ``index_checksum`` is that of
    offset and time index, None unless both are right.
    """

    damaged: tuple[DamagedRange, ...]
    batches: int
    size_bytes: int
    index: SegmentIndex
    wrong_files: tuple[str, ...]
    index_checksum: int | None
    data_end_offset: int


def is_complete(segment: Segment) -> bool:
    """Return whether the files of a sealed segment are complete."""
    return segment.is_settled and segment.written_bytes == segment.size_bytes


def plan_check(log: PartitionLog, segment: Segment) -> SegmentCheck:
    """Return the written part of a segment, as it is now, with indexes only if it is complete."""
    end_offset = segment.end_offset
    if log.unflushed:
        end_offset = max(segment.base_offset, min(end_offset, log.unflushed[0].base_offset))
    return SegmentCheck(
        path=log.directory.path,
        base_offset=segment.base_offset,
        end_offset=end_offset,
        size_bytes=segment.written_bytes,
        has_gaps=segment.base_offset < log.cleaning.compacted_offset,
        leader_epoch=log.leader_epoch,
        index_interval_bytes=segment.index_interval_bytes,
        transactions=segment.transactions if is_complete(segment) else None,
    )


def take_findings(log: PartitionLog, plan: SegmentCheck, verdict: Verdict) -> list[DamagedRange]:
    """Withhold damaged offsets of ``log`` from readers; returns the newly found ranges."""
    before = log.damaged
    found = with_findings(before, plan.base_offset, plan.end_offset, verdict.damaged)
    log.damaged = from_offset(found, log.log_start_offset)
    return [each for each in log.damaged if each not in before]


def check_segment(file_system: FileSystem, plan: SegmentCheck, pace: Pace) -> Verdict:
    """Check every batch of a segment, then its indexes. Raises any error of ``pace``."""
    stem = file_system.join(plan.path, file_stem(plan.base_offset))
    try:
        file = file_system.open(stem + LOG_SUFFIX)
    except FileNotFoundError:
        return _missing(plan)
    index_files = _IndexFiles(file_system, stem, plan)
    try:
        walk = _Walk(plan, _Source(file, plan.size_bytes, pace))
        for position, header in walk.batches():
            walk.index.append(header.last_offset, header.newest_timestamp, position)
            index_files.pass_batch(header, position)
    finally:
        file.close()
    walk.index.seal()
    wrong = index_files.wrong(walk.damaged)
    return Verdict(
        damaged=tuple(walk.damaged),
        batches=walk.sound,
        size_bytes=plan.size_bytes,
        index=walk.index,
        wrong_files=tuple(wrong),
        index_checksum=None if wrong else index_files.checksum,
        data_end_offset=walk.data_end_offset,
    )


def can_be_read(
    file_system: FileSystem, plan: SegmentCheck, ranges: Iterable[DamagedRange], pace: Pace
) -> bool:
    """Return whether some of these ranges of a segment can be read again."""
    file = file_system.open(file_system.join(plan.path, file_stem(plan.base_offset) + LOG_SUFFIX))
    try:
        return any(_is_given(file, each, pace) for each in ranges)
    finally:
        file.close()


def _is_given(file: File, damaged: DamagedRange, pace: Pace) -> bool:
    end = min(damaged.end_position, damaged.position + PROBE_BYTES)
    for position in range(damaged.position, end, CHUNK_BYTES):
        size = min(CHUNK_BYTES, end - position)
        pace(size)
        try:
            file.pread_passing(size, position)
        except OSError:
            return False
    return True


def _missing(plan: SegmentCheck) -> Verdict:
    """Return the verdict for a segment without a file, as before its first write."""
    base = plan.base_offset
    damaged = DamagedRange(base, plan.end_offset, base, 0, 0, "the file is missing")
    index = SegmentIndex(base, plan.index_interval_bytes)
    return Verdict((damaged,) if plan.size_bytes else (), 0, 0, index, (), None, base)


class _Source:
    """Bytes of an untrusted file: ``size`` bytes, with zeros for unreadable ones."""

    def __init__(self, file: File, size: int, pace: Pace) -> None:
        self._file = file
        self.size = size
        self.pace = pace
        self._start = 0
        self._data = b""
        self._unreadable_pages = 0
        self.failures: list[tuple[int, OSError]] = []
        """Pages that could not be read, and why; at most ``UNREADABLE_PAGES_MAX``."""

    def view(self, position: int, size: int) -> memoryview:
        """Return at most ``PIECE_BYTES`` from ``position`` on; the caller stays before the end."""
        at = position - self._start
        if not 0 <= at <= len(self._data) - size:
            self._load(position)
            at = position - self._start
        return memoryview(self._data)[at : at + size]

    def find(self, needle: bytes, position: int) -> tuple[int, bool]:
        """Return the position of ``needle`` at or after ``position``, or where to continue the
        search.
        """
        at = position - self._start
        if not 0 <= at < len(self._data):
            self._load(position)
            at = position - self._start
        found = self._data.find(needle, at)
        return (self._start + found, True) if found >= 0 else (self._start + len(self._data), False)

    def _load(self, position: int) -> None:
        position -= position % PAGE_BYTES
        size = min(CHUNK_BYTES, self.size - position)
        self.pace(size)
        try:
            data = self._file.pread_passing(size, position)
        except OSError:
            data = b"".join(self._pages(position, size))
        self._start, self._data = position, data + bytes(size - len(data))

    def _pages(self, position: int, size: int) -> Iterator[bytes]:
        """Yield the readable pages."""
        end = position + size
        while position < end:
            step = min(PAGE_BYTES - position % PAGE_BYTES, end - position)
            data = b""
            if self._unreadable_pages < UNREADABLE_PAGES_MAX:
                try:
                    data = self._file.pread_passing(step, position)
                    self._unreadable_pages = 0
                except OSError as error:
                    self._unreadable_pages += 1
                    del self.failures[: len(self.failures) - UNREADABLE_PAGES_MAX]
                    self.failures.append((position, error))
            yield data + bytes(step - len(data))
            position += step


class _Walk:
    """Iterates over batches, and skips bytes that are no batch."""

    def __init__(self, plan: SegmentCheck, source: _Source) -> None:
        self._plan = plan
        self._source = source
        self.index = SegmentIndex(plan.base_offset, plan.index_interval_bytes)
        self.damaged: list[DamagedRange] = []
        self.sound = 0
        self.data_end_offset = plan.base_offset

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of every sound batch; record the bytes between as damaged."""
        plan, source = self._plan, self._source
        expected, position = plan.base_offset, 0
        held: tuple[int, BatchHeader, int] | None = None
        while position < source.size:
            header, reason = self._sound_batch(position, expected)
            if header is not None:
                self.sound += 1
                if not self.sound % _BATCHES_PER_LOOK:
                    source.pace(0)
                if held is not None:
                    yield held[:2]
                held = position, header, expected
                expected = header.next_offset
                position += header.size
                self.data_end_offset = expected
                continue
            begin = position
            if held is not None and self._contradict(held, begin):
                # One of two whole batches has a wrong offset, and nothing says which.
                begin, _, expected = held
                self.sound -= 1
            elif held is not None:
                yield held[:2]
            held = None
            position, next_offset = self._next_sound(position, expected)
            self._note(expected, next_offset, begin, position, reason)
            expected = next_offset
        if held is not None:
            yield held[:2]
        if expected != plan.end_offset and not plan.has_gaps:
            reason = f"the segment ends at offset {expected}, not {plan.end_offset}"
            self._note(expected, plan.end_offset, source.size, source.size, reason)

    def _note(self, base: int, end: int, position: int, end_position: int, reason: str) -> None:
        segment = self._plan.base_offset
        for entry_position, error in self._source.failures:
            if position < entry_position + PAGE_BYTES and entry_position < end_position:
                reason = f"{UNREADABLE}{error}"
        self.damaged.append(DamagedRange(base, end, segment, position, end_position, reason))

    def _sound_batch(self, position: int, expected: int) -> tuple[BatchHeader | None, str]:
        """Return the header of the sound batch at ``position``, or the reason why the batch is not
        sound.
        """
        header = self._header(position)
        if header is None:
            return None, "no record batch starts here"
        base_offset = header.base_offset
        if base_offset < expected or (base_offset > expected and not self._plan.has_gaps):
            return None, f"a batch of offset {base_offset} where {expected} should be"
        if not self._is_whole(position, header):
            return None, "the checksum of the batch is wrong"
        return header, ""

    def _header(self, position: int) -> BatchHeader | None:
        """Return the header at ``position`` if each of its fields is possible, or None."""
        source, plan = self._source, self._plan
        if position + HEADER_BYTES > source.size:
            return None
        header = read_header(source.view(position, HEADER_BYTES))
        if (
            header.magic != MAGIC
            or not HEADER_BYTES <= header.size <= source.size - position
            or header.last_offset_delta < 0
            or not plan.base_offset <= header.base_offset < header.next_offset <= plan.end_offset
            or not NO_LEADER_EPOCH <= header.partition_leader_epoch <= plan.leader_epoch
        ):
            return None
        return header

    def _is_whole(self, position: int, header: BatchHeader) -> bool:
        source = self._source
        end = position + header.size
        position += CRC_START
        checksum = 0
        while position < end:
            size = min(PIECE_BYTES, end - position)
            checksum = crc32c(source.view(position, size), checksum)
            position += size
        return checksum == header.crc

    def _contradict(self, held: tuple[int, BatchHeader, int], position: int) -> bool:
        """Return whether the previous batch claims the offset of the one at ``position``."""
        _, before, expected = held
        header = self._header(position)
        return (
            header is not None
            and before.base_offset > expected
            and header.base_offset < before.next_offset
            and self._is_whole(position, header)
        )

    def _next_sound(self, position: int, expected: int) -> tuple[int, int]:
        """Return position and base offset of the next sound batch, or of the segment's end."""
        source, plan = self._source, self._plan
        header = self._header(position)
        if header is not None:
            # The batch's records may look like batches: its successor is tried first.
            following = position + header.size
            base_offset = self._start_of_sound(following, expected)
            if base_offset is not None:
                return following, base_offset
        position += 1
        tried = 0
        while position + HEADER_BYTES <= source.size:
            at, found = source.find(_MAGIC_BYTE, position + _MAGIC_POSITION)
            position = at - _MAGIC_POSITION
            if not found:
                continue
            base_offset = self._start_of_sound(position, expected)
            if base_offset is not None:
                return position, base_offset
            position += 1
            tried += 1
            if not tried % _BATCHES_PER_LOOK:
                source.pace(0)
        return source.size, plan.end_offset

    def _start_of_sound(self, position: int, expected: int) -> int | None:
        """Return the base offset of the batch at ``position`` if it and the next one look valid."""
        source, plan = self._source, self._plan
        if position >= source.size:
            return plan.end_offset
        header = self._header(position)
        if header is None or header.base_offset <= expected:
            return None
        if not self._is_whole(position, header):
            return None
        following = position + header.size
        if following < source.size:
            after = self._header(following)
            if after is None or after.base_offset < header.next_offset:
                return None
        return header.base_offset


class _IndexFiles:
    """The index files of a segment, their entries proved by the batches as they come by."""

    def __init__(self, file_system: FileSystem, stem: str, plan: SegmentCheck) -> None:
        self._wrong: set[str] = set()
        self.checksum: int | None = None
        self._offsets: Iterator[tuple[int, int]] = iter(())
        self._times: Iterator[tuple[int, int]] = iter(())
        self._is_ahead = False
        self._last_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self._unproved: list[int] = []
        if plan.transactions is not None:
            self._read(file_system, stem, plan, plan.transactions)
        self._offset_entry = next(self._offsets, None)
        self._time_entry = next(self._times, None)

    def _read(
        self, file_system: FileSystem, stem: str, plan: SegmentCheck, transactions: TransactionIndex
    ) -> None:
        data = {suffix: _content(file_system, stem + suffix) for suffix in _INDEX_SUFFIXES}
        if data[TRANSACTION_INDEX_SUFFIX] != transactions.encode():
            self._wrong.add(TRANSACTION_INDEX_SUFFIX)
        try:
            self._offsets = OffsetIndex.decode(data[INDEX_SUFFIX], plan.base_offset).entries()
        except CorruptIndex:
            self._wrong.add(INDEX_SUFFIX)
        try:
            times = TimeIndex.decode(data[TIME_INDEX_SUFFIX], plan.base_offset)
        except CorruptIndex:
            self._wrong.add(TIME_INDEX_SUFFIX)
        else:
            self._times = ((entry.offset, entry.timestamp) for entry in times.entries())
            self._last_timestamp = times.last_timestamp
        self.checksum = index_checksum(data[INDEX_SUFFIX], data[TIME_INDEX_SUFFIX])

    def pass_batch(self, header: BatchHeader, position: int) -> None:
        """Prove the index entries of a batch; an offset entry may name it or a later one.

        (Kafka of old noted the last offset of all that it wrote at once.)
        """
        while self._offset_entry is not None and self._offset_entry[1] <= position:
            offset, entry_position = self._offset_entry
            if entry_position < position:
                self._unproved.append(entry_position)
            elif offset < header.base_offset:
                self._wrong.add(INDEX_SUFFIX)
            self._offset_entry = next(self._offsets, None)
        if self._time_entry is not None and self._time_entry[0] <= header.last_offset:
            self._prove_times(header.base_offset - 1)  # Of batches that are damaged.
            self._max_timestamp = max(self._max_timestamp, header.newest_timestamp)
            self._prove_times(header.last_offset)
        else:
            self._max_timestamp = max(self._max_timestamp, header.newest_timestamp)

    def _prove_times(self, last_offset: int) -> None:
        """Compare the time entries up to an offset with the largest timestamp up to there."""
        while self._time_entry is not None and self._time_entry[0] <= last_offset:
            timestamp = self._time_entry[1]
            if timestamp < self._max_timestamp:
                self._wrong.add(TIME_INDEX_SUFFIX)
            self._is_ahead = self._is_ahead or timestamp > self._max_timestamp
            self._time_entry = next(self._times, None)

    def wrong(self, damaged: list[DamagedRange]) -> list[str]:
        """Return the files that contradict the log; entries for damaged bytes are not compared."""
        if self._offset_entry is not None:
            self._unproved += [
                self._offset_entry[1],
                *(entry_position for _, entry_position in self._offsets),
            ]
        begins = [each.position for each in damaged]
        for entry_position in self._unproved:
            at = bisect_right(begins, entry_position) - 1
            if at < 0 or entry_position >= damaged[at].end_position:
                self._wrong.add(INDEX_SUFFIX)
                break
        if not damaged and (self._is_ahead or self._last_timestamp != self._max_timestamp):
            self._wrong.add(TIME_INDEX_SUFFIX)
        return sorted(self._wrong)


def _content(file_system: FileSystem, path: str) -> bytes:
    """Return the bytes of a small file, or none if it cannot be read: no index is empty."""
    try:
        return file_system.read_file(path)
    except OSError:
        return b""
