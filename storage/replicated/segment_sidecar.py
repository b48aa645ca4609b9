"""A packed segment: the batches of a part of a log, and the sidecar with its indexes.

Rules of this file:

* The object has the bytes of a Kafka segment and nothing else. All batches follow each other
  without a gap, and each is checked before it is added (F12).
* The sidecar has blocks, offset index, time index, aborted transactions and leader epochs. All but
  the blocks are in the form of Kafka's files. Each part has a checksum.
* A block is what one read of the store gets. The blocks come first in the sidecar, so a reader
  needs only its beginning.
* A sidecar saves reads and nothing else: what it has is in the batches, too. Without one the blocks
  are found by reading all batches (``blocks_by_reading``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import BatchHeader, CorruptBatch, iterate_batches, verify_batch
from barnabas.storage.log.checkpoint import encode_leader_epochs
from barnabas.storage.log.index import AbortedTransaction, SegmentIndex, TransactionIndex
from barnabas.storage.objects.blob_store import SegmentKey

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import Buffer
    from barnabas.storage.replicated.log_index import ExtentSize

BLOCK_BYTES: Final = 1024 * 1024
"""Maximum size of a block, except that a larger batch has one of its own."""
BEGINNING_BYTES: Final = 64 * 1024
"""Bytes of a sidecar that mostly have all blocks."""
READ_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a segment that one request reads to find its blocks."""
_INDEX_STEP_BYTES: Final = 4096
_MAGIC: Final = b"BARNIDX1"
_PARTS: Final = 5
_HEADER: Final = struct.Struct(f">8sqqqI{_PARTS}I{_PARTS}I")
_CHECKSUM: Final = struct.Struct(">I")
_BLOCK: Final = struct.Struct(">qq")
_BLOCKS_FROM: Final = _HEADER.size + _CHECKSUM.size


class CorruptSidecar(Exception):
    """The bytes are no sidecar of the segment."""


class SidecarHead(NamedTuple):
    """The fixed part of a sidecar."""

    base_offset: int
    next_offset: int
    size_bytes: int
    """Size of the segment's batches."""
    checksum: int
    """CRC32C of the segment's batches."""
    lengths: tuple[int, ...]
    checksums: tuple[int, ...]


class Block(NamedTuple):
    """Some batches of a packed segment."""

    base_offset: int
    next_offset: int
    position: int
    length: int


class Facts(NamedTuple):
    """Facts about a part of a log that its leader knows, besides the batches."""

    aborted: Iterable[AbortedTransaction]
    """The aborted transactions whose markers lie in the segment."""
    leader_epochs: Iterable[tuple[int, int]]


class PackedSegment:
    """The batches of one part of a log, in order."""

    def __init__(self, base_offset: int) -> None:
        """Start empty."""
        self.base_offset = self.next_offset = base_offset
        self.size_bytes = 0
        self.leader_epoch = -1
        """Epoch of the last batch."""
        self.body: list[Buffer] = []
        self._index = SegmentIndex(base_offset, _INDEX_STEP_BYTES)
        self._blocks: list[tuple[int, int]] = []
        """Base offset and position of each block."""
        self._checksum = 0

    def add(self, batch: Buffer, header: BatchHeader, leader_epoch: int) -> None:
        """Add the next batch, which has an epoch; raises CorruptBatch."""
        verify_batch(batch)
        if header.base_offset != self.next_offset:
            raise CorruptBatch(f"no batch of offset {self.next_offset} starts here")
        if header.partition_leader_epoch not in (leader_epoch, -1):
            raise CorruptBatch(f"epoch {header.partition_leader_epoch}, expected {leader_epoch}")
        position, size = self.size_bytes, len(batch)
        _add_block(self._blocks, header.base_offset, position, size)
        self._index.append(header.last_offset, header.newest_timestamp, position)
        self._checksum = crc32c(batch, self._checksum)
        self.body.append(batch)
        self.size_bytes = position + size
        self.next_offset = header.next_offset
        self.leader_epoch = max(self.leader_epoch, leader_epoch)

    def sidecar(self, facts: Facts) -> bytes:
        """Return the sidecar of all added batches, of which at least one exists."""
        self._index.seal()
        transactions = TransactionIndex()
        for each in facts.aborted:
            transactions.append(each)
        parts = (
            b"".join(_BLOCK.pack(*each) for each in self._blocks),
            self._index.offsets.encode(),
            self._index.times.encode(),
            transactions.encode(),
            encode_leader_epochs(facts.leader_epochs),
        )
        lengths = map(len, parts)
        range_and_size = (self.base_offset, self.next_offset, self.size_bytes)
        header = _HEADER.pack(
            _MAGIC, *range_and_size, self._checksum, *lengths, *map(crc32c, parts)
        )
        return b"".join((header, _CHECKSUM.pack(crc32c(header)), *parts))


