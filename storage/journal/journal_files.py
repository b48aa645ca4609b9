"""The journal's files: a ring of fixed-size files that are recycled, never extended.

Rules of this file:

1. After recovery only one thread at a time calls it, the one that commits. Only ``release`` is
   different: with it the segment thread moves files from one end of one deque to the end of
   another, which no thread else does at that end.
2. A file is reused only when every journal group in it is older than the newest checkpoint
   (``release``).
3. One spare file is always ready before the current one is full, so that a full disk is met here,
   before an append is accepted, and never in the middle of a commit (D10).
4. The files, and how far they are written, are also known beside them (``commit_mark.py``): an end
   of the journal that was removed is no torn tail.
5. The first write into reserved blocks makes the file system change its own tables, and a sync wait
   for that as well. So a small journal group writes zeros after itself, and the next ones find the
   blocks written.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.storage.errors import Corrupt
from barnabas.storage.files.commit_mark import CommitMark
from barnabas.storage.files.file_system import Buffer, File, FileSystem
from barnabas.storage.journal.journal_format import (
    BLOCK_BYTES,
    GROUP_HEADER_BYTES,
    KIND_BATCHES,
    MAGIC,
    Entry,
    GroupHeader,
    decode_entries,
    decode_header,
    encode_header,
    padded,
    table_bytes,
)

FILE_NAME_PREFIX: Final = "barnabas-journal-"
_SCAN_BYTES: Final = 1 << 20
_BEHIND_BYTES: Final = 256 * 1024
_ZEROS: Final = memoryview(bytes(BLOCK_BYTES + _BEHIND_BYTES))
_SMALL_GROUP_BYTES: Final = 64 * 1024
"""A larger group is not followed by zeros: they would cost more than they save."""


@dataclass(slots=True)
class JournalFile:
    """One file of the ring. ``last_sequence`` is -1 while it holds nothing of this run."""

    path: str
    file: File
    first_sequence: int = -1
    last_sequence: int = -1
    touched_bytes: int = 0
    """The end of the bytes that this run has written, or filled with zeros, at least once."""

    @property
    def number(self) -> int:
        """Number at the end of the file's name."""
        return int(self.path.rpartition(FILE_NAME_PREFIX)[2])


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """A verified group header and where its group starts."""

    journal_file: JournalFile
    position: int
    header: GroupHeader


@dataclass(frozen=True, slots=True)
class JournalLoss:
    """An end of the journal that cannot be read, or was removed, though it was durable.

    It starts with the journal group ``first_sequence``. ``last_sequence`` is the last one known; it
    is less than the first if no needed group is lost. ``is_known``: the end of the journal is known
    from the journal mark. ``ends`` are the offsets that the lost groups reached, by partition id,
    from those groups that can still be read.
    """

    reason: str = field(compare=False)
    first_sequence: int
    last_sequence: int
    is_known: bool
    ends: dict[int, int]


class PlacedGroup:
    """A journal group on its way to the disk: ``end`` and ``touched`` are positions in its file."""

    __slots__ = ("buffers", "crc", "durable", "end", "journal_file", "touched")

    def __init__(
        self, journal_file: JournalFile, buffers: list[Buffer], end: int, touched: int, crc: int
    ) -> None:
        """``touched``: where the zeros behind it end."""
        self.journal_file = journal_file
        self.buffers = buffers
        self.end = end
        self.touched = touched
        self.crc = crc
        self.durable = True


