"""How the commands print: tables for people, JSON for programs, progress on standard error."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

_GAP = "  "
_PROGRESS_EVERY_SECONDS = 0.2

Cell = str | int | None


def print_json(value: object) -> None:
    """Print one JSON document, laid out for reading."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows in columns, numbers to the right; None is shown as "-"."""
    numeric = [
        all(isinstance(row[column], int | None) for row in rows) for column in range(len(headings))
    ]
    lines = [headings, *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        print(_GAP.join(cells).rstrip())


def print_pairs(pairs: Sequence[tuple[str, Cell]]) -> None:
    """Print one thing's properties, a line for each; None is shown as "-"."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name:{width}}{_GAP}{'-' if value is None else value}".rstrip())


def uuid_text(identifier: bytes) -> str:
    """Write an id of 16 bytes as Kafka does."""
    return base64.urlsafe_b64encode(identifier).rstrip(b"=").decode()


def time_text(timestamp_ms: int) -> str | None:
    """Write a time for people, in UTC; None for "no time" and what no calendar has."""
    if timestamp_ms < 0:
        return None
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def count_text(count: int, thing: str, plural: str | None = None) -> str:
    """Write "1 record" and "2,000 records"."""
    return f"{count:,} {thing if count == 1 else plural or thing + 's'}"


class Progress:
    """A line on standard error that is written over again, if somebody is watching.

    ``with Progress() as progress: progress.show("1,000 records")``.
    """

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty() and not sys.stdout.isatty()
        self._next_s = time.monotonic() + _PROGRESS_EVERY_SECONDS
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()

    def show(self, text: str) -> None:
        """Replace the line, if the last one has stood long enough to be read."""
        if not self._watched or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _PROGRESS_EVERY_SECONDS
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = max(self._width, len(text))
