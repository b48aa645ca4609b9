"""Performers of transactions: with records that were drawn, or with an output for each input."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.storage.runtime.clock import sleep
from tests.history.model import (
    FAILED,
    OK,
    TRANSACTION,
    UNKNOWN,
    OffsetCommit,
    Partition,
    Read,
    Write,
)
from tests.workload.drivers import Failed, Input, Over, Session, driver, session_kind
from tests.workload.operations import Transact, Transform
from tests.workload.settings import FENCED_PAUSE_S

if TYPE_CHECKING:
    from tests.workload.client import Client

RETRY_S = 0.1
ON_PURPOSE = "on purpose"
"""Reason of an abort that the plan asked for."""


class Transactions:
    """Transactions of one id; opens a new session when the present one has ended."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._session: Session | None = None
        self._id = client.settings.transactional_id
        self._abandoned = 0

    def perform(self, operation: Transact) -> None:
        """Run a transaction that was drawn, if a session can be opened now."""
        if not self.ready():
            return
        if operation.abandons:
            self._abandon(operation)
        else:
            self.run(operation.parts, operation.pause_s, aborts=operation.aborts)

    def _abandon(self, operation: Transact) -> None:
        """Run a transaction that stays open: no record of it may ever be committed."""
        session, journal = self._session, self._client.journal
        assert session is not None, "not ready"
        number = journal.begin(TRANSACTION, self._id)
        try:
            with self._client.watched():
                session.begin()
                for writes in operation.parts:
                    journal.write(number, writes)
                    journal.acked(number, session.send(writes))
        except (Failed, Over) as error:
            journal.finish(number, FAILED, repr(error))
        else:
            journal.finish(number, FAILED, ON_PURPOSE)
        self.close()
        self._abandoned += 1
        self._id = f"{self._client.settings.transactional_id}-{self._abandoned}"

    def ready(self) -> bool:
        """Open a session if there is none; return whether there is one now."""
        if self._session is None:
            settings = self._client.settings
            kind = session_kind(settings.library)
            try:
                with self._client.watched():
                    self._session = kind(
                        settings.servers,
                        self._id,
                        settings.transaction_timeout_ms,
                        settings.login,
                    )
            except (Failed, Over):
                sleep(FENCED_PAUSE_S)
                return False
            self._client.journal.new_session()
        return True

    def run(
        self,
        parts: Sequence[Sequence[Write]],
        pause_s: float = 0,
        reads: Sequence[Read] = (),
        offsets: Mapping[Partition, int] | None = None,
        group: tuple[str, Any] = ("", None),
        *,
        aborts: bool = False,
    ) -> bool:
        """Run one transaction that sends ``parts`` one by one; return whether it was committed.

        ``group``: the name of the group of ``offsets``, and what its member says that it is.
        """
        session, journal = self._session, self._client.journal
        assert session is not None, "not ready"
        number = journal.begin(TRANSACTION, self._id, reads)
        has_asked = False
        try:
            with self._client.watched():
                session.begin()
                for writes in parts:
                    journal.write(number, writes)
                    journal.acked(number, session.send(writes))
                    sleep(pause_s)
                if offsets is not None:
                    commits = [OffsetCommit(group[0], *p, o) for p, o in offsets.items()]
                    journal.offsets(number, commits)
                    session.send_offsets(offsets, group[1])
                if not aborts:
                    journal.ask(number)
                    has_asked = True
                    session.commit()
        except Failed as failed:
            self._abort(number, repr(failed), has_asked=has_asked)
        except Over as over:
            self._give_up(number, repr(over), has_asked=has_asked)
        else:
            if not aborts:
                journal.finish(number, OK)
                return True
            self._abort(number, ON_PURPOSE, has_asked=False)
        return False

    def _abort(self, number: int, why: str, *, has_asked: bool) -> None:
        assert self._session is not None
        try:
            with self._client.watched():
                self._session.abort()
        except (Failed, Over) as error:
            self._give_up(number, f"{why}, then {error!r}", has_asked=has_asked)
        else:
            # The acknowledged abort decides the transaction, also after a request to commit it.
            self._client.journal.finish(number, FAILED, why)

    def _give_up(self, number: int, why: str, *, has_asked: bool) -> None:
        self._client.journal.finish(number, UNKNOWN if has_asked else FAILED, why)
        self.close()
        sleep(FENCED_PAUSE_S)

    def close(self) -> None:
        if self._session is not None:
            with self._client.watched():
                self._session.close()
            self._session = None


class Transforms:
    """A member of a group that consumes, transforms, and produces with its offsets."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._transactions = Transactions(client)
        self._source: Input | None = None
        self._numbers = itertools.count()

    def perform(self, operation: Transform) -> None:
        """Poll once, and run the transaction for what came; else go to what is committed."""
        source = self._input()
        if source is None:
            return
        # The member's identity before the poll: it fences a member that has left the group, also
        # if its library does not know that yet. Records that came while partitions moved may be
        # from before; they are left, and read again.
        group = source.group, source.metadata()
        source.was_moved = False
        with self._client.watched():
            reads = source.poll()
        done = not source.was_moved
        if done and reads:
            # A client that is paused here has no transaction yet that its timeout could end: only
            # its generation says that another member has its partitions now (O5).
            sleep(operation.think_s)
            done = self._run(operation, reads, group)
        while not done and not self._client.is_stopping:
            # A new session ends the transaction that the one before left open; then the committed
            # offsets are known.
            done = self._transactions.ready() and self._rewound(source)

    def close(self) -> None:
        if self._source is not None:
            with self._client.watched():
                self._source.close()
        self._transactions.close()

    def _input(self) -> Input | None:
        while self._source is None and not self._client.is_stopping:
            if self._transactions.ready():
                settings = self._client.settings
                with self._client.watched():
                    made = driver(settings.consumer).Input(settings, self._client.journal)
                self._source = made
        return self._source

    def _run(self, operation: Transform, reads: Sequence[Read], group: tuple[str, Any]) -> bool:
        outputs = [
            Write(*target, f"{self._client.settings.name}.{next(self._numbers)}", source=read.value)
            for read, target in zip(reads, itertools.cycle(operation.targets), strict=False)
        ]
        offsets = {read.place: read.offset + 1 for read in reads}
        return self._transactions.run(
            [outputs], operation.pause_s, reads, offsets, group, aborts=operation.aborts
        )

    def _rewound(self, source: Input) -> bool:
        with self._client.watched():
            if source.rewind():
                return True
            # During a rebalance of its group it cannot seek, nor does it notice the rebalance
            # without a poll. The records of this poll will be read again.
            source.poll()
        sleep(RETRY_S)
        return False
