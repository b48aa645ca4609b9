"""The journal mark: the names of the journal's files and its newest durable group, kept beside it.

Without it a lost end of the journal looks like the regular end of the journal: a torn journal group
and a group that was removed later are both unreadable bytes.

Rules of this file:

1. The files and their sizes are named, and that is durable, before anything is written to a new or
   longer one. The broker never removes a journal file, so after a crash each must still be there.
2. After each journal group is durable, and before any response for it is sent, its sequence is
   marked. Marks are not synced one by one: after a kill the page cache has the newest mark; after a
   power loss the disk has an older one, of a second ago. An older mark promises less, never
   something wrong.
3. Everything is written to two slots in turn, each with a checksum: if a write is torn, the
   previous one remains readable.

```
files  slots at 0 and 16384: magic 8s | version u16 | reserved u16 | count u32 | generation u64
       | CRC32C of header (this field 0) and table u32; table, count times: number u32 | bytes u64
marks  slots at 32768 and 36864: sequence u64 | CRC32C of it u32
```
"""

import errno
import struct
from collections.abc import Mapping
from typing import Final

from crc32c import crc32c

from barnabas.storage.errors import Corrupt
from barnabas.storage.files.file_system import File, FileSystem

FILE_NAME: Final = "barnabas-commit-mark"
MAGIC: Final = b"BARNMARK"
FORMAT_VERSION: Final = 1

_HEADER: Final = struct.Struct("<8sHHIQI")
_NAMED: Final = struct.Struct("<IQ")
_FILES_SLOT_BYTES: Final = 16 * 1024
_FILES_MAX: Final = (_FILES_SLOT_BYTES - _HEADER.size) // _NAMED.size
"""Maximum number of journal files that are named; the mark also covers the others."""

_SEQUENCE: Final = struct.Struct("<Q")
_MARK: Final = struct.Struct("<QI")
MARKS_AT: Final = 2 * _FILES_SLOT_BYTES
"""Offset of the marks in the file."""
_MARK_SLOT_BYTES: Final = 4096
MARK_BYTES: Final = 2 * _MARK_SLOT_BYTES
"""Bytes of the two slots of a mark."""
FILE_BYTES: Final = MARKS_AT + MARK_BYTES
_FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT)


class CommitMark:
    """The mark of one journal; ``sequence`` is the newest durable journal group, or 0."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        """Read the mark of the previous run; nothing is written before :meth:`begin`."""
        self._file_system = file_system
        self._directory = directory
        self.path = file_system.join(directory, FILE_NAME)
        self._file: File | None = None
        self._generation = 0
        self.sequence = 0
        self.files: dict[int, int] = {}
        """Bytes that each journal file must have, by its number."""
        self.problem: str | None = "it is missing"
        """Reason why the mark is unusable, or None if it is usable."""
        if file_system.exists(self.path):
            self._file = file_system.open(self.path)
            self.problem = self._read(self._file)

    def _read(self, file: File) -> str | None:
        """Read the file's contents; returns the reason why they are unusable, or None."""
        data = file.pread(FILE_BYTES, 0)
        if len(data) < FILE_BYTES:
            return f"it has {len(data)} bytes, not {FILE_BYTES}"
        whole = [each for each in read_files(data) if each is not None]
        if not whole:
            return "neither list of files in it can be read"
        self._generation, self.files = max(whole, key=lambda each: each[0])
        mark = read_mark(data, MARKS_AT)
        if mark is None:
            return "neither mark in it can be read"
        self.sequence = mark
        return None

    def begin(self, files: Mapping[int, int]) -> None:
        """Open or create the file, and write ``files`` (bytes by number) to it; durable on return.

        The previous run's mark stays, as long as a start may need it.
        """
        if self._file is None or self.problem is not None:
            self._make()
        self.name_files(files)

    def _make(self) -> None:
        if self._file is None:
            self._file = self._file_system.open(self.path, create=True)
        self._file.truncate(0)
        self._file.zero_fill(FILE_BYTES)
        self._file.fdatasync()
        self._file_system.sync_directory(self._directory)
        self._generation = self.sequence = 0
        self.problem = None

    def name_files(self, files: Mapping[int, int]) -> None:
        """Record the journal files that must exist from now on (bytes by number); durable on
        return.
        """
        assert self._file is not None, "the mark is not begun"
        generation = self._generation + 1
        position = generation % 2 * _FILES_SLOT_BYTES
        self._file.pwritev([_encode_files(generation, files)], position)
        self._file.fdatasync()
        self._generation = generation
        self.files = dict(files)

    def advance(self, sequence: int) -> None:
        """Record that the commit group ``sequence`` is durable. Not synced."""
        assert self._file is not None, "the mark is not begun"
        self.sequence = sequence
        write_mark(self._file, MARKS_AT, sequence)

    def start_writeback(self) -> None:
        """Start to write the newest mark to the disk; guarantees nothing."""
        if self._file is not None:
            self._file.start_writeback(MARKS_AT, MARK_BYTES)

    def sync(self) -> None:
        """Make the newest mark durable."""
        if self._file is not None:
            self._file.fdatasync()

    def refuse_other_files(self, sizes: Mapping[int, int], paths: Mapping[int, str]) -> None:
        """Raise Corrupt unless each named file exists and has its size.

        ``sizes`` are the bytes of the existing files, ``paths`` the paths of all files, both by
        number.
        """
        for number, wanted in sorted(self.files.items()):
            size = sizes.get(number)
            if size is None:
                raise Corrupt(paths[number], 0, "the file is missing")
            if size < wanted:
                raise Corrupt(paths[number], size, f"the file ends here, it had {wanted} bytes")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _encode_files(generation: int, files: Mapping[int, int]) -> bytes:
    named = sorted(files.items())[-_FILES_MAX:]
    table = b"".join(_NAMED.pack(number, size) for number, size in named)
    fields = (MAGIC, FORMAT_VERSION, 0, len(named), generation)
    crc = crc32c(table, crc32c(_HEADER.pack(*fields, 0)))
    return _HEADER.pack(*fields, crc) + table


