"""A log that is loaded from the headers of its batches, where its records are in the object store.

Rules of this file:

* What a log's next leader needs of the records after its snapshot is in the headers of their
  batches, and in the control batches: the state of producers, indexes, epochs, and aborted
  transactions (F11). Footers of objects have these (``wal_object.py``).
* Such a log has all of its records in the store: those that came in rows, too. It gets remote
  segments up to its end, whose facts go to the store with the next snapshot (``log_parts.py``).
* Nothing of it is trusted, as in ``log_reading.py``. A footer has a checksum of its own. Records in
  rows are checked here, and those in objects when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.storage.log.index import SegmentIndex, TransactionIndex
from barnabas.storage.replicated.loading import DurableLog, KnownSegment
from barnabas.storage.replicated.log_index import LogPart
from barnabas.storage.replicated.log_parts import INDEX_STEP_BYTES, PartFacts
from barnabas.storage.replicated.log_reading import ExtentReader, damage_is_of
from barnabas.storage.replicated.remote_segment import RemoteSegment
from barnabas.storage.replicated.wal_object import headers_in

if TYPE_CHECKING:
    from barnabas.storage.log.readable_segment import ReadableSegment
    from barnabas.storage.replicated.cold_store import ColdStore
    from barnabas.storage.replicated.log_index import Extent, LogHead, LogIndex
    from barnabas.storage.replicated.wal_object import FooterBatch

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""Size after which a remote segment ends."""
_EXTENTS_AT_ONCE: Final = 256


def log_by_headers(
    index: LogIndex,
    head: LogHead,
    extents: Iterable[Extent],
    remote: Sequence[ReadableSegment],
    cold: ColdStore,
) -> DurableLog:
    """Return a log whose part before its snapshot is in ``remote``; blocks, raises Corrupt.

    ``extents`` are all after the snapshot, without the bytes that are in the object store.
    """
    snapshot = head.snapshot
    assert snapshot is not None, "the log has a snapshot"
    known: list[KnownSegment] = []
    end = begin = snapshot.next_offset
    batches: list[FooterBatch] = []
    size_bytes = 0
    for batch in _batches_from(index, head, extents, begin):
        if size_bytes >= SEGMENT_BYTES:
            known.append(_segment(head.partition_id, begin, end, batches, cold))
            begin, batches, size_bytes = end, [], 0
        batches.append(batch)
        size_bytes += batch.header.size
        end = batch.header.next_offset
    if batches:
        known.append(_segment(head.partition_id, begin, end, batches, cold))
    segments = [*remote, *(each.segment for each in known)]
    start = head.state.log_start_offset
    return DurableLog((), start, head.state.log_end_offset, snapshot, segments, known)


def _batches_from(
    index: LogIndex, head: LogHead, extents: Iterable[Extent], begin: int
) -> Iterator[FooterBatch]:
    """Yield the batches from an offset on; raises Corrupt unless they reach the log's end."""
    reader = ExtentReader(head)
    rest = iter(extents)
    while page := list(islice(rest, _EXTENTS_AT_ONCE)):
        with damage_is_of(head.partition_id, page[0].base_offset):
            headers = iter(index.headers([each for each in page if each.place is not None]))
        for extent in page:
            reader.require_next(extent, begin)
            found: Sequence[FooterBatch]
            if extent.place is None:
                reader.read(extent)
                found = headers_in(extent.data)
            else:
                found = next(headers)
                reader.check_headers(extent, [each.header for each in found])
            for each in found:
                if each.header.base_offset >= begin:
                    yield each
    reader.require_end(begin)


def _segment(
    partition_id: int, begin: int, end: int, batches: Sequence[FooterBatch], cold: ColdStore
) -> KnownSegment:
    indexes = SegmentIndex(begin, INDEX_STEP_BYTES)
    position = 0
    for header, _ in batches:
        indexes.append(header.last_offset, header.newest_timestamp, position)
        position += header.size
    indexes.seal()
    facts = PartFacts(position, indexes, TransactionIndex())
    part = LogPart(begin, end, b"")
    now_ms = cold.now_ms()
    segment = RemoteSegment(partition_id, part, facts, cold, created_ms=now_ms, is_stored=False)
    return KnownSegment(segment, batches)
