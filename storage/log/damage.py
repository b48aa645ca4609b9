"""Offset ranges of a log that cannot be read because their bytes have changed.

A log keeps its damaged ranges as a list in the order of their offsets; these functions query such a
list or return a changed one. Only ``storage/repair/scrub.py`` finds damage: readers, compaction and
recovery only report where to check.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

_end_offset: Final = attrgetter("end_offset")


UNREADABLE: Final = "it cannot be read: "
"""Start of the reason of a range where reading failed."""


class DamagedRange(NamedTuple):
    """Offsets from ``base_offset`` up to ``end_offset`` that are not served.

    Their bytes are those from ``position`` up to ``end_position`` of the log file of the segment
    that begins at ``segment``. The range begins after the last sound batch. So it includes offsets
    that compaction removed directly before the damage: the next existing offset is not known there.
    """

    base_offset: int
    end_offset: int
    segment: int
    position: int
    end_position: int
    reason: str

    @property
    def is_unreadable(self) -> bool:
        """Whether the bytes could not be read, which may be temporary."""
        return self.reason.startswith(UNREADABLE)

    def __str__(self) -> str:
        """Facts for an operator, without the directory."""
        return (
            f"offsets={self.base_offset}-{self.end_offset - 1} file={self.segment:020d}.log "
            f"bytes={self.position}-{self.end_position} reason={self.reason}"
        )


def first_at_or_after(ranges: Sequence[DamagedRange], offset: int) -> DamagedRange | None:
    """Return the range that holds ``offset``, else the first one after it."""
    at = bisect_right(ranges, offset, key=_end_offset)
    return ranges[at] if at < len(ranges) else None


def last_before(ranges: Sequence[DamagedRange], offset: int) -> DamagedRange | None:
    """Return the last range that ends at or before ``offset``."""
    at = bisect_right(ranges, offset, key=_end_offset) - 1
    return ranges[at] if at >= 0 else None


def range_at(ranges: Sequence[DamagedRange], offset: int) -> DamagedRange | None:
    """Return the range that holds ``offset``, or None if the offset is sound."""
    following = first_at_or_after(ranges, offset)
    return following if following is not None and following.base_offset <= offset else None


def sound_part(
    ranges: Sequence[DamagedRange], segment: int, offset: int, end: int, within: tuple[int, int]
) -> tuple[int, tuple[int, int]]:
    """Return the end of a read at a sound ``offset`` of a segment, and the bytes that it may use.

    ``segment`` is the base offset of the segment. ``end`` and ``within`` are the offset and the
    bytes of its file that limit the read without damage.
    """
    begin, stop = within
    before, following = last_before(ranges, offset), first_at_or_after(ranges, offset)
    if before is not None and before.segment == segment:
        begin = before.end_position
    if following is not None and following.segment == segment:
        end, stop = min(end, following.base_offset), following.position
    return end, (begin, stop)


def with_findings(
    ranges: Iterable[DamagedRange], base_offset: int, end_offset: int, found: Iterable[DamagedRange]
) -> list[DamagedRange]:
    """Return the ranges after a check of some offsets, which found the damage ``found``."""
    others = (
        each for each in ranges if each.end_offset <= base_offset or each.base_offset >= end_offset
    )
    return sorted([*others, *found])


def from_offset(ranges: Iterable[DamagedRange], start_offset: int) -> list[DamagedRange]:
    """Return the parts of the ranges at or after ``start_offset``."""
    return [
        each._replace(base_offset=max(each.base_offset, start_offset))
        for each in ranges
        if each.end_offset > start_offset
    ]
