"""Facts about the records before a log's snapshot, which spare its next leader their bytes.

Rules of this file:

* A part is a segment of its leader, up to the snapshot. Its facts are the size, thin indexes, and
  the aborted transactions whose marker lies in it.
* Parts are of use only if they cover the log from its start to the snapshot without a gap: the
  state of producers is the snapshot's, and all records after that are read.
* A compacted log has no parts: its records in the store change (``StoredCompaction``), and the
  facts about them would not change in the same moment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.storage.errors import StoreDamaged
from barnabas.storage.log.index import (
    CorruptIndex,
    OffsetIndex,
    SegmentIndex,
    TimeIndex,
    TransactionIndex,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment import Segment
from barnabas.storage.replicated.log_index import LogHead, LogIndex, LogPart

INDEX_STEP_BYTES: Final = 1024 * 1024
"""Bytes of a part for each entry of its indexes."""
_HEADER: Final = struct.Struct(">qIII")
_RANGE: Final = struct.Struct(">qq")
_CHECKSUM: Final = struct.Struct(">I")
_PARTS_AT_ONCE: Final = 256


class PartFacts(NamedTuple):
    """The decoded facts of a part."""

    size_bytes: int
    indexes: SegmentIndex
    transactions: TransactionIndex


def is_local(log: PartitionLog) -> bool:
    """Whether all records of a log are in this broker's data directory."""
    return isinstance(log.segments[0], Segment)


def has_parts(log: PartitionLog) -> bool:
    """Whether the records of a log may be known by parts."""
    if log.config.is_compacted or log.damaged:
        return False
    return log.cleaning.compacted_offset <= log.log_start_offset


def unstored_bytes(log: PartitionLog) -> int:
    """Return the size of the segments that this leader has not loaded as parts; on the loop."""
    return sum(segment.size_bytes for segment in log.segments if not segment.is_stored)


class NewParts(NamedTuple):
    """Segments of a log at one moment that become parts."""

    sealed: Sequence[ReadableSegment]
    active: Sequence[LogPart]
    """The part of the active segment, which may take more batches, unless it is empty."""

    def encode(self) -> list[LogPart]:
        """Return the parts; on any thread, as the indexes of a sealed segment may be on the disk.

        Raises Corrupt, OSError.
        """
        return [*[part_of(segment)[0] for segment in self.sealed], *self.active]

    def note_stored(self) -> None:
        """Note that the store has the parts, which later snapshots leave out; on the loop."""
        for segment in self.sealed:
            segment.is_stored = not isinstance(segment, Segment)


def new_parts(log: PartitionLog, known_offset: int) -> NewParts | list[LogPart] | None:
    """Return the parts that end after ``known_offset`` up to the log's end; on the loop.

    The list is empty if the log has to be read whole, and None if the known parts reach its end.
    """
    if not has_parts(log):
        return []
    segments = [each for each in log.segments if each.size_bytes]
    if all(each.is_stored for each in segments):
        return [] if is_local(log) else None
    unknown = (at for at, each in enumerate(segments) if _is_unknown(each, known_offset))
    newest = segments[next(unknown, -1) :]
    if newest[-1] is log.active:
        return NewParts(newest[:-1], [part_of(log.active)[0]])
    return NewParts(newest, ())


def _is_unknown(segment: ReadableSegment, known_offset: int) -> bool:
    if isinstance(segment, Segment):
        return segment.end_offset > known_offset
    return not segment.is_stored


def joined_facts(base_offset: int, first: PartFacts, second: PartFacts) -> PartFacts:
    """Return the facts of two parts as those of one; the first begins at ``base_offset``."""
    offsets, times = OffsetIndex(base_offset), TimeIndex(base_offset)
    transactions = TransactionIndex()
    position = 0
    for facts in (first, second):
        for offset, at in facts.indexes.offsets.entries():
            offsets.append(offset, position + at)
        for timestamp, offset in facts.indexes.times.entries():
            times.maybe_append(timestamp, offset)
        for aborted in facts.transactions:
            transactions.append(aborted)
        position += facts.size_bytes
    index = SegmentIndex(base_offset, INDEX_STEP_BYTES)
    index.resume(offsets, times)
    return PartFacts(position, index, transactions)


