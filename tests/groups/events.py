"""What a member of a group saw and did, in the order of its own file.

Members of the Python libraries write these events themselves, one JSON array on a line; Kafka's
VerifiableConsumer and console consumer print something else, which is read into the same events.
A line is written by one system call: what a member did before kill -9 is there to be read.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
READ = "read"
COMMITTING, COMMITTED, REFUSED, UNSURE = "committing", "committed", "refused", "unsure"
UNTIMED_NS = -1

Partition = tuple[str, int]


class Event(NamedTuple):
    """Something a member saw or did."""

    at_ns: int
    """Time of day; UNTIMED_NS where a tool does not tell."""
    kind: str
    partitions: tuple[Partition, ...] = ()
    """ASSIGNED, REVOKED, LOST."""
    records: tuple[tuple[str, int, int, str], ...] = ()
    """READ: topic, partition, offset, value."""
    offsets: tuple[tuple[str, int, int], ...] = ()
    """COMMITTING, and COMMITTED where a tool tells only that."""
    commit: str = ""
    """Names the attempt, and is the committed metadata; empty for tools."""
    error: str = ""


class Journal:
    """Where a member writes its events."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, kind: str, data: Any, commit: str = "", error: str = "") -> None:
        """Append one event."""
        line = json.dumps([time.time_ns(), kind, data, commit, error])
        os.write(self._file, line.encode() + b"\n")


class Reader(Protocol):
    """Turns one line of a member's output into events."""

    def __call__(self, line: str) -> Iterator[Event]: ...


def read_journal(line: str) -> Iterator[Event]:
    """Read a line of `Journal`."""
    at_ns, kind, data, commit, error = json.loads(line)
    items = tuple(tuple(each) for each in data)
    if kind in {ASSIGNED, REVOKED, LOST}:
        yield Event(at_ns, kind, partitions=items)
    elif kind == READ:
        yield Event(at_ns, kind, records=items)
    else:
        yield Event(at_ns, kind, offsets=items, commit=commit, error=error)


def read_verifiable(line: str) -> Iterator[Event]:
    """Read a line of Kafka's VerifiableConsumer; its clock has milliseconds."""
    if not line.startswith("{"):
        return
    said = json.loads(line)
    start_ns = said["timestamp"] * 1_000_000
    match said["name"]:
        case "partitions_assigned" | "partitions_revoked" as name:
            places = tuple((each["topic"], each["partition"]) for each in said["partitions"])
            yield Event(start_ns, name.removeprefix("partitions_"), partitions=places)
        case "record_data":
            record = (said["topic"], said["partition"], said["offset"], said["value"])
            yield Event(start_ns, READ, records=(record,))
        case "offsets_committed":
            places = tuple((o["topic"], o["partition"], o["offset"]) for o in said["offsets"])
            if said["success"]:
                # It may have happened up to a millisecond later than the time says.
                yield Event(start_ns + 1_000_000, COMMITTED, offsets=places)
            else:
                yield Event(start_ns, UNSURE, offsets=places, error=said.get("error", ""))


_CONSOLE_LINE = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(\S+)\t(.*)")


def read_console(line: str) -> Iterator[Event]:
    """Read a line of the console consumer; the record's key is the name of its topic."""
    if found := _CONSOLE_LINE.fullmatch(line):
        partition, offset, topic, value = found.groups()
        yield Event(UNTIMED_NS, READ, records=((topic, int(partition), int(offset), value),))


class Tail:
    """The events of a growing file, whole lines only."""

    def __init__(self, path: Path, reader: Reader) -> None:
        self._path = path
        self._reader = reader
        self._read_bytes = 0
        self._events: list[Event] = []

    def events(self) -> list[Event]:
        """Return all events up to now; the list grows in place."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                whole, newline, _rest = file.read().rpartition(b"\n")
            self._read_bytes += len(whole) + len(newline)
            for line in whole.decode(errors="replace").splitlines():
                self._events.extend(self._reader(line))
        return self._events
