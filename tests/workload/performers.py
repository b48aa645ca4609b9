"""Performers of the operations: each kind has one class; its object lives as long as its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from barnabas.storage.runtime.clock import sleep
from tests.history.model import COMMIT, LOOK, OK, SEND, UNKNOWN, OffsetCommit
from tests.workload.drivers import Member, driver
from tests.workload.operations import (
    CommitOffset,
    Consume,
    Leave,
    Poll,
    Rest,
    Send,
    Transact,
    Transform,
)
from tests.workload.progress import Progress
from tests.workload.transactions import Transactions, Transforms

if TYPE_CHECKING:
    from tests.workload.client import Client


class Performer(Protocol):
    """Performs operations of one kind."""

    def __init__(self, client: Client) -> None: ...

    def perform(self, operation: Any) -> None: ...

    def close(self) -> None: ...


class Sends:
    """An idempotent producer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sender = driver(client.settings.library).Sender(client.settings)
        client.journal.new_session()

    def perform(self, operation: Send) -> None:
        journal = self._client.journal
        number = journal.begin(SEND)
        journal.write(number, operation.writes)
        acked, error = self._sender.send(operation.writes, operation.pad_bytes)
        journal.acked(number, acked)
        is_whole = error is None and len(acked) == len(operation.writes)
        journal.finish(number, OK if is_whole else UNKNOWN, "" if error is None else str(error))
        if error is not None:
            # An idempotent producer that lost a record cannot continue.
            raise error

    def close(self) -> None:
        self._sender.close()


class Polls:
    """A reader of all partitions from their beginning."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader = driver(client.settings.library).Reader(client.settings)
        client.journal.new_session()

    def perform(self, _operation: Poll) -> None:
        self._client.journal.poll(self._reader.poll(), self._client.settings.isolation)

    def close(self) -> None:
        self._reader.close()


class OffsetCommits:
    """A group without members."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._offsets = driver(client.settings.library).Offsets(client.settings)
        client.journal.new_session()

    def perform(self, operation: CommitOffset) -> None:
        journal, group, place = self._client.journal, operation.group, operation.place
        number = journal.begin(COMMIT)
        journal.offsets(number, [OffsetCommit(group, *place, operation.offset)])
        self._offsets.commit(group, place, operation.offset)
        journal.finish(number, OK)
        number = journal.begin(LOOK)
        found = self._offsets.committed(group, place)
        journal.offsets(number, [OffsetCommit(group, *place, found)])
        journal.finish(number, OK)

    def close(self) -> None:
        self._offsets.close()


class Consumes:
    """A member of a group."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._progress = Progress(client.settings, client.journal)
        self._member: Member | None = None

    def perform(self, operation: Consume | Leave) -> None:
        if isinstance(operation, Leave):
            self.close()
            return
        if self._member is None:
            settings = self._client.settings
            kind = driver(f"{settings.library}_member").Member
            self._member = kind(settings, self._progress)
        self._progress.read(self._member.poll())
        if self._progress.is_due(operation):
            self._member.commit()

    def close(self) -> None:
        """Commit what was read, and leave the group."""
        if self._member is not None:
            self._member.commit()
            self._member.close()
            self._member = None


class Rests:
    """Time between operations."""

    def __init__(self, client: Client) -> None:
        pass

    def perform(self, operation: Rest) -> None:
        sleep(operation.seconds)

    def close(self) -> None:
        pass


PERFORMERS: dict[type, type[Performer]] = {
    CommitOffset: OffsetCommits,
    Consume: Consumes,
    Leave: Consumes,
    Poll: Polls,
    Rest: Rests,
    Send: Sends,
    Transact: Transactions,
    Transform: Transforms,
}