def part_of(segment: ReadableSegment) -> tuple[LogPart, PartFacts]:
    """Return a segment as a part, with its facts; see ``NewParts.encode``."""
    indexes = segment.index.thinned(INDEX_STEP_BYTES)
    facts = PartFacts(segment.size_bytes, indexes, segment.transactions)
    return encode_part(segment.base_offset, segment.end_offset, facts), facts


def encode_part(base_offset: int, next_offset: int, facts: PartFacts) -> LogPart:
    """Return the part with these facts."""
    offsets, times = facts.indexes.offsets.encode(), facts.indexes.times.encode()
    aborted = facts.transactions.encode()
    header = _HEADER.pack(facts.size_bytes, len(offsets), len(times), len(aborted))
    data = b"".join((header, offsets, times, aborted))
    return LogPart(base_offset, next_offset, data + _checksum(base_offset, next_offset, data))


def _checksum(base_offset: int, next_offset: int, facts: bytes) -> bytes:
    return _CHECKSUM.pack(crc32c(facts, crc32c(_RANGE.pack(base_offset, next_offset))))


def decode_facts(part: LogPart) -> PartFacts | None:
    """Return the facts of a part, or None if they are damaged."""
    base_offset, next_offset, data = part
    facts = data[: -_CHECKSUM.size]
    if len(facts) < _HEADER.size or data != facts + _checksum(base_offset, next_offset, facts):
        return None
    size_bytes, *lengths = _HEADER.unpack_from(facts)
    blobs, position = [], _HEADER.size
    for length in lengths:
        blobs.append(facts[position : position + length])
        position += length
    index = SegmentIndex(base_offset, INDEX_STEP_BYTES)
    try:
        index.resume(
            OffsetIndex.decode(blobs[0], base_offset), TimeIndex.decode(blobs[1], base_offset)
        )
        return PartFacts(size_bytes, index, TransactionIndex.decode(blobs[2], base_offset))
    except CorruptIndex:
        return None


def covering_parts(
    index: LogIndex, heads: Sequence[LogHead]
) -> dict[int, list[tuple[LogPart, PartFacts]]]:
    """Return the parts of each log from its start to its snapshot, or none if it is read whole.

    ``heads`` are of different logs. Parts that the store cannot read are of no use. Blocks; raises
    IndexClosed.
    """
    try:
        return _covering_parts(index, heads)
    except StoreDamaged:
        if len(heads) > 1:
            return {
                each.partition_id: covering_parts(index, [each])[each.partition_id]
                for each in heads
            }
        return {each.partition_id: [] for each in heads}


def _covering_parts(
    index: LogIndex, heads: Sequence[LogHead]
) -> dict[int, list[tuple[LogPart, PartFacts]]]:
    found: dict[int, list[LogPart]] = {each.partition_id: [] for each in heads}
    ranges = {
        each.partition_id: (each.state.log_start_offset, each.snapshot.next_offset)
        for each in heads
        if each.snapshot is not None and each.snapshot.next_offset > each.state.log_start_offset
    }
    wanted = {partition_id: start for partition_id, (start, _) in ranges.items()}
    while wanted:
        pages = index.parts(wanted, most=max(1, _PARTS_AT_ONCE // len(wanted)))
        wanted = {}
        for partition_id, page in pages.items():
            found[partition_id] += page
            if page and page[-1].next_offset < ranges[partition_id][1]:
                wanted[partition_id] = page[-1].next_offset
    return {
        partition_id: _decoded(parts, *ranges[partition_id]) if partition_id in ranges else []
        for partition_id, parts in found.items()
    }


def _decoded(parts: Sequence[LogPart], start: int, end: int) -> list[tuple[LogPart, PartFacts]]:
    if not parts or parts[0].base_offset > start or parts[-1].next_offset != end:
        return []
    if any(before.next_offset != after.base_offset for before, after in pairwise(parts)):
        return []
    decoded = []
    for part in parts:
        facts = decode_facts(part)
        if facts is None:
            return []
        decoded.append((part, facts))
    return decoded
