"""``barnabas dump-log``: what the files of a data directory say, and where they are damaged.

It only reads, so it may look at the files of a running broker, Barnabas or Apache Kafka; what was
written last may not be whole then. ``barnabas check`` is the one that knows what must be there.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.broker.cli.arguments import add_format
from barnabas.broker.cli.errors import OK, CommandError
from barnabas.broker.cli.output import Cell, Progress, RowPrinter, count_text, json_text, time_text
from barnabas.broker.cli.printing import print_text
from barnabas.protocol.internal_records import decode_internal, plain
from barnabas.storage.dump.dump import Source, UnknownFile, dump_file, is_known
from barnabas.storage.dump.dump_batches import Problem, Row
from barnabas.storage.files.io import LocalFileSystem

_TEXT_CHARS_MAX = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files to read, and the level of detail."""
    parser.usage = "barnabas dump-log FILE... [options]"
    parser.epilog = (
        "Files: .log, .index, .timeindex, .txnindex, .snapshot, barnabas-journal-*, "
        "barnabas-checkpoint-*, barnabas-commit-mark, barnabas-metadata.sqlite-mark, and Kafka's "
        "small ones; of a directory all that are in it. "
        "Indexes are compared with the log beside them. Exit code 1: something is damaged."
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument(
        "-r", "--records", action="store_true", help="also the contents of batches and groups"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only damage")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Dump every file; return the exit code."""
    problems = files = 0
    with Progress(output_waits=arguments.quiet) as progress:
        for path in _files(arguments.files):
            if not arguments.quiet:
                _print_title(path, arguments.format)
            files += 1
            problems += _dump(path, arguments, progress)
    if problems:
        places = count_text(problems, "place")
        raise CommandError(f"damaged: {places} in {count_text(files, 'file')}")
    if arguments.quiet and arguments.format == "text":
        print_text(f"{count_text(files, 'file')} without damage")
    return OK


def _files(paths: list[str]) -> Iterator[str]:
    """Yield the named files, and those in named directories."""
    for path in paths:
        if not os.path.exists(path):
            raise CommandError(f"{path}: {os.strerror(errno.ENOENT)}")
        if not os.path.isdir(path):
            yield path
            continue
        found = 0
        for directory, subdirectories, names in os.walk(path, onerror=_raise):
            subdirectories.sort()
            for name in sorted(names):
                if is_known(name):
                    found += 1
                    yield os.path.join(directory, name)
        if not found:
            raise CommandError(f"{path}: the directory has no file of a log")


def _raise(error: OSError) -> None:
    raise CommandError(f"{error.filename}: {error.strerror}")


def _print_title(path: str, output_format: str) -> None:
    if output_format == "text":
        print_text(f"== {path}")


def _dump(path: str, arguments: argparse.Namespace, progress: Progress) -> int:
    """Print one file; return the number of its problems."""
    printer = _printer(path, arguments)
    problems = 0
    source = Source(LocalFileSystem(read_only=True), path, records=arguments.records)
    try:
        for number, item in enumerate(dump_file(source)):
            if isinstance(item, Row):
                printer.row(item)
            else:
                problems += 1
                printer.flush()
                progress.clear()
                _report(path, item)
            progress.show(f"{path}: {count_text(number, 'row')}")
    except UnknownFile:
        raise CommandError(f"{path}: the type of this file is unknown") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    printer.flush()
    return problems


def _report(path: str, problem: Problem) -> None:
    """Print a problem on standard error, after the rows before it."""
    sys.stdout.flush()
    print_text(f"{path} at byte {problem.position}: {problem.reason}", file=sys.stderr)


class _Quiet:
    """Output without any effect."""

    def row(self, row: Row) -> None:
        """Ignore a row."""

    def flush(self) -> None:
        """Return at once, since no output is buffered."""


class _JsonPrinter:
    """One JSON object a line, with the file's name in it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._topic = _topic_of(path)

    def row(self, row: Row) -> None:
        """Print a row."""
        line = {"file": self._path, "row": row.kind, **self._fields(row)}
        print(json_text(line))

    def flush(self) -> None:
        """Return at once, since no output is buffered."""

    def _fields(self, row: Row) -> dict[str, Any]:
        found = {name: plain(value, name) for name, value in row.fields.items()}
        if row.kind == "record":
            headers = row.fields["headers"]
            found["headers"] = [{"key": key, "value": plain(value)} for key, value in headers]
            meaning = decode_internal(self._topic, row.fields["key"], row.fields["value"])
            if meaning is not None:
                found["meaning"] = meaning
        return found


class _TextPrinter:
    """A table for each run of rows of one kind; records are lines between them."""

    def __init__(self, path: str) -> None:
        self._topic = _topic_of(path)
        self._table: RowPrinter | None = None
        self._kind = ""

    def row(self, row: Row) -> None:
        """Print a row, now or with others of its kind."""
        line = _LINES.get(row.kind)
        if line is not None:
            self.flush()
            print_text(line(row.fields, self._topic))
            return
        cells = _CELLS.get(row.kind, _all_fields)(row.fields)
        if self._table is None or self._kind != row.kind:
            self.flush()
            self._table = RowPrinter([name.upper().replace("_", " ") for name in cells])
            self._kind = row.kind
        self._table.add(list(cells.values()))

    def flush(self) -> None:
        """Print the buffered rows."""
        if self._table is not None:
            self._table.flush()
            self._table = None


def _printer(path: str, arguments: argparse.Namespace) -> _Quiet | _JsonPrinter | _TextPrinter:
    if arguments.quiet:
        return _Quiet()
    return _JsonPrinter(path) if arguments.format == "json" else _TextPrinter(path)


def _topic_of(path: str) -> str:
    directory = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return directory.rpartition("-")[0]


Cells = dict[str, Cell]


def _all_fields(fields: dict[str, Any]) -> Cells:
    return {name: _time_or_cell(name, plain(value, name)) for name, value in fields.items()}


def _time_or_cell(name: str, value: Any) -> Cell:  # noqa: ANN401  any value of a row
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith(("timestamp", "time_ms")):
        return time_text(value)
    if isinstance(value, int):
        return value if value != -1 else None
    return str(value)


def _batch(fields: dict[str, Any]) -> Cells:
    """Return the columns that fit a screen; JSON has all of them."""
    has_producer = fields["producer_id"] >= 0
    flags = [name for name in ("transactional", "control") if fields[name]]
    return {
        "first": fields["base_offset"],
        "last": fields["last_offset"],
        "count": fields["count"],
        "position": fields["position"],
        "size": fields["size"],
        "time": time_text(fields["max_timestamp"]),
        "codec": fields["compression"],
        "producer": fields["producer_id"] if has_producer else None,
        "epoch": fields["producer_epoch"] if has_producer else None,
        "sequence": fields["base_sequence"] if fields["base_sequence"] >= 0 else None,
        "flags": ",".join(flags) or None,
    }


def _record(fields: dict[str, Any], topic: str) -> str:
    meaning = decode_internal(topic, fields["key"], fields["value"])
    when = time_text(fields["timestamp"]) or "-"
    if meaning is not None:
        said = json.dumps(meaning, ensure_ascii=False)
        return f"  offset {fields['offset']}  {when}  {said}"
    headers = "".join(f"  {key}={_short(value)}" for key, value in fields["headers"])
    return (
        f"  offset {fields['offset']}  {when}  "
        f"key {_short(fields['key'])}  value {_short(fields['value'])}{headers}"
    )


def _short(data: bytes | None) -> str:
    """Show bytes as text in quotation marks, or as hex digits; long ones are cut."""
    if data is None:
        return "null"
    try:
        text = data.decode()
        shown = json.dumps(text[:_TEXT_CHARS_MAX], ensure_ascii=False)
        cut = len(text) > _TEXT_CHARS_MAX
    except UnicodeDecodeError:
        shown = f"0x{data[: _TEXT_CHARS_MAX // 2].hex()}"
        cut = len(data) > _TEXT_CHARS_MAX // 2
    return f"{shown}... ({len(data)} bytes)" if cut else shown


def _marker(fields: dict[str, Any], _topic: str) -> str:
    return (
        f"  offset {fields['offset']}  {fields['type']}  "
        f"coordinator epoch {fields['coordinator_epoch']}"
    )


def _entry(fields: dict[str, Any], _topic: str) -> str:
    return (
        f"  partition id {fields['partition_id']}  {fields['kind']}  "
        f"offsets {fields['base_offset']} to {fields['next_offset']}  "
        f"leader epoch {fields['leader_epoch']}  {fields['size']} bytes"
    )


def _rest(fields: dict[str, Any], _topic: str) -> str:
    return f"from byte {fields['position']} on: older groups, or none"


_CELLS: dict[str, Callable[[dict[str, Any]], Cells]] = {"batch": _batch}
_LINES: dict[str, Callable[[dict[str, Any], str], str]] = {
    "record": _record,
    "marker": _marker,
    "entry": _entry,
    "rest": _rest,
}
