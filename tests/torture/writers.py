"""Clients that write in transactions over several partitions."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

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
from tests.torture.client import Client
from tests.torture.sessions import Failed, Over, Session, session_kind
from tests.torture.settings import (
    FENCED_PAUSE_S,
    GROUP,
    LEFT,
    PARTITIONS,
    RIGHT,
    TRANSACTION_TIMEOUT_MS,
)

ABORTS, DAWDLES, TIMES_OUT = 0.15, 0.1, 0.02
"""How many transactions are aborted on purpose, take long, take too long."""
REST_S = 0.04


class Transactions:
    """Transactions under one id: replaces its session when that is over, notes every outcome."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._session: Session | None = None
        self._numbers = itertools.count()

    def value(self) -> str:
        """Return a value that nobody else writes."""
        return f"{self._client.settings.name}.{next(self._numbers)}"

    def ready(self) -> bool:
        """Have a session; False when there is none to be had now."""
        if self._session is None:
            settings = self._client.settings
            kind = session_kind(settings.library)
            try:
                with self._client.watched():
                    self._session = kind(
                        settings.servers,
                        settings.transactional_id,
                        settings.transaction_timeout_ms,
                        settings.login,
                    )
            except (Failed, Over):
                time.sleep(FENCED_PAUSE_S)
                return False
            self._client.journal.new_session()
        return True

    def run(
        self,
        parts: Sequence[Sequence[Write]],
        pauses_s: float = 0,
        reads: Sequence[Read] = (),
        offsets: Mapping[Partition, int] | None = None,
        group: Any = None,
        *,
        aborts: bool = False,
    ) -> bool:
        """Run one transaction that sends `parts` one by one; True when it was committed."""
        session, journal = self._session, self._client.journal
        assert session is not None, "not ready"
        number = journal.begin(TRANSACTION, self._client.settings.transactional_id, reads)
        has_asked = False
        try:
            with self._client.watched():
                session.begin()
                for writes in parts:
                    journal.write(number, writes)
                    journal.acked(number, session.send(writes))
                    time.sleep(pauses_s)
                if offsets is not None:
                    journal.offsets(
                        number, [OffsetCommit(GROUP, *p, o) for p, o in offsets.items()]
                    )
                    session.send_offsets(offsets, group)
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
            self._abort(number, "on purpose", has_asked=False)
        return False

    def _abort(self, number: int, why: str, *, has_asked: bool) -> None:
        assert self._session is not None
        try:
            with self._client.watched():
                self._session.abort()
        except (Failed, Over) as error:
            self._give_up(number, f"{why}, then {error!r}", has_asked=has_asked)
        else:
            # The abort was acknowledged: whatever was asked before, it is decided.
            self._client.journal.finish(number, FAILED, why)

    def _give_up(self, number: int, why: str, *, has_asked: bool) -> None:
        self._client.journal.finish(number, UNKNOWN if has_asked else FAILED, why)
        self.end_session()
        time.sleep(FENCED_PAUSE_S)

    def end_session(self) -> None:
        if self._session is not None:
            with self._client.watched():
                self._session.close()
            self._session = None


def write(client: Client) -> None:
    """Transactions over several partitions of two topics, until told to stop."""
    chance = random.Random(client.settings.seed)
    transactions = Transactions(client)
    places = [(topic, number) for topic in (LEFT, RIGHT) for number in range(PARTITIONS)]
    while not client.stopping:
        if not transactions.ready():
            continue
        parts = [
            [Write(*place, transactions.value()) for place in _chosen(chance, places)]
            for _ in range(chance.randint(1, 3))
        ]
        draw = chance.random()
        pause_s = 0.0
        if draw < TIMES_OUT:
            pause_s = 1.5 * TRANSACTION_TIMEOUT_MS / 1000
        elif draw < DAWDLES:
            pause_s = chance.uniform(0.05, 0.5)
        transactions.run(parts, pause_s, aborts=chance.random() < ABORTS)
        time.sleep(chance.uniform(0, 2 * REST_S))
    transactions.end_session()


def _chosen(chance: random.Random, places: Sequence[Partition]) -> list[Partition]:
    """Return some places, now and then one of them several times."""
    some = chance.sample(places, chance.randint(1, 4))
    return some + [some[0]] * chance.randint(0, 2)