class JournalFiles:
    """Appends groups to the current file and hands out recycled ones; sizes in bytes."""

    def __init__(self, file_system: FileSystem, directory: str, file_bytes: int) -> None:
        """Open the journal files that are in ``directory``; nothing is written before ``start``."""
        self._file_system = file_system
        self._directory = directory
        self._file_bytes = file_bytes
        self._current: JournalFile | None = None
        self._position = 0
        self._previous_crc = 0
        self.next_sequence = 1
        self.appended_bytes = 0
        """Journal written in this run, wherever it went."""
        self._files = [
            self._open(name)
            for name in sorted(file_system.list_directory(directory))
            if name.startswith(FILE_NAME_PREFIX)
        ]
        self._mark = CommitMark(file_system, directory)
        self._used: deque[JournalFile] = deque()
        self._free: deque[JournalFile] = deque(self._files)
        self._spare: JournalFile | None = None
        self._is_given_up = False

    def _open(self, name: str) -> JournalFile:
        path = self._file_system.join(self._directory, name)
        return JournalFile(path, self._file_system.open(path))

    # Appending

    def start(self, sequence: int) -> None:
        """Start a run of commit groups with ``sequence`` at the start of a new or recycled file."""
        self._mark.begin(self._sizes())
        self.next_sequence = sequence
        self._previous_crc = 0
        self._current = None
        self._position = 0

    def prepare_spare(self) -> None:
        """Create a free file unless one exists. Raises OSError (ENOSPC) on a full disk."""
        if self._spare is not None:
            return
        if not self._free:
            self._free.append(self._create())
        file = self._free[0].file
        if file.size() < self._file_bytes:
            # A write into reserved blocks meets no full disk, now or when the file comes round.
            file.reserve(self._file_bytes)
            file.fdatasync()
            self._mark.name_files(self._sizes())
        self._spare = self._free.popleft()

    @property
    def capacity_bytes(self) -> int:
        """Size of the largest commit group (header, table, bodies) that fits into a file."""
        return self._file_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of the journal that a recovery would read now."""
        return len(self._used) * self._file_bytes + self._position

    @property
    def recyclable(self) -> bool:
        """Whether a checkpoint could free a file; the current one stays in use."""
        return bool(self._used)

    def has_room_for(self, group_bytes: int) -> bool:
        """Whether a journal group (header, table, bodies) fits into the current file."""
        return (
            self._current is not None and self._position + padded(group_bytes) <= self._file_bytes
        )

    def append(self, entry_count: int, table: bytes, bodies: Sequence[Buffer], size: int) -> int:
        """Make a commit group durable and return its sequence. ``size``: bytes of the bodies."""
        placed = self._place(entry_count, table, bodies, size)
        placed.journal_file.file.pwritev_durable(placed.buffers, self._position)
        return self._finish_group(placed)

    def begin(
        self, entry_count: int, table: bytes, bodies: Sequence[Buffer], size: int
    ) -> PlacedGroup:
        """Start to write one journal group to the disk; it is durable after ``finish``.

        A long one is durable already: an early start does not pay where the write takes longer.
        """
        placed = self._place(entry_count, table, bodies, size)
        file = placed.journal_file.file
        if placed.touched - self._position > BLOCK_BYTES:
            file.pwritev_durable(placed.buffers, self._position)
        else:
            file.begin_page(placed.buffers, self._position)
            placed.durable = False
        return placed

    def finish(self, placed: PlacedGroup) -> int:
        """Wait until a journal group started by ``begin`` is durable; returns its sequence.

        Any error is final, also that of a full disk: the written bytes may be lost.
        """
        if not placed.durable:
            placed.journal_file.file.fdatasync()
        return self._finish_group(placed)

    def _place(
        self, entry_count: int, table: bytes, bodies: Sequence[Buffer], size: int
    ) -> PlacedGroup:
        """Return the place of the next journal group, in a file with room for it, and its bytes."""
        group_bytes = GROUP_HEADER_BYTES + len(table) + size
        current = self._current
        if current is None or not self.has_room_for(group_bytes):
            current = self._advance()
        sequence = self.next_sequence
        header, crc = encode_header(sequence, entry_count, table, size, self._previous_crc)
        end = self._position + padded(group_bytes)
        touched = self._end_of_zeros(current, group_bytes, end)
        zeros = _ZEROS[: touched - self._position - group_bytes]
        return PlacedGroup(current, [header, table, *bodies, zeros], end, touched, crc)

    def _finish_group(self, placed: PlacedGroup) -> int:
        """Register that a journal group is durable; returns its sequence."""
        current, sequence = placed.journal_file, self.next_sequence
        current.touched_bytes = max(current.touched_bytes, placed.touched)
        if current.first_sequence < 0:
            current.first_sequence = sequence
        current.last_sequence = sequence
        self.appended_bytes += placed.end - self._position
        self._position = placed.end
        self._previous_crc = placed.crc
        self.next_sequence = sequence + 1
        self._mark.advance(sequence)
        return sequence

    def _end_of_zeros(self, current: JournalFile, group_bytes: int, end: int) -> int:
        """Return the end of the zeros after a journal group: its block's ``end``, or more for the
        next.
        """
        if end <= current.touched_bytes or group_bytes > _SMALL_GROUP_BYTES:
            return end
        return min(end + _BEHIND_BYTES, self._file_bytes)

    def _advance(self) -> JournalFile:
        self.prepare_spare()
        assert self._spare is not None
        if self._current is not None:
            self._used.append(self._current)
        self._current, self._spare = self._spare, None
        self._current.first_sequence = self._current.last_sequence = -1
        self._position = 0
        return self._current

    def _create(self) -> JournalFile:
        """Create an empty file with the next name. Names have gaps where a file was removed."""
        path = self._path(self._files[-1].number + 1 if self._files else 0)
        created = JournalFile(path, self._file_system.open(path, create=True))
        self._file_system.sync_directory(self._directory)
        self._files.append(created)
        return created

    def _path(self, number: int) -> str:
        return self._file_system.join(self._directory, f"{FILE_NAME_PREFIX}{number:04d}")

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes().values())

    def _sizes(self) -> dict[int, int]:
        """Bytes of each file, by its number."""
        return {each.number: each.file.size() for each in self._files}

    def start_marking_back(self) -> None:
        """Start to write the newest journal mark to the disk; guarantees nothing."""
        self._mark.start_writeback()

    def sync_mark(self) -> None:
        """Make the journal's position durable."""
        self._mark.sync()

    def release(self, before_sequence: int) -> None:
        """Recycle every file whose groups are all older than ``before_sequence``."""
        while self._used and self._used[0].last_sequence < before_sequence:
            self._free.append(self._used.popleft())

    def close(self) -> None:
        """Close all files without writing: all appends are durable already."""
        for journal_file in self._files:
            journal_file.file.close()
        self._mark.close()

    # Recovery

    def verify(self, from_sequence: int, *, marked: bool) -> Iterator[int]:
        """Raise Corrupt if an acknowledged commit group from ``from_sequence`` on is missing.

        ``marked``: a broker that keeps a journal mark was here. Reads all of the journal and
        changes nothing, so that a journal with lost records leaves all files as they are. Yields
        the size in bytes of each journal group.
        """
        mark = self._mark
        if mark.problem is not None:
            if marked:
                raise Corrupt(mark.path, 0, mark.problem)
        else:
            mark.refuse_other_files(self._sizes(), {each: self._path(each) for each in mark.files})
        for header, _ in self.replay(from_sequence):
            yield header.padded_bytes

    def give_up_end(self, from_sequence: int, reason: str) -> JournalLoss:
        """End the journal at its first unreadable journal group, even if later ones were
        acknowledged.

        ``reason`` is the refusal of :meth:`verify`. A new run has sequences that no journal group
        of the lost end had, so that its remains never pass for part of the journal.
        """
        self._is_given_up = True
        first = from_sequence
        for header, _ in self.replay(from_sequence):
            first = header.sequence + 1
        ends: dict[int, int] = {}
        for found in self._groups_from(first):
            for entry in self._entries(found) or ():
                if entry.kind == KIND_BATCHES:
                    known = ends.get(entry.partition_id, 0)
                    ends[entry.partition_id] = max(known, entry.next_offset)
        last = max(self._mark.sequence, self._last_readable(first), first - 1)
        return JournalLoss(reason, first, last, self._mark.problem is None, ends)

    def _last_readable(self, from_sequence: int) -> int:
        """Return the highest readable sequence from ``from_sequence`` on, or 0."""
        sequences = (found.header.sequence for found in self._groups_from(from_sequence))
        return max(sequences, default=0)

    def replay(self, from_sequence: int) -> Iterator[tuple[GroupHeader, list[Entry]]]:
        """Yield the journal groups from ``from_sequence`` on, in order, until the first unreadable
        one.

        Raises Corrupt if a readable journal group with a higher sequence follows the end, or if a
        later one is marked as durable. Then the unreadable one is damage in the middle, or the end
        was removed; it is not the torn tail of a crash (D7). Afterwards ``next_sequence`` is safe
        to start a new run with.
        """
        expected = from_sequence
        previous_crc: int | None = None
        found = self._find(expected)
        end: tuple[str, int] | None = None
        while found is not None:
            entries = self._entries(found)
            chained = previous_crc is None or found.header.previous_crc == previous_crc
            end = (found.journal_file.path, found.position)
            if entries is None or not chained:
                break
            yield found.header, entries
            expected += 1
            previous_crc = found.header.crc
            after = found.position + found.header.padded_bytes
            end = (found.journal_file.path, after)
            found = self._header_at(found.journal_file, after, expected) or self._find(expected)
        # One is skipped permanently: a torn journal group may have ``expected`` in its header.
        self.next_sequence = expected + 1
        if self._is_given_up:
            known = max(expected, self._mark.sequence, self._last_readable(expected))
            self.next_sequence = known + 1
            return
        self._refuse_later_groups(expected, end)
        self._refuse_marked_groups(expected, end)

    def reaches(self, sequence: int) -> bool:
        """Return whether the commit group ``sequence`` or a later one was ever durable.

        If so, the mark names it, or a file begins with that sequence or a higher one.
        """
        if self._mark.sequence >= sequence:
            return True
        firsts = (self._header_at(journal_file, 0, None) for journal_file in self._files)
        return any(first is not None and first.header.sequence >= sequence for first in firsts)

    def _find(self, sequence: int) -> GroupPosition | None:
        """Return the journal group with ``sequence``, if any file has a good header of it."""
        firsts = [self._header_at(journal_file, 0, None) for journal_file in self._files]
        candidates = [first for first in firsts if first and first.header.sequence <= sequence]
        if not candidates:
            return None
        # Sequences rise from file to file: only the youngest that is old enough can hold it.
        found: GroupPosition | None = max(candidates, key=lambda found: found.header.sequence)
        while found is not None and found.header.sequence < sequence:
            after = found.position + found.header.padded_bytes
            found = self._header_at(found.journal_file, after, found.header.sequence + 1)
        return found

    def _header_at(
        self, journal_file: JournalFile, position: int, sequence: int | None
    ) -> GroupPosition | None:
        prefix = memoryview(journal_file.file.pread(BLOCK_BYTES, position))
        size = table_bytes(prefix)
        if size is None:
            return None
        view = (
            prefix if size <= len(prefix) else memoryview(journal_file.file.pread(size, position))
        )
        header = decode_header(view)
        if header is None or (sequence is not None and header.sequence != sequence):
            return None
        return GroupPosition(journal_file, position, header)

    def _entries(self, found: GroupPosition) -> list[Entry] | None:
        view = memoryview(found.journal_file.file.pread(found.header.group_bytes, found.position))
        return decode_entries(view, found.header)

    def _refuse_later_groups(self, expected: int, end: tuple[str, int] | None) -> None:
        for found in self._groups_from(expected + 1):
            path, damaged = end or (found.journal_file.path, 0)
            raise Corrupt(
                path,
                damaged,
                f"group {expected} is unreadable, yet group {found.header.sequence} "
                f"at byte {found.position} of {found.journal_file.path} is whole",
            )

    def _groups_from(self, sequence: int) -> Iterator[GroupPosition]:
        """Yield every journal group with a good header and at least this sequence, in any file."""
        for journal_file in self._files:
            for position in self._positions_of_magic(journal_file.file):
                found = self._header_at(journal_file, position, None)
                if found is not None and found.header.sequence >= sequence:
                    yield found

    def _refuse_marked_groups(self, expected: int, end: tuple[str, int] | None) -> None:
        marked = self._mark.sequence
        if marked >= expected:
            every = self._file_system.join(self._directory, f"{FILE_NAME_PREFIX}*")
            path, position = end or (every, 0)
            reason = f"group {expected} cannot be read, yet group {marked} was durable"
            raise Corrupt(path, position, reason)

    @staticmethod
    def _positions_of_magic(file: File) -> Iterator[int]:
        for start in range(0, file.size(), _SCAN_BYTES):
            piece = file.pread(_SCAN_BYTES, start)
            for position in range(0, len(piece), BLOCK_BYTES):
                if piece.startswith(MAGIC, position):
                    yield start + position
