"""A history: the requests, responses and reads of every client, with their times.

One operation is one transaction, or one poll, send or commit of offsets outside of transactions.
Every written value is written once, so that a read names its writer. All times are of one clock.
A history also has a coordinator's committed offsets (LOOK) and those of their log (LOGGED), members
that were killed or paused (HARMED), times without a broker (OUTAGE), and times in which a member
must not notice anything (UNDISTURBED).

The outcome of a transaction is what its client knows for sure:

* OK: the commit was acknowledged.
* FAILED: the abort was acknowledged, or no commit was requested (a client that was killed
  before). A `read_committed` reader must never see any of it.
* UNKNOWN: the commit was requested, and its response is missing or unclear: all or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

TRANSACTION, SEND, POLL, MOVED, END = "transaction", "send", "poll", "moved", "end"
COMMIT, LOOK, LOGGED = "commit", "look", "logged"
HARMED, OUTAGE, UNDISTURBED = "harmed", "outage", "undisturbed"
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
REBALANCE, SEEK = "rebalance", "seek"
ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
NOT_KNOWN = -1

Partition = tuple[str, int]


class Write(NamedTuple):
    """A value that was sent; with its offset when the broker acknowledged it with one."""

    topic: str
    partition: int
    value: str
    offset: int = NOT_KNOWN
    source: str = ""
    """The value that was read and became this one: consume, transform, produce."""

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


class Read(NamedTuple):
    """A value that a consumer was given."""

    topic: str
    partition: int
    offset: int
    value: str

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


class OffsetCommit(NamedTuple):
    """An offset of a group: sent in a transaction, or what the coordinator says at the end."""

    group: str
    topic: str
    partition: int
    offset: int

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


class LoggedCommit(NamedTuple):
    """A record about an offset in ``__consumer_offsets``."""

    group: str
    topic: str
    partition: int
    offset: int
    """Committed offset, or NOT_KNOWN for a tombstone."""
    metadata: str = ""

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


class PartitionEnd(NamedTuple):
    """The end of a partition after all clients had stopped."""

    topic: str
    partition: int
    stable: int
    high_watermark: int

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


@dataclass(frozen=True)
class Operation:
    """One operation of one process; a process is one session of a producer or consumer."""

    kind: str
    process: str
    outcome: str = OK
    invoked_ns: int = 0
    asked_ns: int = NOT_KNOWN
    """TRANSACTION: the time of the request to commit."""
    completed_ns: int = NOT_KNOWN
    """The time of the end, unknown for an operation that never ended."""
    producer: str = ""
    """TRANSACTION: its transactional.id."""
    isolation: str = COMMITTED
    writes: tuple[Write, ...] = ()
    """In the order in which they were sent."""
    reads: tuple[Read, ...] = ()
    """In the order in which they were given."""
    commits: tuple[OffsetCommit, ...] = ()
    """Offsets that a TRANSACTION or a COMMIT sent, or that a LOOK, a LOGGED or an END found."""
    moved: tuple[Partition, ...] = ()
    """MOVED: partitions whose next record may be any."""
    reason: str = ""
    """MOVED: REBALANCE, SEEK, ASSIGNED, REVOKED or LOST. Else a client's words about a failure."""
    group: str = ""
    """POLL, MOVED: group of the member."""
    metadata: str = ""
    """COMMIT: name of the attempt, which is committed with the offsets."""
    groups: tuple[str, ...] = ()
    """LOOK, LOGGED: groups of which ``commits`` has all offsets."""
    logged: tuple[LoggedCommit, ...] = ()
    """LOGGED: records of ``__consumer_offsets``, each partition's in its order."""
    ends: tuple[PartitionEnd, ...] = ()
    """END."""
    readers: tuple[str, ...] = ()
    """END: processes that read every partition from its beginning to these ends, just before."""

    def described(self) -> str:
        """Return the operation for people, short."""
        times = f"{self.invoked_ns / 1e9:.3f}"
        if self.completed_ns != NOT_KNOWN:
            times += f"-{self.completed_ns / 1e9:.3f}"
        identity = f" of {self.producer}" if self.producer else ""
        parts = [f"{self.kind} {self.process}{identity} {self.outcome} at {times} s"]
        for name, items in (
            ("wrote", [f"{w.value}>{w.topic}-{w.partition}@{w.offset}" for w in self.writes]),
            ("read", [f"{r.value}<{r.topic}-{r.partition}@{r.offset}" for r in self.reads]),
            ("commits", [f"{c.group}:{c.topic}-{c.partition}={c.offset}" for c in self.commits]),
            ("moved", [f"{topic}-{number}" for topic, number in self.moved]),
        ):
            if items:
                rest = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
                parts.append(f"{name} {' '.join(items[:SHOWN])}{rest}")
        if self.reason:
            parts.append(f"({self.reason[:200]})")
        return ", ".join(parts)


SHOWN = 8
History = list[Operation]

_TUPLES: dict[str, Any] = {
    "writes": Write,
    "reads": Read,
    "commits": OffsetCommit,
    "ends": PartitionEnd,
    "logged": LoggedCommit,
}
_DEFAULTS = {each.name: each.default for each in fields(Operation)}


def as_of(history: Iterable[Operation], at_ns: int) -> Iterator[Operation]:
    """Yield a history as of a time: the outcome of later operations is unknown.

    Only a transaction that was aborted later must not be read at that time either.
    """
    for operation in history:
        if NOT_KNOWN != operation.completed_ns <= at_ns:
            yield operation
        elif operation.kind in {TRANSACTION, SEND, COMMIT}:
            yield replace(
                operation,
                outcome=FAILED if operation.outcome == FAILED else UNKNOWN,
                completed_ns=NOT_KNOWN,
                reads=operation.reads if operation.invoked_ns <= at_ns else (),
                writes=tuple(write._replace(offset=NOT_KNOWN) for write in operation.writes),
            )


def save(history: Iterable[Operation], path: Path) -> None:
    """Write a history as JSON, one operation on a line."""
    with path.open("w") as file:
        for operation in history:
            told = {k: v for k, v in asdict(operation).items() if v != _DEFAULTS[k]}
            file.write(json.dumps(told, separators=(",", ":")) + "\n")


def load(path: Path) -> History:
    """Read the file of `save`; raise ValueError naming the line that is not an operation."""
    return list(_parsed(path))


def _parsed(path: Path) -> Iterator[Operation]:
    with path.open() as file:
        for number, line in enumerate(file, 1):
            try:
                told = json.loads(line)
                for name, kind in _TUPLES.items():
                    if name in told:
                        told[name] = tuple(kind(*each) for each in told[name])
                for name in ("readers", "groups"):
                    if name in told:
                        told[name] = tuple(told[name])
                if "moved" in told:
                    told["moved"] = tuple((topic, place) for topic, place in told["moved"])
                yield Operation(**told)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number}: not an operation: {error}") from error
