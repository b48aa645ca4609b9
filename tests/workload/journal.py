"""Events that a client writes down while it works, and the operations that they make.

A process writes each event as one JSON array on a line, by one system call, before what it
announces and after what it reports: the events before kill -9 can be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.storage.runtime.clock import counter_ns
from tests.history.model import (
    FAILED,
    MOVED,
    OK,
    POLL,
    TRANSACTION,
    UNKNOWN,
    History,
    OffsetCommit,
    Operation,
    Partition,
    Read,
    Write,
)

BEGIN, WRITE, ACKED, OFFSETS, ASK, FINISH = "begin", "write", "acked", "offsets", "ask", "finish"

Event = tuple[int, str, str, int, dict[str, Any]]
"""Time in nanoseconds, process, kind, number of the operation, and data."""


class Journal:
    """Events of one client; ``process`` is its present session."""

    def __init__(self, take: Callable[[Event], object], name: str) -> None:
        """``take`` gets each event."""
        self._take = take
        self._name = name
        self._sessions = 0
        self._operations = 0
        self.process = name

    def new_session(self) -> None:
        """Record a restart of a producer or consumer; its order to the previous one is unknown."""
        self._sessions += 1
        self.process = f"{self._name}#{self._sessions}"

    def begin(
        self, kind: str, producer: str = "", reads: Sequence[Read] = (), metadata: str = ""
    ) -> int:
        """Begin an operation that will be finished; return its number."""
        self._operations += 1
        told = {"producer": producer, "reads": reads, "metadata": metadata}
        self._note(BEGIN, self._operations, kind=kind, **told)
        return self._operations

    def write(self, operation: int, writes: Sequence[Write]) -> None:
        """Values that are about to be sent."""
        self._note(WRITE, operation, writes=writes)

    def acked(self, operation: int, writes: Sequence[Write]) -> None:
        """Values that were acknowledged, with their offsets."""
        if writes:
            self._note(ACKED, operation, writes=writes)

    def offsets(self, operation: int, commits: Sequence[OffsetCommit]) -> None:
        """Offsets that are about to be sent with the transaction."""
        self._note(OFFSETS, operation, commits=commits)

    def ask(self, operation: int) -> None:
        """Record that the commit is about to be requested."""
        self._note(ASK, operation)

    def finish(self, operation: int, outcome: str, why: str = "") -> None:
        """Record the outcome that the client knows at the end."""
        self._note(FINISH, operation, outcome=outcome, why=why)

    def poll(self, reads: Sequence[Read], isolation: str, group: str = "") -> None:
        """Note the records of a poll."""
        if reads:
            self._note(POLL, 0, reads=reads, isolation=isolation, group=group)

    def moved(self, places: Iterable[Partition], reason: str, group: str = "") -> None:
        """Note partitions that came or went, or whose offset a consumer changes."""
        self._note(MOVED, 0, places=sorted(places), reason=reason, group=group)

    def _note(self, event: str, operation: int, **data: Any) -> None:
        told = {k: v for k, v in data.items() if v}
        self._take((counter_ns(), self.process, event, operation, told))


def file_journal(path: str, name: str) -> Journal:
    """Return a journal in a file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(event: Event) -> None:
        os.write(file, json.dumps(event, separators=(",", ":")).encode() + b"\n")

    return Journal(write, name)


def read_journals(paths: Iterable[Path]) -> History:
    """Return the operations of all clients in the order of their starts."""
    return in_order(map(_read, paths))


def in_order(journals: Iterable[Iterable[Event]]) -> History:
    """Return the operations of several journals in the order of their starts."""
    history = [operation for events in journals for operation in operations(events)]
    # Stable: operations of one process keep their order.
    return sorted(history, key=lambda operation: operation.invoked_ns)


def _read(path: Path) -> Iterable[Event]:
    # The last line of a client that was killed may be torn.
    whole, _, _ = path.read_text().rpartition("\n")
    return map(json.loads, whole.splitlines())


def operations(events: Iterable[Event]) -> list[Operation]:
    """Return the operations that the events of one client make."""
    found = Operations()
    for event in events:
        found.take(event)
    return found.found


class Operations:
    """The operations of one client, event by event."""

    def __init__(self) -> None:
        self.found: list[Operation] = []
        self._numbers: dict[int, int] = {}

    def take(self, event: Event) -> None:
        at_ns, process, kind, number, data = event
        if kind == BEGIN:
            self._numbers[number] = len(self.found)
            self.found.append(_begun(at_ns, process, data))
        elif kind in {POLL, MOVED}:
            self.found.append(_observed(at_ns, process, kind, data))
        else:
            index = self._numbers[number]
            self.found[index] = _continued(self.found[index], at_ns, kind, data)


def _begun(at_ns: int, process: str, data: dict[str, Any]) -> Operation:
    """Return an operation as it is without a further event: no client asked for its commit."""
    return Operation(
        data["kind"],
        process,
        FAILED if data["kind"] == TRANSACTION else UNKNOWN,
        at_ns,
        producer=data.get("producer", ""),
        reads=tuple(Read(*each) for each in data.get("reads", ())),
        metadata=data.get("metadata", ""),
    )


def _observed(at_ns: int, process: str, event: str, data: dict[str, Any]) -> Operation:
    told = Operation(event, process, OK, at_ns, completed_ns=at_ns, group=data.get("group", ""))
    if event == MOVED:
        places = tuple((topic, partition) for topic, partition in data.get("places", ()))
        return replace(told, moved=places, reason=data["reason"])
    reads = tuple(Read(*each) for each in data["reads"])
    return replace(told, isolation=data["isolation"], reads=reads)


def _continued(operation: Operation, at_ns: int, event: str, data: dict[str, Any]) -> Operation:
    if event == WRITE:
        added = tuple(Write(*each) for each in data["writes"])
        return replace(operation, writes=operation.writes + added)
    if event == ACKED:
        known = {(w.place, w.value): w for w in (Write(*each) for each in data["writes"])}
        writes = tuple(known.get((w.place, w.value), w) for w in operation.writes)
        return replace(operation, writes=writes)
    if event == OFFSETS:
        return replace(operation, commits=tuple(OffsetCommit(*each) for each in data["commits"]))
    if event == ASK:
        return replace(operation, asked_ns=at_ns, outcome=UNKNOWN)
    outcome, why = data["outcome"], data.get("why", "")
    # An operation with an unknown outcome has no time of its end.
    completed_ns = at_ns if outcome != UNKNOWN else -1
    return replace(operation, outcome=outcome, reason=why, completed_ns=completed_ns)
