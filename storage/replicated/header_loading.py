"""A log that is loaded from the headers of its batches: its records stay in the store.

Rules of this file:

* What a log's next leader needs of the records after its snapshot is in the headers of their
  batches, and in the control batches: the state of producers, indexes, epochs, and aborted
  transactions (F11). Footers of objects have these (``wal_object.py``).
* Such a log has all of its records in the store: those that came in rows, too. It gets remote
  segments up to its end, whose facts go to the store with the next snapshot (``log_parts.py``).
* A long log without parts is loaded so from its start on: a compacted one, for example. It would
  fill the disk of its leader (F14).
* Nothing of it is trusted, as in ``log_reading.py``. A footer has a checksum of its own. Records in
  rows are checked here, and those in objects when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from barnabas.storage.log.index import SegmentIndex, TransactionIndex
from barnabas.storage.replicated.loading import DurableLog, KnownSegment
from barnabas.storage.replicated.log_index import LogPart
from barnabas.storage.replicated.log_parts import INDEX_STEP_BYTES, PartFacts
from barnabas.storage.replicated.log_reading import BYTES_AT_ONCE, ExtentReader, damage_is_of
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

    So does the iteration of its known segments: the headers of one at a time are in memory.
    ``extents`` are all after the snapshot, or all of the log if ``remote`` has no segments. They
    lack the bytes that are in the object store.
    """
    snapshot = head.snapshot
    if remote:
        assert snapshot is not None, "the log has a snapshot"
        needless = begin = snapshot.next_offset
    else:
        extents = iter(extents)
        first = next(extents, None)
        needless = begin = head.needless_offset
        if first is not None:
            begin, extents = first.base_offset, chain([first], extents)
    batches = _batches_from(index, head, extents, needless)
    # Without segments of a snapshot the log may be a compacted one.
    known = _segments(head.partition_id, begin, batches, cold, has_gaps=not remote)
    start, end = head.state.log_start_offset, head.state.log_end_offset
    return DurableLog((), start, end, snapshot, remote, known)


def _segments(
    partition_id: int,
    begin: int,
    found: Iterable[FooterBatch],
    cold: ColdStore,
    *,
    has_gaps: bool,
) -> Iterator[KnownSegment]:
    """Yield the segments of the batches from an offset on."""
    batches: list[FooterBatch] = []
    size_bytes, end = 0, begin
    for batch in found:
        if batch.header.base_offset < end:
            continue
        if size_bytes >= SEGMENT_BYTES:
            yield _segment(partition_id, begin, end, batches, cold, has_gaps=has_gaps)
            begin, batches, size_bytes = end, [], 0
        batches.append(batch)
        size_bytes += batch.header.size
        end = batch.header.next_offset
    if batches:
        yield _segment(partition_id, begin, end, batches, cold, has_gaps=has_gaps)


def _batches_from(
    index: LogIndex, head: LogHead, extents: Iterable[Extent], needless_offset: int
) -> Iterator[FooterBatch]:
    """Yield the batches of extents; raises Corrupt unless they reach from an offset to the end."""
    reader = ExtentReader(head)
    for page in _pages(extents):
        with damage_is_of(head.partition_id, page[0].base_offset):
            headers = iter(index.headers([each for each in page if each.place is not None]))
        for extent in page:
            reader.require_next(extent, needless_offset)
            found: Sequence[FooterBatch]
            if extent.place is None:
                reader.read(extent)
                found = [_apart(each) for each in headers_in(extent.data)]
            else:
                found = next(headers)
                reader.check_headers(extent, [each.header for each in found])
            yield from found
    reader.require_end(needless_offset)


def _pages(extents: Iterable[Extent]) -> Iterator[list[Extent]]:
    """Yield extents with as many bytes as one response of the store has."""
    page: list[Extent] = []
    size_bytes = 0
    for extent in extents:
        page.append(extent)
        size_bytes += len(extent.data)
        if size_bytes >= BYTES_AT_ONCE or len(page) == _EXTENTS_AT_ONCE:
            yield page
            page, size_bytes = [], 0
    if page:
        yield page


def _apart(batch: FooterBatch) -> FooterBatch:
    """Return a batch whose memory does not hold the rest of its extent."""
    return batch._replace(data=memoryview(bytes(batch.data)))


def _segment(
    partition_id: int,
    begin: int,
    end: int,
    batches: Sequence[FooterBatch],
    cold: ColdStore,
    *,
    has_gaps: bool,
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
    segment = RemoteSegment(
        partition_id,
        part,
        facts,
        cold,
        created_ms=now_ms,
        is_stored=False,
        first_timestamp_ms=batches[0].header.newest_timestamp,
        has_gaps=has_gaps,
    )
    return KnownSegment(segment, batches)
