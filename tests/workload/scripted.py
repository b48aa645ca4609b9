"""Clients by wire for scripts: each does one thing when its test calls it, and notes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from barnabas.storage.runtime.clock import counter_ns
from tests.history import checker
from tests.history.anomalies import Report
from tests.history.model import (
    COMMITTED,
    FAILED,
    MOVED,
    NOT_KNOWN,
    OK,
    SEEK,
    SEND,
    TRANSACTION,
    History,
    OffsetCommit,
    Operation,
    Read,
    Write,
)
from tests.workload.drivers import Failed
from tests.workload.drivers.wire import MOST_INPUTS, Look, Sender
from tests.workload.judge import read_at_the_end
from tests.workload.routing import Led
from tests.workload.settings import Settings
from tests.workload.wire_client import committed_offset, read
from tests.workload.wire_transactions import Transactional

Addresses = Sequence[tuple[str, int]]


def servers_of(addresses: Iterable[tuple[str, int]]) -> str:
    """Return addresses as bootstrap servers."""
    return ",".join(f"{host}:{port}" for host, port in addresses)


class Writer(Sender):
    """An idempotent producer of one partition."""

    def __init__(self, name: str, addresses: Addresses, seed: int, place: Led) -> None:
        super().__init__(Settings("sender", "wire", name, servers_of(addresses), "", seed))
        self.place = place
        self.done = 0
        self.history: list[Operation] = []

    def once(self) -> None:
        """Write a record."""
        begun_ns = counter_ns()
        (write,), _ = self.send([Write(*self.place, f"{self.name}-{self.done}")])
        self.done += 1
        noted = Operation(SEND, self.name, OK, begun_ns, completed_ns=counter_ns(), writes=(write,))
        self.history.append(noted)


class Scripted(Transactional):
    """A producer with a transactional id."""

    begun_ns = NOT_KNOWN

    def __init__(self, name: str, addresses: Addresses, seed: int, version: int) -> None:
        super().__init__(name, addresses, seed, version)
        self.history: list[Operation] = []
        self.writes: list[Write] = []

    def begin(self) -> None:
        """Get an epoch, which ends a transaction that is open; begin another one."""
        self.init()
        self.begun_ns = counter_ns()

    def write_one(self, place: Led, value: str, source: str = "") -> None:
        """Write a record in the transaction, and note it."""
        self.writes.append(Write(*place, value, source=source))
        offset = self.write(place, value)
        self.writes[-1] = self.writes[-1]._replace(offset=offset)

    def note(self, outcome: str, **more: Any) -> None:
        """Note what it knows of its transaction, and whether it has sent a commit of it."""
        now_ns = counter_ns()
        asked_ns = NOT_KNOWN if outcome == FAILED else now_ns
        told = Operation(TRANSACTION, self.name, outcome, self.begun_ns, asked_ns, now_ns)
        self.history.append(replace(told, producer=self.name, writes=tuple(self.writes), **more))


class Transformer(Scripted):
    """A group without members, which transforms a partition into another one."""

    def __init__(
        self, name: str, addresses: Addresses, seed: int, version: int, source: Led, target: Led
    ) -> None:
        super().__init__(name, addresses, seed, version)
        self.source = source
        self.target = target
        self.group = f"group-{name}"
        self.commits = True
        """Whether the next transaction is to be committed."""
        self.done = 0

    def once(self) -> None:
        """Transform the records from the committed offset on, in one transaction."""
        if self.producer_id == NOT_KNOWN:
            self.init()
        self.begun_ns, self.writes = counter_ns(), []
        begin = max(committed_offset(self, self.group, self.source), 0)
        seen, end = read(self, self.source, begin, COMMITTED)
        if not seen:
            return
        if len(seen) > MOST_INPUTS:
            seen = seen[:MOST_INPUTS]
            end = seen[-1].offset + 1
        reads = [Read(*self.source, each.offset, (each.value or b"").decode()) for each in seen]
        commit = self.commits
        try:
            self.transform(reads, end)
        except Failed:
            commit = False
        self.end(commit=commit)
        self.done += 1
        commits = (OffsetCommit(self.group, *self.source, end),)
        self.note(OK if commit else FAILED, reads=tuple(reads), commits=commits)
        if not commit:
            self.history.append(Operation(MOVED, self.name, moved=(self.source,), reason=SEEK))

    def transform(self, reads: Sequence[Read], end: int) -> None:
        """Write a record for each of ``reads``, and commit the offset behind them."""
        self.add(self.target)
        for each in reads:
            self.write_one(self.target, f"{self.name}-{self.done}-of-{each.value}", each.value)
        self.commit_offset(self.group, self.source, end)


Client = Writer | Scripted


def judged(
    addresses: Addresses, clients: Sequence[Client], places: Sequence[Led]
) -> tuple[History, Report]:
    """Read everything; return the history of all clients, and what is wrong with it."""
    history = [each for client in clients for each in client.history]
    groups = {each.group: [each.source] for each in clients if isinstance(each, Transformer)}
    look = Look(servers_of(addresses))
    history += read_at_the_end(look, "final", places, groups)
    look.close()
    return history, checker.check(history)
