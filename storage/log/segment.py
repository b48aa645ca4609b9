"""One segment: a `.log` file in Kafka's format with its indexes.

Rules of this file:

1. The loop reserves places (``reserve``) and knows ``written_bytes``, what can be read; the segment
   thread writes (``write``, ``finish``). Neither waits for the other.
2. Index files are derived: written at checkpoints, rolls and shutdown, rebuilt from the log
   whenever they are missing, damaged or behind (D4, D7).
3. A segment of a removed partition swallows what the thread still had to write for it. So does a
   discarded one, whose records a cluster's store has: a write that waits for room ends then.
"""

import errno
from collections.abc import Callable, Iterator
from typing import Final

from crc32c import crc32c

from barnabas.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
)
from barnabas.protocol.records import HEADER as BATCH_HEADER
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.file_system import Buffer, File
from barnabas.storage.log.index import (
    CorruptIndex,
    OffsetIndex,
    SegmentIndex,
    TransactionIndex,
    check_last_time,
    index_checksum,
)
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment_names import (
    GROWN,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_DELTA_MAX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    WallClock,
)
from barnabas.storage.log.segment_read import FileSpan, checked_batches, scan_batches

_SCAN_BYTES: Final = 1024 * 1024
_WRITEBACK_BYTES: Final = 2 * 1024 * 1024
"""Bytes that the disk is requested to write at a time, so that a checkpoint finds little left to
sync. The journal's next sync queues after them: with 8 MB of each of four partitions, 10 ms."""
_ALLOCATE_MIN_BYTES: Final = 1024 * 1024
_ALLOCATE_MAX_BYTES: Final = 32 * 1024 * 1024