def read_head(data: bytes) -> SidecarHead:
    """Return the fixed part of a sidecar from its beginning; raises CorruptSidecar."""
    if len(data) < _BLOCKS_FROM:
        raise CorruptSidecar(f"{len(data)} bytes are no sidecar")
    (checksum,) = _CHECKSUM.unpack_from(data, _HEADER.size)
    magic, base_offset, next_offset, size_bytes, of_log, *columns = _HEADER.unpack_from(data)
    if magic != _MAGIC or checksum != crc32c(data[: _HEADER.size]):
        raise CorruptSidecar("the checksum of its header does not match")
    lengths, checksums = tuple(columns[:_PARTS]), tuple(columns[_PARTS:])
    return SidecarHead(base_offset, next_offset, size_bytes, of_log, lengths, checksums)


def blocks_end(head: SidecarHead) -> int:
    """Return the number of bytes of a sidecar up to the end of its blocks."""
    return _BLOCKS_FROM + head.lengths[0]


def read_blocks(head: SidecarHead, data: bytes) -> list[Block]:
    """Return the blocks of a segment from its sidecar's beginning; raises CorruptSidecar."""
    encoded = data[_BLOCKS_FROM : blocks_end(head)]
    if crc32c(encoded) != head.checksums[0] or not encoded:
        raise CorruptSidecar("the checksum of its blocks does not match")
    return _blocks_between([*_BLOCK.iter_unpack(encoded)], head.next_offset, head.size_bytes)


def _add_block(
    starts: list[tuple[int, int]], base_offset: int, position: int, size_bytes: int
) -> None:
    """Add the start of a block if the next batch does not belong to the last one."""
    if not starts or position + size_bytes - starts[-1][1] > BLOCK_BYTES:
        starts.append((base_offset, position))


def _blocks_between(
    starts: list[tuple[int, int]], next_offset: int, size_bytes: int
) -> list[Block]:
    """Return the blocks with these base offsets and positions."""
    return [
        Block(base_offset, next_offset, position, end - position)
        for (base_offset, position), (next_offset, end) in pairwise(
            [*starts, (next_offset, size_bytes)]
        )
    ]


def blocks_of(get_range: Callable[[str, int, int], bytes], segment: ExtentSize) -> list[Block]:
    """Return the blocks of a packed segment; ``get_range`` as that of ``BlobStore``.

    Raises CorruptSidecar, and the errors of ``get_range``.
    """
    key = SegmentKey.parse(segment.key or "")
    if key is None:
        raise CorruptSidecar(f"{segment.key} is no key of a packed segment")
    data = get_range(key.sidecar, 0, BEGINNING_BYTES)
    head = read_head(data)
    if blocks_end(head) > len(data):
        data = get_range(key.sidecar, 0, blocks_end(head))
    if (head.base_offset, head.next_offset, head.size_bytes) != segment[:3]:
        raise CorruptSidecar(f"the header of {key.sidecar} names another segment")
    return read_blocks(head, data)


def blocks_by_reading(
    get_range: Callable[[str, int, int], bytes], segment: ExtentSize
) -> list[Block]:
    """Return the blocks of a packed segment without its sidecar, by reading its batches.

    Raises CorruptBatch, and the errors of ``get_range``.
    """
    assert segment.key is not None, "the extent is a packed segment"
    starts: list[tuple[int, int]] = []
    expected, position, wanted = segment.base_offset, 0, READ_BYTES
    while position < segment.length:
        data = get_range(segment.key, position, min(wanted, segment.length - position))
        begin = position
        for at, header in iterate_batches(data):
            if header.base_offset != expected:
                raise CorruptBatch(f"no batch of offset {expected} starts at byte {begin + at}")
            _add_block(starts, header.base_offset, begin + at, header.size)
            expected, position = header.next_offset, begin + at + header.size
        if position > begin:
            wanted = READ_BYTES
        elif len(data) < wanted:
            raise CorruptBatch(f"the batch at byte {begin} is cut off")
        else:
            wanted *= 2  # One batch is larger.
    if expected != segment.next_offset:
        raise CorruptBatch(f"the segment ends at offset {expected}, not {segment.next_offset}")
    return _blocks_between(starts, segment.next_offset, segment.length)


def read_parts(data: bytes) -> Sequence[bytes]:
    """Return the parts of a whole sidecar, in order; raises CorruptSidecar."""
    head = read_head(data)
    ends = [*accumulate(head.lengths, initial=_BLOCKS_FROM)]
    parts = [data[begin:end] for begin, end in pairwise(ends)]
    if len(data) != ends[-1] or tuple(map(crc32c, parts)) != head.checksums:
        raise CorruptSidecar("the checksum of a part does not match")
    return parts
