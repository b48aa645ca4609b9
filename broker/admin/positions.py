"""Positions in a partition as operators write them: beginning, end, N, -N or @TIME."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

_OFFSET: Final = re.compile(r"[-+]?[0-9]{1,19}", re.ASCII)
_SHOWN_CHARACTERS: Final = 40


class BadPosition(ValueError):
    """A text that is not a position, or an offset that a partition does not have."""


@dataclass(frozen=True, slots=True)
class Position:
    """The beginning, an offset (negative: from the end), the first record of a time, or the end."""

    at_beginning: bool = False
    offset: int | None = None
    time_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a position; raises BadPosition."""
        if text.startswith("@"):
            return cls(time_ms=milliseconds(text[1:]))
        if text in {"beginning", "earliest"}:
            return cls(at_beginning=True)
        if text in {"end", "latest"}:
            return cls()
        if not _OFFSET.fullmatch(text):
            shown = text[:_SHOWN_CHARACTERS]
            raise BadPosition(f"{shown} is not beginning, end, an offset or @TIME")
        return cls(offset=int(text))

    def within(self, start: int, end: int, found: int | None = None) -> int:
        """Return the offset in a partition from ``start`` to ``end``; raises BadPosition.

        ``found`` is the offset of the time, negative if no record is as late.
        """
        if self.at_beginning:
            return start
        if self.time_ms is not None:
            return end if found is None or found < 0 else found
        if self.offset is None:
            return end
        if self.offset < 0:
            return max(start, end + self.offset)
        if start <= self.offset <= end:
            return self.offset
        raise BadPosition(f"offset {self.offset} does not exist, only {start} to {end}")


def milliseconds(text: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601, in UTC unless it has a zone."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        shown = text[:_SHOWN_CHARACTERS]
        words = f"{shown} is no time: milliseconds, or like 2026-01-31T12:00:00"
        raise BadPosition(words) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