class Segment(ReadableSegment):
    """Batches from ``base_offset`` on; sizes and positions in bytes of the log file."""

    def __init__(
        self,
        directory: LogDirectory,
        base_offset: int,
        index_interval_bytes: int,
        *,
        created_ms: int,
    ) -> None:
        """A new, empty segment; nothing is touched on disk before the first write."""
        super().__init__(base_offset, created_ms=created_ms)
        self.directory = directory
        self.index_interval_bytes = index_interval_bytes
        self.first_timestamp_ms = -1
        self.sealed = False
        self.has_producers = False
        """Whether reading the log at the start met batches of producers with ids."""
        self.is_pinned = False
        """Whether the files still have temporary names."""
        self.differs_from_store = False
        """Whether compaction wrote the segment, and the store of a cluster has not followed yet."""
        self._is_discarded = False
        self._awaits_indexes = False
        self._data_end_offset: int | None = None
        self._index: SegmentIndex | None = SegmentIndex(base_offset, index_interval_bytes)
        self.verified_ms = 0
        """Time when the whole segment was last verified, or 0 if not yet, or not since a crash."""
        self.index_checksum: int | None = None
        """Checksum that the files of offset and time index must have, if known."""
        self._file: File | None = None
        self._indexes_written = False
        self.indexed_bytes = 0
        """Size of the part of the log that the index files cover."""
        self._known_max_timestamp_ms: int | None = None
        self._room_bytes = 0
        self._room_until_ms = -1
        self._index_due_position = index_interval_bytes
        self._max_timestamp_ms = -1
        self._writeback_position = 0
        self._allocated_bytes = 0

    @property
    def log_path(self) -> str:
        """Path of the `.log` file."""
        return self.directory.file_path(self.stem + LOG_SUFFIX)

    @property
    def disk_bytes(self) -> int:
        """Bytes that the log file takes on the disk at most, with those reserved ahead."""
        return max(self.size_bytes, self._allocated_bytes)

    # The loop's side

    def reserve(self, last_offset: int, max_timestamp: int, size: int) -> int:
        """Reserve the place of a batch at the end of the segment; return its position."""
        position = self.size_bytes
        if position == 0:
            self.first_timestamp_ms = max_timestamp
        # Most batches change nothing in the indexes; asking them costs more than this look.
        if position > self._index_due_position or max_timestamp > self._max_timestamp_ms:
            index = self.index
            if index.append(last_offset, max_timestamp, position):
                self._index_due_position = position + self.index_interval_bytes
            self._max_timestamp_ms = index.max_timestamp
        self.size_bytes = position + size
        self.end_offset = last_offset + 1
        return position

    def reserve_at_once(self, last_offset: int, max_timestamp: int, size: int) -> int:
        """Reserve a place for a batch that certainly fits; -1 if it may not fit."""
        if self.has_room(last_offset, max_timestamp, size):
            return self.reserve(last_offset, max_timestamp, size)
        return -1

    def expect(self, segment_bytes: int, segment_ms: int, index_bytes: int) -> None:
        """Compute the limits within which batches certainly fit (``has_room``)."""
        entries = index_bytes // OffsetIndex.ENTRY_BYTES - len(self.index.offsets) - 1
        indexed_bytes = self.size_bytes + entries * self.index_interval_bytes
        self._room_bytes = min(segment_bytes, indexed_bytes)
        self._room_until_ms = self.first_timestamp_ms + segment_ms if self.size_bytes else -1

    def check_room_again(self) -> None:
        """Check the next batch's size again before it gets a place."""
        self._room_bytes = 0

    def has_room(self, last_offset: int, max_timestamp: int, size: int) -> bool:
        """Return whether a batch certainly fits; False means that it has to be checked."""
        return (
            self.size_bytes + size <= self._room_bytes
            and 0 <= max_timestamp <= self._room_until_ms
            and last_offset - self.base_offset <= OFFSET_DELTA_MAX
        )

    def fits(self, last_offset: int, size: int, segment_bytes: int, index_bytes: int) -> bool:
        """Whether a batch may still go into this segment (an empty one takes any batch)."""
        return self.size_bytes == 0 or (
            self.size_bytes + size <= segment_bytes
            and last_offset - self.base_offset <= OFFSET_DELTA_MAX
            and (len(self.index.offsets) + 1) * OffsetIndex.ENTRY_BYTES <= index_bytes
        )

    def age_ms(self, timestamp_ms: int, clock: WallClock) -> int:
        """Return the age in ms: up to ``timestamp_ms``, or without timestamps up to now."""
        if self.size_bytes == 0:
            return 0
        if self.first_timestamp_ms >= 0 and timestamp_ms >= 0:
            return timestamp_ms - self.first_timestamp_ms
        return clock.now_ms() - self.created_ms

    def seal(self) -> None:
        """Mark the segment as complete, and give the time index its last entry."""
        self.index.seal()
        self.sealed = self._awaits_indexes = True
        self.verified_ms = 0

    @property
    def index(self) -> SegmentIndex:
        """Offset and time index; those of a sealed segment are read on first use."""
        index = self._index
        if index is None:
            index = self._index = self._load_indexes()
        return index

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp in the segment, or -1."""
        if self._index is None and self._known_max_timestamp_ms is not None:
            return self._known_max_timestamp_ms
        return self.index.max_timestamp

    @property
    def data_end_offset(self) -> int:
        """Offset after the last batch; compaction may have moved it before ``end_offset``."""
        if self._index is None and self._data_end_offset is None:
            self._index = self._load_indexes()
        return self.end_offset if self._data_end_offset is None else self._data_end_offset

    def span(
        self,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        within: tuple[int, int],
        *,
        has_gaps: bool = False,
    ) -> FileSpan:
        """Return the part of the file to read; see ``ReadableSegment``."""
        begin, end_position = within
        offsets = self.index.offsets
        position_offset, position = offsets.entry_at(start_offset)
        if position < begin:
            position_offset, position = end_offset, begin
        # The index is ahead of the file: what is not written yet has its entries already.
        reach = min(position + max_bytes, end_position - 1)
        boundary_offset, boundary = offsets.floor(reach)
        limit = offsets.lookup(end_offset - 1)
        if limit < boundary:
            boundary_offset, boundary = end_offset, limit
        if boundary <= position:
            boundary_offset, boundary = start_offset, position
        return FileSpan(
            self.log_path,
            self.file,
            position,
            end_position,
            boundary,
            boundary_offset,
            start_offset,
            end_offset,
            max_bytes,
            has_gaps,
            position_offset if position else end_offset,
        )

    @property
    def file(self) -> File:
        """Open log file, created if necessary."""
        file = self._file
        if file is None:
            if self.directory.removed:  # Another topic may have the name now.
                raise FileNotFoundError(errno.ENOENT, "the partition is deleted", self.log_path)
            file = self._file = self.directory.open(self.stem + LOG_SUFFIX, create=True)
            self.directory.open_files.opened(self)
        return file

    def close(self) -> None:
        """Close the descriptor; the segment opens again when it is used."""
        self.directory.open_files.closed(self)
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def release_file(self) -> None:
        """Close the log file, and drop indexes that can be read again (``OpenFiles``)."""
        if self.is_pinned:
            return
        self._file = None
        index = self._index
        if self._indexes_written and index is not None:
            self._known_max_timestamp_ms = index.max_timestamp
            self._index = None

    # Compaction (``storage/log/segment_swap.py``)

    def oldest_timestamp_ms(self) -> int:
        """See ``ReadableSegment``."""
        if self.first_timestamp_ms < 0 and self.written_bytes >= HEADER_BYTES:
            self._load_first_timestamp()
        return self.first_timestamp_ms

    def take_cleaned(
        self,
        file: File,
        index: SegmentIndex,
        transactions: TransactionIndex,
        size_bytes: int,
        offsets: tuple[int, int],
    ) -> None:
        """Become a sealed segment whose files, still with temporary names, stay open.

        ``offsets``: where its data ends, and where the next segment begins.
        """
        self._file = file
        self._index = index
        self.transactions = transactions
        self.size_bytes = self.written_bytes = size_bytes
        self._data_end_offset, self.end_offset = offsets
        self.sealed = True
        self.is_pinned = self.differs_from_store = True

    def unpin(self) -> None:
        """Allow the files to be closed and opened again: they have their final names."""
        self.is_pinned = False
        self._indexes_written = True
        if self._file is not None:
            self.directory.open_files.opened(self)

    def retire(self, successor: "Segment") -> None:
        """Release the files: ``successor`` has the data and serves the readers of this segment."""
        self.directory.open_files.closed(self)
        self._indexes_written = False
        self._index = successor.index
        self._file = None

    @property
    def is_settled(self) -> bool:
        """Whether the segment takes no more batches and all of its files are written."""
        is_written = self.sealed and not self._awaits_indexes and not self.is_pinned
        return is_written and not self.directory.is_apart

    def discard(self) -> None:
        """Stop writing: readers get the records of this sealed segment from elsewhere."""
        self._is_discarded = True

    # The segment thread's side

    def write(self, buffers: list[Buffer], position: int) -> None:
        """Write batches into the page cache and keep the kernel's write-back paced."""
        if self.directory.removed or self._is_discarded:
            return
        end = position + sum(len(buffer) for buffer in buffers)
        self._allocate(end)
        self.file.pwritev(buffers, position)
        if end - self._writeback_position >= _WRITEBACK_BYTES:
            self.file.start_writeback(self._writeback_position, end - self._writeback_position)
            self._writeback_position = end

    def _allocate(self, end: int) -> None:
        """Reserve blocks ahead in growing steps: less fragmentation, no waste on small topics."""
        if end <= self._allocated_bytes or end < _ALLOCATE_MIN_BYTES:
            return
        step = min(max(end, _ALLOCATE_MIN_BYTES), _ALLOCATE_MAX_BYTES)
        self._allocated_bytes = end + step
        self.file.allocate(end, step)

    @property
    def is_read_without_indexes(self) -> bool:
        """Whether a start reads the log itself: faster than index files with few entries."""
        return not self.sealed and self.size_bytes <= self.index_interval_bytes

    @property
    def awaits_last_indexes(self) -> bool:
        """Whether a clean stop has to write index files: thousands of tiny logs need none."""
        return self.indexed_bytes != self.size_bytes and (
            not self.is_read_without_indexes or len(self.transactions) > 0
        )

    def index_operation(self) -> Callable[[], None]:
        """Capture the indexes on the loop; return a function that writes them, unsynced."""
        aborted = self.transactions.encode()
        files = [
            (INDEX_SUFFIX, self.index.offsets.encode()),
            (TIME_INDEX_SUFFIX, self.index.times.encode()),
        ]
        if aborted:
            files.append((TRANSACTION_INDEX_SUFFIX, aborted))

        final = self.sealed
        self.indexed_bytes = self.size_bytes
        if final:
            self.index_checksum = index_checksum(files[0][1], files[1][1])

        def write() -> None:
            if self._is_discarded:
                return
            for suffix, data in files:
                self.directory.write_file(self.stem + suffix, data)
            self._indexes_written = final
            self._awaits_indexes = self._awaits_indexes and not final

        return write

    def finish(self) -> None:
        """Release the blocks reserved beyond the end of a sealed segment."""
        is_gone = self.directory.removed or self._is_discarded
        if not is_gone and self._allocated_bytes > self.size_bytes:
            self.file.truncate(self.size_bytes)
            self._allocated_bytes = 0

    def sync(self) -> None:
        """Make the log file durable. For the checkpoint's thread; the directory syncs the rest."""
        try:
            file = self.directory.open(self.stem + LOG_SUFFIX)
        except FileNotFoundError:
            return  # Removed meanwhile, or nothing was ever written.
        try:
            file.fdatasync()
        finally:
            file.close()

    def remove(self) -> None:
        """Unlink the segment's files; readers that hold the log file open keep it."""
        self.directory.open_files.closed(self)
        self._file = None
        if self.directory.removed:
            return
        for suffix in SEGMENT_SUFFIXES:
            self.directory.unlink(self.stem + suffix)

    def open_existing(
        self, size_bytes: int, end_offset: int, *, sealed: bool, trusted: bool
    ) -> None:
        """Open a log file whose first ``size_bytes``, up to ``end_offset``, are valid.

        The rest is cut off. ``trusted``: a clean stop wrote the files. Otherwise an active
        segment's bytes are checked; its index files, which a crash may have torn, are ignored.
        Raises Corrupt when the file is shorter than that, or damaged, and when a clean stop left it
        shorter than it is: then another program has written to it, and its records would be cut.
        """
        actual = self._open_if_there()
        if actual < size_bytes:
            raise Corrupt(self.log_path, actual, f"the file should hold {size_bytes} bytes")
        if actual > size_bytes:
            if trusted and not sealed:
                raise Corrupt(self.log_path, size_bytes, GROWN)
            self.file.truncate(size_bytes)
        self.size_bytes = self.written_bytes = size_bytes
        self.end_offset = end_offset
        self.sealed = self._indexes_written = sealed
        self._index = None
        if not sealed:
            self.has_producers = trusted
            self._index = self._load_indexes() if trusted else self._index_of_checked_log()
            self.indexed_bytes = size_bytes if trusted else 0
            if self.first_timestamp_ms < 0:
                self._load_first_timestamp()

    def open_damaged(self, size_bytes: int, end_offset: int) -> None:
        """Open an active segment with lost bytes as zeros; ``use_index`` must follow."""
        self._open_if_there()
        if self.file.size() != size_bytes:
            self.file.truncate(size_bytes)
        self.size_bytes = self.written_bytes = size_bytes
        self.end_offset = end_offset
        self.sealed = False
        self.has_producers = True
        self.indexed_bytes = 0

    def _open_if_there(self) -> int:
        """Open the log file if it exists; return its size."""
        try:
            file = self.directory.open(self.log_name)
        except FileNotFoundError:
            return 0
        self._file = file
        self.directory.open_files.opened(self)
        return file.size()

    def _index_of_checked_log(self) -> SegmentIndex:
        """Read the whole log with its checksums; return its indexes (D4, D7).

        A start after a crash waits for this, so it is written for speed: it reads each header once.
        """
        index = SegmentIndex(self.base_offset, self.index_interval_bytes)
        unpack = BATCH_HEADER.unpack_from
        expected = self.base_offset
        position, end, want = 0, self.written_bytes, _SCAN_BYTES
        while position < end:
            view = memoryview(self.file.pread(min(want, end - position), position))
            at, last = 0, len(view) - HEADER_BYTES
            while at <= last:
                base, length, _, magic, crc, _, delta, _, timestamp, producer, *_ = unpack(view, at)
                size = length + LENGTH_OVERHEAD
                if base != expected or magic != MAGIC or size < HEADER_BYTES:
                    raise Corrupt(
                        self.log_path, position + at, f"no batch of offset {expected} starts here"
                    )
                if at + size > len(view):
                    break
                if crc32c(view[at + CRC_START : at + size]) != crc:
                    reason = f"the checksum of the batch at offset {expected} is wrong"
                    raise Corrupt(self.log_path, position + at, reason)
                index.append(base + delta, timestamp, position + at)
                self.has_producers = self.has_producers or producer >= 0
                expected = base + delta + 1
                at += size
            if at == 0 and len(view) < want:
                raise Corrupt(self.log_path, position, "the file ends inside a batch")
            want = _SCAN_BYTES if at else want * 2
            position += at
        if expected != self.end_offset:
            raise Corrupt(
                self.log_path, end, f"the log ends at offset {expected}, not {self.end_offset}"
            )
        return index

    def _load_first_timestamp(self) -> None:
        if self.written_bytes:
            header = read_header(self.file.pread(HEADER_BYTES, 0))
            self.first_timestamp_ms = header.newest_timestamp

    def _load_indexes(self) -> SegmentIndex:
        """Use the index files up to their first contradiction with the log, then scan the rest of
        the log.

        Raises Corrupt if they have to be rebuilt and the log is damaged.
        """
        if self.is_read_without_indexes:
            return self._index_of_log()
        try:
            index = self._prove(self._read_indexes())
        except (CorruptIndex, FileNotFoundError):
            index = self._index_of_log()
            self._indexes_written = False  # The files are of no use.
        if self.sealed:
            index.seal()
        return index

    def _index_of_log(self) -> SegmentIndex:
        return self._continue_index(SegmentIndex(self.base_offset, self.index_interval_bytes))

    def _read_indexes(self) -> SegmentIndex:
        """Return the index from its files; raises CorruptIndex, FileNotFoundError."""
        index = SegmentIndex(self.base_offset, self.index_interval_bytes)
        files = self._read(INDEX_SUFFIX), self._read(TIME_INDEX_SUFFIX)
        index.resume_from(files, self.index_checksum, self.end_offset)
        return index

    def _prove(self, index: SegmentIndex) -> SegmentIndex:
        """Compare decoded indexes with the batches at their end; raises CorruptIndex.

        If those of a sealed segment are damaged, only its indexes are left to use.
        """
        try:
            needs_entry = bool(self.size_bytes and (self.sealed or len(index.offsets)))
            check_last_time(index, self.scan, needs_entry=needs_entry)
            return self._continue_index(index)
        except Corrupt:
            if not self.sealed:
                raise CorruptIndex("no batch is where the index has its last one") from None
            index.offsets.check(self.end_offset, self.size_bytes)
            index.times.check(self.end_offset)
            return index

    def use_index(self, index: SegmentIndex) -> None:
        """Use an index that was built from the sound batches of this segment.

        Its files are to be written (``index_operation``).
        """
        self._index = index
        self._indexes_written = False
        self._awaits_indexes = True

    def reset_transactions(self) -> None:
        """Forget the aborted transactions: the producers' replay finds them again."""
        self.transactions = TransactionIndex()

    def load_transactions(self) -> bool:
        """Read the `.txnindex` file; False when it is damaged and must be found again (D7)."""
        try:
            self.transactions = TransactionIndex.decode(
                self._read(TRANSACTION_INDEX_SUFFIX), self.base_offset
            )
        except CorruptIndex:
            return False
        self.transactions.truncate_to(self.end_offset)
        return True

    def _read(self, suffix: str) -> bytes:
        return self.directory.read_file(self.stem + suffix)

    def _continue_index(self, index: SegmentIndex) -> SegmentIndex:
        """Extend ``index`` from its last entry on, which is compared with its batch."""
        offsets = index.offsets
        offsets.check(self.end_offset, self.size_bytes)
        start = offsets.last_position
        data_end_offset = self.base_offset
        for position, header, _ in self.scan(start):
            if position == start and len(offsets) and header.last_offset != offsets.last_offset:
                raise CorruptIndex("the last index entry does not point at its batch")
            if not data_end_offset <= header.base_offset <= header.last_offset < self.end_offset:
                raise Corrupt(
                    self.log_path, position, f"no batch of offset {data_end_offset} starts here"
                )
            index.append(header.last_offset, header.newest_timestamp, position)
            data_end_offset = header.next_offset
            if not position:
                self.first_timestamp_ms = header.newest_timestamp
        if self.sealed:
            self._data_end_offset = data_end_offset
        return index

    def scan(self, start: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yield position, header and bytes of every written batch from byte ``start`` on; waits.

        Raises Corrupt where no whole batch follows; checksums are not verified.
        """
        return scan_batches(self.log_path, self._pread, start, self.written_bytes)

    def scan_checked(self, start: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Scan like :meth:`scan` with checksums; raises Corrupt for a wrong one."""
        return checked_batches(self.log_path, self.scan(start))

    def _pread(self, size: int, position: int) -> bytes:
        return self.file.pread(size, position)
