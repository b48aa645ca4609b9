"""Output of the commands: tables for people, JSON for programs, progress on standard error.

For people ``printing.py`` escapes characters that are not printable. JSON has escapes of its own
for them, from which a program reads the exact name.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from barnabas.broker.cli.printing import escaped, print_text
from barnabas.storage.runtime.clock import monotonic

SETTING_COLUMNS = {"CONFIGURATION": "key", "VALUE": "value", "SOURCE": "source"}
_GAP = "  "
_PROGRESS_EVERY_SECONDS = 0.2
_NAMES = {
    *("TOPIC", "PARTITION", "GROUP", "ID", "MEMBER", "INSTANCE"),
    *("CLIENT", "CLIENT ID", "USER", "NAME", "PRINCIPAL"),
}
"""Columns of names, which may be 249 characters long and more."""
_NAME_LEAST = 24
"""Characters of a name that are shown at least, however narrow the terminal is."""
_ELLIPSIS = "..."

Cell = str | int | None
T = TypeVar("T")


def json_text(value: object, indent: int | None = None) -> str:
    """Return a JSON document in which all characters except line ends are printable."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_escaped, line))
        for line in text.split("\n")
    )


def _json_escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_json(value: object) -> None:
    """Print one JSON document, laid out for reading."""
    print(json_text(value, indent=2))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print rows in columns, numbers to the right; None is shown as "-".

    On a terminal names are cut in the middle for as long as a row is wider than it: one long name
    makes all rows wide. What another program reads is whole.
    """
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = RowPrinter(headings, buffered_rows=sys.maxsize, width=columns)
    for row in rows:
        table.add(row)
    table.flush()


def as_json(value: Any) -> Any:  # noqa: ANN401  JSON has no narrower type
    """Convert frozen classes and named tuples, also in lists and mappings, for JSON."""
    if is_dataclass(value):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return value


def print_rows(rows: Iterable[Any], columns: Mapping[str, str]) -> None:
    """Print a table of objects; ``columns`` has the attribute below each heading."""
    attributes = list(columns.values())
    print_table(list(columns), [[getattr(row, each) for each in attributes] for row in rows])


def print_done(output_format: str, document: object, text: str) -> None:
    """Print the result of a change: a document in JSON, or a line of text."""
    if output_format == "json":
        print_json(document)
    else:
        print_text(text)


def print_found(
    rows: Sequence[Any], columns: Mapping[str, str], output_format: str, document: object = None
) -> None:
    """Print objects as a table, or as JSON: in ``document`` if they are part of one."""
    if output_format == "json":
        print_json(as_json(rows if document is None else document))
    else:
        print_rows(rows, columns)


def print_each(found: Sequence[T], show: Callable[[T], None], output_format: str) -> None:
    """Print objects with an empty line between them, or as JSON."""
    if output_format == "json":
        print_json(as_json(found))
        return
    for number, each in enumerate(found):
        if number:
            print_text()
        show(each)


def print_pairs(pairs: Sequence[tuple[str, Cell]]) -> None:
    """Print the properties of an object, one a line; None is shown as "-"."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print_text(f"{name:{width}}{_GAP}{_cell(value)}".rstrip())


def time_text(timestamp_ms: int) -> str | None:
    """Return a time as text in UTC, or None for none or an invalid one."""
    if timestamp_ms < 0:
        return None
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def duration_text(duration_ms: int) -> str:
    """Return a duration in its two largest units: "350 ms", "12 s", "3 h 20 min"."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    left = duration_ms // 1000
    parts: list[str] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def count_text(count: int, thing: str, plural: str | None = None) -> str:
    """Return a count with its noun: "1 record", "2,000 records"."""
    return f"{count:,} {thing if count == 1 else plural or thing + 's'}"


class RowPrinter:
    """A table of any length, printed as its rows come; the first rows decide the widths of the
    columns.

    ``width``: of the terminal, to which names are cut, or None to cut nothing.
    """

    def __init__(
        self, headings: Sequence[str], buffered_rows: int = 100, width: int | None = None
    ) -> None:
        self.headings = headings
        self._width = width
        self._look_ahead_rows = buffered_rows
        self._waiting: list[Sequence[Cell]] | None = []
        self._widths: list[int] = []
        self._numeric: list[bool] = []

    def add(self, row: Sequence[Cell]) -> None:
        """Print a row, now or with the others."""
        if self._waiting is None:
            self._print(row)
            return
        self._waiting.append(row)
        if len(self._waiting) == self._look_ahead_rows:
            self.flush()

    def flush(self) -> None:
        """Print the buffered rows."""
        if self._waiting is None:
            return
        waiting, self._waiting = self._waiting, None
        columns = range(len(self.headings))
        self._numeric = [all(isinstance(row[c], int | None) for row in waiting) for c in columns]
        shown = [self.headings, *([_cell(cell) for cell in row] for row in waiting)]
        self._widths = [max(len(line[column]) for line in shown) for column in columns]
        if self._width is not None:
            self._narrow(self._width)
        self._print(self.headings)
        for row in waiting:
            self._print(row)

    def _narrow(self, width: int) -> None:
        """Narrow the widest columns of names to fit the rows."""
        names = [
            at
            for at, heading in enumerate(self.headings)
            if heading in _NAMES and not self._numeric[at]
        ]
        excess = sum(self._widths) + len(_GAP) * (len(self._widths) - 1) - width
        while excess > 0 and names:
            widest = max(names, key=self._widths.__getitem__)
            if self._widths[widest] <= _NAME_LEAST:
                return
            self._widths[widest] -= 1
            excess -= 1

    def _print(self, row: Sequence[Cell]) -> None:
        cells = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(
                self._shown(row), self._widths, self._numeric, strict=True
            )
        )
        print(_GAP.join(cells).rstrip())

    def _shown(self, row: Sequence[Cell]) -> list[str]:
        texts = list(map(_cell, row))
        if self._width is None:
            return texts
        return [_cut(text, width) for text, width in zip(texts, self._widths, strict=True)]


def _cell(cell: Cell) -> str:
    return "-" if cell is None else escaped(str(cell))


def _cut(text: str, width: int) -> str:
    """Return a text without its middle if it is too long."""
    if len(text) <= width:
        return text
    kept = width - len(_ELLIPSIS)
    return text[: kept - kept // 2] + _ELLIPSIS + text[len(text) - kept // 2 :]


class Progress:
    """A line on standard error that is overwritten, if standard error is a terminal.

    ``with Progress() as progress: progress.show("1,000 records")``. ``output_waits``: no other
    output is printed meanwhile, so that both can share one screen. With ``lines`` each text is a
    line of its own, also on a terminal.
    """

    def __init__(self, *, output_waits: bool = False, lines: bool = False) -> None:
        self._lines = lines
        self._watched = lines or (sys.stderr.isatty() and (output_waits or not sys.stdout.isatty()))
        self._next_s = monotonic() + (0 if lines else _PROGRESS_EVERY_SECONDS)
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Erase the progress line before other output."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    @property
    def is_due(self) -> bool:
        """Whether the last line was visible long enough, on a terminal."""
        return self._watched and monotonic() >= self._next_s

    def show(self, text: str) -> None:
        """Replace the line if the last one was visible for long enough."""
        if not self.is_due:
            return
        self._next_s = monotonic() + _PROGRESS_EVERY_SECONDS
        text = escaped(text)
        if self._lines:
            print(text, file=sys.stderr, flush=True)
            return
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = max(self._width, len(text))
