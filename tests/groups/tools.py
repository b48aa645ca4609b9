"""Output of Apache Kafka's VerifiableConsumer and console consumer, as operations of a member."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from barnabas.storage.runtime.clock import counter_ns
from tests.history.model import (
    ASSIGNED,
    COMMIT,
    LOST,
    MOVED,
    NOT_KNOWN,
    OK,
    POLL,
    UNKNOWN,
    OffsetCommit,
    Operation,
    Read,
)
from tests.workload.journal import Operations

CLOCK_NS = counter_ns() - time.time_ns()
"""Difference of the clock of a history and the time of day."""
PRECISION_NS = 1_000_000


class Source(Protocol):
    """Operations of a member, from the lines of its output."""

    found: list[Operation]

    def take(self, line: str) -> None: ...


class Journalled(Operations):
    """A member that writes a journal."""

    def __init__(self, _name: str, _group: str) -> None:
        super().__init__()

    def take(self, line: str) -> None:
        super().take(json.loads(line))


class Verifiable:
    """A VerifiableConsumer; its clock has milliseconds."""

    def __init__(self, name: str, group: str) -> None:
        self.found: list[Operation] = []
        self._name = name
        self._group = group

    def take(self, line: str) -> None:
        if line.startswith("{"):
            self.found += self._operations(json.loads(line))

    def _operations(self, said: dict[str, Any]) -> Iterator[Operation]:
        at_ns = said["timestamp"] * PRECISION_NS + CLOCK_NS
        times = {"invoked_ns": at_ns, "completed_ns": at_ns, "group": self._group}
        match said["name"]:
            case "partitions_assigned" | "partitions_revoked" as event:
                # The tool does not tell lost partitions from revoked ones.
                reason = ASSIGNED if event.endswith("assigned") else LOST
                moved = tuple((each["topic"], each["partition"]) for each in said["partitions"])
                yield Operation(MOVED, self._name, OK, **times, moved=moved, reason=reason)
            case "record_data":
                read = Read(said["topic"], said["partition"], said["offset"], said["value"])
                yield Operation(POLL, self._name, OK, **times, reads=(read,))
            case "offsets_committed":
                commits = tuple(
                    OffsetCommit(self._group, o["topic"], o["partition"], o["offset"])
                    for o in said["offsets"]
                )
                # It may have happened up to a millisecond later than the time says.
                outcome = OK if said["success"] else UNKNOWN
                end_ns = at_ns + PRECISION_NS if said["success"] else NOT_KNOWN
                yield Operation(
                    COMMIT,
                    self._name,
                    outcome,
                    at_ns,
                    completed_ns=end_ns,
                    commits=commits,
                    reason=said.get("error", ""),
                )


_CONSOLE_LINE = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(\S+)\t(.*)")


class Console:
    """A console consumer, which prints no times; the key of a record is the name of its topic."""

    def __init__(self, name: str, group: str) -> None:
        self.found: list[Operation] = []
        self._name = name
        self._group = group

    def take(self, line: str) -> None:
        if found := _CONSOLE_LINE.fullmatch(line):
            partition, offset, topic, value = found.groups()
            read = Read(topic, int(partition), int(offset), value)
            self.found.append(
                Operation(POLL, self._name, invoked_ns=NOT_KNOWN, reads=(read,), group=self._group)
            )


class Tail:
    """The operations in a growing file, whole lines only."""

    def __init__(self, path: Path, source: Source) -> None:
        self._path = path
        self._source = source
        self._read_bytes = 0

    def operations(self) -> list[Operation]:
        """Return all operations up to now; the list grows in place."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                whole, newline, _rest = file.read().rpartition(b"\n")
            self._read_bytes += len(whole) + len(newline)
            for line in whole.decode(errors="replace").splitlines():
                self._source.take(line)
        return self._source.found
