"""A segment of a log that lies before its snapshot, and whose records only the store has."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage.log.index import SegmentIndex
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment_read import ReadPlan
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.log_index import LogPart
from barnabas.storage.replicated.log_parts import PartFacts, joined_facts
from barnabas.storage.replicated.remote_file import RemoteFile, RemoteSpan


class RemoteSegment(ReadableSegment):
    """A part of a log whose facts are in memory; its records are read on a client's request."""

    def __init__(
        self,
        partition_id: int,
        part: LogPart,
        facts: PartFacts,
        cold: ColdStore,
        *,
        created_ms: int,
        is_stored: bool = True,
        first_timestamp_ms: int = -1,
        data_end_offset: int | None = None,
        has_gaps: bool = False,
    ) -> None:
        """``is_stored``: see ``ReadableSegment``.

        ``first_timestamp_ms``: that of the first batch, or -1 if it is not known.
        ``data_end_offset``: see ``ReadableSegment``; None for the end. ``has_gaps``: whether
        compaction may have taken offsets of its extents away.
        """
        super().__init__(part.base_offset, created_ms=created_ms)
        self.is_stored = is_stored
        self.first_timestamp_ms = first_timestamp_ms
        self.end_offset = part.next_offset
        self.size_bytes = self.written_bytes = facts.size_bytes
        self.transactions = facts.transactions
        self._index = facts.indexes
        self._facts = facts
        self._cold = cold
        self._partition_id = partition_id
        self._data_end_offset = part.next_offset if data_end_offset is None else data_end_offset
        bounds = partition_id, part.base_offset, part.next_offset
        self._file = RemoteFile(cold, *bounds, has_gaps=has_gaps)

    @property
    def index(self) -> SegmentIndex:
        """Offset and time index, with few entries; positions count from the segment's start."""
        return self._index

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment; -1 when no record has one."""
        return self._index.max_timestamp

    def oldest_timestamp_ms(self) -> int:
        """See ``ReadableSegment``."""
        return self.first_timestamp_ms

    def joined(self, part: LogPart, facts: PartFacts, data_end_offset: int) -> RemoteSegment:
        """Return a segment that has the next part, too, whose last batch ends at an offset."""
        base_offset = self.base_offset
        return RemoteSegment(
            self._partition_id,
            LogPart(base_offset, part.next_offset, b""),
            joined_facts(base_offset, self._facts, facts),
            self._cold,
            created_ms=self.created_ms,
            is_stored=False,
            first_timestamp_ms=self.first_timestamp_ms,
            data_end_offset=data_end_offset,
            has_gaps=self._file.has_gaps,
        )

    @property
    def data_end_offset(self) -> int:
        """See ``ReadableSegment``."""
        return self._data_end_offset

    def span(
        self,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        within: tuple[int, int],
        *,
        has_gaps: bool = False,
    ) -> ReadPlan:
        """See ``ReadableSegment``."""
        del within
        start_offset = max(start_offset, self.base_offset)
        end_offset = min(end_offset, self.end_offset)
        if has_gaps:
            self.expect_gaps()
        return RemoteSpan(self._file, start_offset, end_offset, max_bytes)

    def expect_gaps(self) -> None:
        """Note that compaction may have taken offsets of its extents away, or does so now."""
        self._file.has_gaps = True

    def close(self) -> None:
        """Keep the stretches in the cache, where they are the first to be dropped once no reader
        has them in use.
        """

    def remove(self) -> None:
        """Free the blocks of the cache."""
        self._file.forget()


def remote_segments(
    partition_id: int, parts: Iterable[tuple[LogPart, PartFacts]], cold: ColdStore
) -> list[RemoteSegment]:
    """Return the segments of a log that ``covering_parts`` found."""
    now_ms = cold.now_ms()
    return [
        RemoteSegment(partition_id, part, facts, cold, created_ms=now_ms) for part, facts in parts
    ]
