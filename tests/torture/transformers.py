"""Members of a group that consume, transform, produce, and commit their offsets in transactions."""

from __future__ import annotations

import importlib
import random
import time
from typing import Any, Protocol

from tests.history.model import Read, Write
from tests.torture.client import Client
from tests.torture.settings import OUT, PARTITIONS
from tests.torture.writers import Transactions

SESSION_MS = 3000
MOST_RECORDS = 40
POLL_S = 0.2
RETRY_S = 0.1
MOST_THINKING_S = 0.3
ABORTS, DAWDLES = 0.1, 0.05


class Input(Protocol):
    """A member of the group that says what it was given and who it is."""

    was_moved: bool
    """Whether partitions came or went since somebody last looked."""

    def __init__(self, client: Client) -> None: ...

    def poll(self) -> list[Read]: ...

    def metadata(self) -> Any:
        """Return what fences a member that is none any more (KIP-447)."""

    def rewind(self) -> bool:
        """Go to what is committed; False when that cannot be known now."""

    def close(self) -> None: ...


def session_ms(client: Client) -> int:
    """Return the session of a member: longer where nothing but its end is to put it out."""
    return max(SESSION_MS, client.settings.transaction_timeout_ms // 2)


def _input_kind(library: str) -> type[Input]:
    """Return the members of a library, the only one that is imported."""
    kind: type[Input] = importlib.import_module(f"tests.torture.input_{library}").Input
    return kind


def transform(client: Client) -> None:
    """Read `left`, write one record to `out` for each, until told to stop."""
    chance = random.Random(client.settings.seed)
    transactions = Transactions(client)
    while not transactions.ready():
        if client.stopping:
            return
    with client.watched():
        source = _input_kind(client.settings.consumer)(client)
    while not client.stopping:
        # Who it was before it was given anything: a member that is none any more is then fenced,
        # whatever its library has learnt meanwhile. What came while partitions moved may be from
        # before; it is left, and read again.
        group = source.metadata()
        source.was_moved = False
        with client.watched():
            reads = source.poll()
        done = not source.was_moved
        if done and reads:
            # Who is paused here has no transaction yet that its timeout could end: only its
            # generation tells that somebody else has its partitions now (O5).
            time.sleep(chance.uniform(0, MOST_THINKING_S))
            done = _transformed(transactions, chance, reads, group)
        while not done and not client.stopping:
            # A new session ends what the one before left open; then is committed what is committed.
            done = transactions.ready() and _rewound(client, source)
    with client.watched():
        source.close()
    transactions.end_session()


def _transformed(
    transactions: Transactions, chance: random.Random, reads: list[Read], group: Any
) -> bool:
    outputs = [
        Write(OUT, chance.randrange(PARTITIONS), transactions.value(), source=read.value)
        for read in reads
    ]
    offsets = {read.place: read.offset + 1 for read in reads}
    pause_s = chance.uniform(0.05, 0.5) if chance.random() < DAWDLES else 0.0
    aborts = chance.random() < ABORTS
    return transactions.run([outputs], pause_s, reads, offsets, group, aborts=aborts)


def _rewound(client: Client, source: Input) -> bool:
    with client.watched():
        if source.rewind():
            return True
        # While its group is rebalanced it cannot go anywhere, nor does it hear of that: what it is
        # given here it will be given again.
        source.poll()
    time.sleep(RETRY_S)
    return False
