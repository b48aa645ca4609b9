"""The connection of one broker to the durable logs in memory.

A test can delay it, cut it, or make it lose results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.replicated.log_index import (
    ANY_BYTES,
    Extent,
    ExtentSize,
    Flush,
    FlushAnswer,
    LogBeginning,
    LogPart,
    LogSnapshot,
    PackedExtents,
    PartitionState,
    SegmentExtent,
    StoredSpace,
)

if TYPE_CHECKING:
    from barnabas.broker.testing.store.index import MemoryIndex
    from barnabas.storage.replicated.object_reading import ObjectReader
    from barnabas.storage.replicated.wal_object import FooterBatch


class MemoryLogIndex(Way):
    """``LogIndex`` in memory: the calls of one broker, each repeated until it gets a result."""

    def __init__(
        self,
        index: MemoryIndex,
        on_flush: Callable[[Flush], None] = lambda _flush: None,
        link: Link | None = None,
        objects: ObjectReader | None = None,
    ) -> None:
        """``on_flush`` is called before each attempt of a flush, which takes as long as that call.

        ``link``: see ``Way``. ``objects`` reads the object store, or is None without one.
        """
        super().__init__(link)
        self._objects = objects
        self._index = index
        self._on_flush = on_flush

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.add_partition, partition_id, first_epoch)

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """See ``LogIndex``."""
        return self._ask(self._attempt_flush, session, flush)

    def partition(self, partition_id: int) -> PartitionState | None:
        """See ``LogIndex``."""
        return self._ask(self._index.partition, partition_id)

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        """See ``LogIndex``."""
        return self._ask(
            self._index.extents, partition_id, from_offset, most=most, most_bytes=most_bytes
        )

    def bodies(self, extents: Sequence[Extent], within_s: float | None = None) -> list[Extent]:
        """See ``LogIndex``."""
        if self._objects is None:
            return self._index.bodies(extents, within_s)
        return self._objects.bodies(extents, within_s)

    def headers(self, extents: Sequence[Extent]) -> list[Sequence[FooterBatch]]:
        """See ``LogIndex``."""
        if self._objects is None:
            return self._index.headers(extents)
        return self._objects.headers(extents)

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """See ``LogIndex``."""
        return self._ask(self._index.beginnings, partition_ids, most=most, most_bytes=most_bytes)

    def recent_beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """See ``LogIndex``."""
        limits = {"most": most, "most_bytes": most_bytes}
        return self._ask(self._index.recent_beginnings, partition_ids, **limits)

    def put_snapshot(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        snapshot: LogSnapshot,
        parts: Sequence[LogPart] | None = None,
    ) -> bool:
        """See ``LogIndex``."""
        return self._ask(self._index.put_snapshot, session, partition_id, epoch, snapshot, parts)

    def parts(self, from_offsets: Mapping[int, int], *, most: int) -> dict[int, list[LogPart]]:
        """See ``LogIndex``."""
        return self._ask(self._index.parts, from_offsets, most=most)

    def collect_garbage(self, most: int) -> int:
        """See ``LogIndex``."""
        return self._ask(self._index.collect_garbage, most)

    def pack_extents(self, most: int, most_bytes: int, rest_ms: int) -> PackedExtents:
        """See ``LogIndex``."""
        return self._ask(self._index.pack_extents, most, most_bytes, rest_ms)

    def space(self, rest_ms: int) -> StoredSpace:
        """See ``LogIndex``."""
        return self._ask(self._index.space, rest_ms)

    def dead_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """See ``LogIndex``."""
        return self._ask(self._index.dead_keys, keys)

    def dereferenced_keys(self, most: int, rest_ms: int) -> Sequence[str]:
        """See ``LogIndex``."""
        return self._ask(self._index.dereferenced_keys, most, rest_ms)

    def forget_keys(self, keys: Sequence[str]) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.forget_keys, keys)

    def forget(self, most: int, kept_ms: int) -> int:
        """See ``LogIndex``."""
        return self._ask(self._index.forget, most, kept_ms)

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """See ``LogIndex``."""
        return self._ask(self._index.extent_sizes, partition_id, from_offset, most=most)

    def replace_extents(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        extents: Sequence[Extent],
        *,
        keeps_size: bool = False,
    ) -> bool:
        """See ``LogIndex``."""
        replaced = (session, partition_id, epoch, extents)
        return self._ask(self._index.replace_extents, *replaced, keeps_size=keeps_size)

    def replace_by_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """See ``LogIndex``."""
        led = (session, partition_id, epoch)
        return self._ask(self._index.replace_by_segment, *led, number, segment)

    def append_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """See ``LogIndex``."""
        led = (session, partition_id, epoch)
        return self._ask(self._index.append_segment, *led, number, segment)

    def skip_number(self, session: int, number: int) -> None:
        """See ``LogIndex``."""
        self._ask(self._index.skip_number, session, number)

    def _attempt_flush(self, session: int, flush: Flush) -> FlushAnswer:
        self._on_flush(flush)
        return self._index.commit_flush(session, flush)
