"""Which offsets of a log cannot be read, because their bytes are not what was written.

A log keeps its damaged ranges as a list in the order of their offsets; these functions answer
questions about such a list and make new ones. What is damaged is found by
``storage/repair/scrub.py``, and by nothing else: readers, compaction and recovery only say where to
look.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

_end_offset: Final = attrgetter("end_offset")


UNREADABLE: Final = "it cannot be read: "
"""How the reason begins where reading failed."""


class DamagedRange(NamedTuple):
    """Offsets from ``base_offset`` up to ``end_offset`` that are not served.

    Their bytes are those from ``position`` up to ``end_position`` of the log file of the segment
    that begins at ``segment``. The range begins behind the last sound batch, so that offsets that
    compaction took away in front of the damage belong to it: what comes next is not known there.
    """

    base_offset: int
    end_offset: int
    segment: int
    position: int
    end_position: int
    reason: str

    @property
    def is_unreadable(self) -> bool:
        """Whether the disk did not give the bytes: it may again."""
        return self.reason.startswith(UNREADABLE)

    def __str__(self) -> str:
        """What an operator has to know, but for the directory."""
        return (
            f"offsets={self.base_offset}-{self.end_offset - 1} file={self.segment:020d}.log "
            f"bytes={self.position}-{self.end_position} reason={self.reason}"
        )


def first_at_or_after(ranges: Sequence[DamagedRange], offset: int) -> DamagedRange | None:
    """The range that holds ``offset``, else the first one behind it."""
    at = bisect_right(ranges, offset, key=_end_offset)
    return ranges[at] if at < len(ranges) else None


def last_before(ranges: Sequence[DamagedRange], offset: int) -> DamagedRange | None:
    """The last range that ends at or before ``offset``."""
    at = bisect_right(ranges, offset, key=_end_offset) - 1
    return ranges[at] if at >= 0 else None


def with_findings(
    ranges: Iterable[DamagedRange], base_offset: int, end_offset: int, found: Iterable[DamagedRange]
) -> list[DamagedRange]:
    """The ranges once those offsets were looked at again: ``found`` is all that is wrong there."""
    others = (
        each for each in ranges if each.end_offset <= base_offset or each.base_offset >= end_offset
    )
    return sorted([*others, *found])


def from_offset(ranges: Iterable[DamagedRange], start_offset: int) -> list[DamagedRange]:
    """What is left of the ranges once a log starts at ``start_offset``."""
    return [
        each._replace(base_offset=max(each.base_offset, start_offset))
        for each in ranges
        if each.end_offset > start_offset
    ]
