"""The rows of the index in memory, and the calls of ``LogIndex`` that upkeep makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from barnabas.broker.testing.store.payloads import Payloads
from barnabas.broker.testing.store.rows import ENDED, PartitionRow, SessionRow
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.replicated.log_index import (
    Extent,
    ExtentSize,
    IndexMisused,
    Lane,
    PackedExtents,
    SegmentExtent,
    StoredSpace,
)
from barnabas.storage.runtime.threads import new_condition


class LogUpkeep:
    """The part of ``MemoryIndex`` that replaces and deletes extents."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` returns seconds."""
        self.rows: dict[int, PartitionRow] = {}
        self._sessions: dict[int, SessionRow] = {}
        self._clock = clock
        self._payloads = Payloads(self._now_s)
        self._changed = new_condition()
        self.uploads = MemoryUploads()
        self._payloads.on_segment_deleted = self._drop_segment

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """See ``LogIndex``."""
        with self._changed:
            row = self.rows.get(partition_id)
            found = [] if row is None else row.extents_from(from_offset, most)
            key = self._payloads.object_key
            return [
                ExtentSize(
                    each.base_offset, each.next_offset, each.size_bytes, key(partition_id, each)
                )
                for each in found
            ]

    def collect_garbage(self, most: int) -> int:
        """See ``LogIndex``."""
        with self._changed:
            return self._payloads.collect_garbage(self.rows, most)

    def pack_extents(self, most: int, most_bytes: int, rest_ms: int) -> PackedExtents:
        """See ``LogIndex``."""
        with self._changed:
            return self._payloads.pack(self.rows, most, most_bytes, rest_ms)

    def space(self, rest_ms: int) -> StoredSpace:
        """See ``LogIndex``."""
        with self._changed:
            return self._payloads.space(rest_ms)

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
        with self._changed:
            if not self._leads_still(session, partition_id, epoch):
                return False
            row = self.rows[partition_id]
            if row.log_start_offset > extents[0].base_offset:
                return False
            begin, end = extents[0].base_offset, extents[-1].next_offset
            before = [each for each in row.extents if begin <= each.base_offset < end]
            if keeps_size and _size_of(before) != _size_of(extents):
                return False
            self._payloads.replace(partition_id, row, extents)
            return True

    def replace_by_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """See ``LogIndex``."""
        return self._name_segment(session, partition_id, epoch, number, segment, self._replace)

    def append_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """See ``LogIndex``."""
        return self._name_segment(session, partition_id, epoch, number, segment, self._append)

    def _name_segment(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        number: int,
        segment: SegmentExtent,
        name: Callable[[int, SegmentExtent], bool],
    ) -> bool:
        with self._changed:
            numbers = self._session(session).next_flushes
            if numbers.get(Lane.PACKING, 0) > number:
                return self.uploads.has_segment(segment.key)
            if not self._leads_still(session, partition_id, epoch):
                return False
            if numbers.get(Lane.PACKING, 0) != number:
                raise IndexMisused(f"segment {number} of session {session} comes too early")
            if not name(partition_id, segment):
                return False
            numbers[Lane.PACKING] = number + 1
            return True

    def _replace(self, partition_id: int, segment: SegmentExtent) -> bool:
        row = self.rows[partition_id]
        return row.log_start_offset <= segment.base_offset and self._payloads.replace_by_segment(
            partition_id, row, segment, self.uploads
        )

    def _append(self, partition_id: int, segment: SegmentExtent) -> bool:
        row = self.rows[partition_id]
        if row.log_end_offset != segment.base_offset:
            raise IndexMisused(f"partition {partition_id} does not end at {segment.base_offset}")
        self._payloads.append_segment(partition_id, row, segment, self.uploads)
        row.log_end_offset = segment.next_offset
        return True

    def skip_number(self, session: int, number: int) -> None:
        """See ``LogIndex``."""
        with self._changed:
            numbers = self._session(session).next_flushes
            numbers[Lane.PACKING] = max(numbers.get(Lane.PACKING, 0), number + 1)

    def _drop_segment(self, key: str) -> None:
        self.uploads.drop_segment(key)

    def _session(self, number: int) -> SessionRow:
        return self._sessions.get(number, ENDED)

    def _leads(self, session: int, partition_id: int, epoch: int) -> bool:
        row = self.rows.get(partition_id)
        return row is not None and (row.leader_session, row.leader_epoch) == (session, epoch)

    def _leads_still(self, session: int, partition_id: int, epoch: int) -> bool:
        return self._session(session).is_live and self._leads(session, partition_id, epoch)

    def _now_s(self) -> float:
        return self._clock()


def _size_of(extents: Iterable[Extent]) -> int:
    return sum(each.size_bytes for each in extents)