def read_files(data: bytes) -> list[tuple[int, dict[int, int]] | None]:
    """Return generation and bytes of each file from both slots, with None for an unreadable
    slot.
    """
    return [_decode_files(data, slot * _FILES_SLOT_BYTES) for slot in range(2)]


def _decode_files(data: bytes, position: int) -> tuple[int, dict[int, int]] | None:
    """Return generation and files of the slot at ``position``, or None if it is unreadable."""
    magic, version, reserved, count, generation, crc = _HEADER.unpack_from(data, position)
    if magic != MAGIC or version != FORMAT_VERSION or count > _FILES_MAX:
        return None
    start = position + _HEADER.size
    table = data[start : start + count * _NAMED.size]
    header = _HEADER.pack(magic, version, reserved, count, generation, 0)
    if crc32c(table, crc32c(header)) != crc:
        return None
    return generation, dict(_NAMED.iter_unpack(table))


def write_mark(file: File, position: int, number: int) -> None:
    """Write an increasing number to one of the two slots at ``position``; not synced."""
    mark = _MARK.pack(number, crc32c(_SEQUENCE.pack(number)))
    try:
        file.pwritev([mark], position + (number & 1) * _MARK_SLOT_BYTES)
    except OSError as error:
        # Only where overwriting needs room (copy on write). The older mark promises less.
        if error.errno not in _FULL_DISK:
            raise


def read_mark(data: bytes, position: int) -> int | None:
    """Return the newer number of the two slots at ``position``: 0 if both are empty, None if
    unreadable.
    """
    marks = read_marks(data, position)
    return None if marks == [None, None] else max(mark or 0 for mark in marks)


def read_marks(data: bytes, position: int) -> list[int | None]:
    """Return the numbers in both slots at ``position``: 0 for an empty slot, None for an unreadable
    one.
    """
    return [_decode_mark(data, position + slot * _MARK_SLOT_BYTES) for slot in range(2)]


def _decode_mark(data: bytes, position: int) -> int | None:
    """Return the sequence in the slot at ``position``: 0 in an empty slot, None if unreadable."""
    sequence, crc = _MARK.unpack_from(data, position)
    if not (sequence or crc):
        return 0
    good: bool = crc32c(_SEQUENCE.pack(sequence)) == crc
    return int(sequence) if good else None
