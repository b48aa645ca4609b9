"""Payloads of the index in memory: extents that one flush brought, whose space is freed as a whole.

The functions of ``storage/postgresql/migrations/0008_packing.sql`` do the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Final

from barnabas.broker.testing.store.rows import PartitionRow, touch
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.objects.blob_store import keys_with
from barnabas.storage.replicated.log_index import (
    Extent,
    Flush,
    IndexMisused,
    Item,
    ObjectPlace,
    ObjectSize,
    PackedExtents,
    SegmentExtent,
    StoredSpace,
)

PACKED_BYTES: Final = 1024 * 1024
"""Size after which a packed payload takes no more extents."""

_base_offset = attrgetter("base_offset")
_next_offset = attrgetter("next_offset")

Place = tuple[int, int]
"""Partition and base offset of an extent."""


@dataclass(slots=True, eq=False)
class Payload:
    """Bytes of some extents; ``places`` are those of the extents that live."""

    size_bytes: int
    places: set[Place]
    dead_bytes: int = 0
    """Size of its deleted extents."""
    sparse_since: float | None = None
    """Time, in seconds, since which too much of it is dead, or None."""
    key: str | None = None
    """Key in the object store, or None if its bytes are in the index."""
    segment_key: str | None = None
    """Key of the packed segment that it is, wherever that is, or None."""


class Payloads:
    """All payloads with extents that live; the caller lets one call in at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` returns seconds."""
        self._clock = clock
        self._payloads: dict[Place, Payload] = {}
        self._partly_dead: dict[Payload, None] = {}
        self._sparse: dict[Payload, None] = {}
        """Sparse payloads, in the order in which they became sparse."""
        self.on_segment_deleted: Callable[[str], None] = lambda _key: None
        """Called with the key of each packed segment that no log has any more."""
        self.dereferenced_keys: dict[str, float] = {}
        """Keys of objects in the object store without extents, and since when."""

    def clear(self) -> None:
        """Forget all payloads."""
        self._payloads.clear()
        self._partly_dead.clear()
        self._sparse.clear()

    def write(self, rows: Mapping[int, PartitionRow], flush: Flush, body: bytes) -> None:
        """Append the records of a flush, whose ``body`` is empty if the object store has it."""
        if len({item.partition_id for item in flush.items}) < len(flush.items):
            raise IndexMisused("two items of one partition")
        extents = {}
        for item in flush.items:
            extent = extents[item.partition_id, item.base_offset] = _extent_of(item, flush, body)
            rows[item.partition_id].append(item, extent)
        self.add(extents)
        for start in flush.starts:
            row = rows[start.partition_id]
            if start.offset > row.log_end_offset:
                raise IndexMisused(f"{start} is behind the end, {row.log_end_offset}")
            row.log_start_offset = max(row.log_start_offset, start.offset)

    def add(self, extents: Mapping[Place, Extent]) -> None:
        """Add a payload that has these extents."""
        size_bytes = sum(each.size_bytes for each in extents.values())
        keys = {each.place.key for each in extents.values() if each.place is not None}
        payload = Payload(size_bytes, set(extents), key=keys.pop() if keys else None)
        assert not keys, "extents of one flush in several objects"
        self._payloads.update(dict.fromkeys(extents, payload))

    def collect_garbage(self, rows: Mapping[int, PartitionRow], most: int) -> int:
        """Delete up to ``most`` extents that are not needed; return their number."""
        deleted = 0
        for partition_id, row in rows.items():
            found = bisect_right(row.extents, row.needless_offset, key=_next_offset)
            found = min(found, most - deleted)
            self._dereference(partition_id, row.extents[:found])
            del row.extents[:found]
            deleted += found
            if row.is_deleted:
                row.snapshot, row.parts = None, []
        return deleted

    def replace(self, partition_id: int, row: PartitionRow, extents: Sequence[Extent]) -> None:
        """Put extents in place of those with the same offsets; see ``LogIndex``."""
        begin, end = extents[0].base_offset, extents[-1].next_offset
        first = bisect_left(row.extents, begin, key=_base_offset)
        after = bisect_right(row.extents, end, key=_next_offset)
        replaced = row.extents[first:after]
        if not (
            replaced
            and (replaced[0].base_offset, replaced[-1].next_offset) == (begin, end)
            and all(map(touch, extents, extents[1:]))
            and all(each.size_bytes for each in extents)
            and row.snapshot is not None
            and row.snapshot.next_offset >= end
        ):
            raise IndexMisused(f"{begin} to {end} of {partition_id} is not to be replaced")
        self._dereference(partition_id, replaced)
        row.extents[first:after] = extents
        self.add({(partition_id, each.base_offset): each for each in extents})

    def replace_by_segment(
        self, partition_id: int, row: PartitionRow, segment: SegmentExtent, uploads: MemoryUploads
    ) -> bool:
        """Put a packed segment in place of extents; see ``LogIndex``."""
        begin, end = segment.base_offset, segment.next_offset
        first = bisect_left(row.extents, begin, key=_base_offset)
        after = bisect_right(row.extents, end, key=_next_offset)
        replaced = row.extents[first:after]
        length = sum(each.size_bytes for each in replaced)
        if replaced and replaced[0].base_offset == begin and length != segment.length:
            return False
        self.replace(partition_id, row, [_segment_extent(segment, uploads)])
        self._payloads[partition_id, begin].segment_key = segment.key
        return True

    def append_segment(
        self, partition_id: int, row: PartitionRow, segment: SegmentExtent, uploads: MemoryUploads
    ) -> None:
        """Append a packed segment; see ``LogIndex``."""
        extent = _segment_extent(segment, uploads)
        row.extents.append(extent)
        self.add({(partition_id, extent.base_offset): extent})
        self._payloads[partition_id, extent.base_offset].segment_key = segment.key

    def object_key(self, partition_id: int, extent: Extent) -> str | None:
        """Return the key of an extent's object; see ``ExtentSize``."""
        payload = self._payloads[partition_id, extent.base_offset]
        return payload.segment_key or payload.key

    def pack(
        self, rows: Mapping[int, PartitionRow], most: int, most_bytes: int, rest_ms: int
    ) -> PackedExtents:
        """Copy extents out of sparse payloads; see ``LogIndex.pack_extents``."""
        bound = self._clock() - rest_ms / 1000
        chosen: list[Payload] = []
        extents = size_bytes = 0
        for payload in self._sparse:
            count = extents + len(payload.places)
            total = size_bytes + payload.size_bytes - payload.dead_bytes
            is_fitting = not chosen or (count <= most and total <= most_bytes)
            if not (is_fitting and _is_sparse_since(payload, bound)):
                break
            chosen.append(payload)
            extents, size_bytes = count, total
        places = sorted(place for payload in chosen for place in payload.places)
        for partition_id, group in groupby(places, key=itemgetter(0)):
            row = rows[partition_id]
            for portion in _portions(row, {base_offset for _, base_offset in group}):
                self._copy(partition_id, row, portion)
        return PackedExtents(extents, size_bytes)

    def dead_keys(self, most: int, rest_ms: int) -> list[str]:
        """Return keys without extents; see ``LogIndex.dereferenced_keys``."""
        bound = self._clock() - rest_ms / 1000
        return [key for key, since in self.dereferenced_keys.items() if since <= bound][:most]

    def space(self, rest_ms: int) -> StoredSpace:
        """Return the space that deleted extents take; see ``LogIndex.space``."""
        bound = self._clock() - rest_ms / 1000
        due = (each for each in self._sparse if _is_sparse_since(each, bound))
        pinned_bytes = sum(each.dead_bytes for each in self._partly_dead)
        return StoredSpace(pinned_bytes, sum(each.dead_bytes for each in due))

    def _copy(self, partition_id: int, row: PartitionRow, portion: Sequence[Extent]) -> None:
        data = b"".join(each.data for each in portion)
        copies = {}
        position = 0
        for extent in portion:
            end = position + len(extent.data)
            copy = extent._replace(data=data[position:end])
            at = bisect_left(row.extents, extent.base_offset, key=_base_offset)
            row.extents[at] = copy
            copies[partition_id, extent.base_offset] = copy
            position = end
        self._dereference(partition_id, portion)
        self.add(copies)

    def _dereference(self, partition_id: int, extents: Iterable[Extent]) -> None:
        for extent in extents:
            place = (partition_id, extent.base_offset)
            payload = self._payloads.pop(place)
            payload.places.remove(place)
            payload.dead_bytes += extent.size_bytes
            if not payload.places:
                if payload.segment_key is not None:
                    self.on_segment_deleted(payload.segment_key)
                self._partly_dead.pop(payload, None)
                self._sparse.pop(payload, None)
                if payload.key is not None:
                    keys = keys_with(payload.key)
                    self.dereferenced_keys.update(dict.fromkeys(keys, self._clock()))
                continue
            if payload.key is not None:
                continue
            self._partly_dead[payload] = None
            if payload.sparse_since is None and payload.dead_bytes * 4 > payload.size_bytes:
                payload.sparse_since = self._clock()
                self._sparse[payload] = None


def _extent_of(item: Item, flush: Flush, body: bytes) -> Extent:
    data, place = b"", None
    if flush.size is None:
        data = body[item.position : item.position + item.length]
    elif flush.key is not None and item.position + item.length <= flush.size.footer_at:
        place = ObjectPlace(flush.key, item.position, item.length, flush.size)
    return Extent(item.base_offset, item.next_offset, item.leader_epoch, data, place)


def _portions(row: PartitionRow, base_offsets: Collection[int]) -> list[list[Extent]]:
    """Return the extents at some base offsets, in parts of about ``PACKED_BYTES``."""
    parts: dict[int, list[Extent]] = {}
    position = 0
    for extent in row.extents_from(min(base_offsets), len(row.extents)):
        if extent.base_offset in base_offsets:
            parts.setdefault(position // PACKED_BYTES, []).append(extent)
            position += len(extent.data)
    return [*parts.values()]


def _is_sparse_since(payload: Payload, bound: float) -> bool:
    return payload.sparse_since is not None and payload.sparse_since <= bound


def _segment_extent(segment: SegmentExtent, uploads: MemoryUploads) -> Extent:
    data, place = uploads.name_segment(segment), None
    if segment.in_object_store:
        size = ObjectSize(segment.length, segment.length)
        place = ObjectPlace(segment.key, 0, segment.length, size)
    return Extent(segment.base_offset, segment.next_offset, segment.leader_epoch, data, place)
