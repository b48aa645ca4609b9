"""The states and commands of table.txt, made of the coordinator's own commands.

``STATES`` brings a transactional id into a state by commands to the pure machine, a broker, or
Apache Kafka. ``command_of`` makes the command that a line of the table names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    Expire,
    InitProducer,
    Outcome,
    TimerExpired,
    VerifyPartitions,
)
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    LARGEST_CLIENT_EPOCH,
    NEVER_MS,
    TRANSACTIONS_V2,
    State,
    TopicPartition,
    Transaction,
    timeout_timer,
)

TIMEOUT_MS = 60_000
P0 = TopicPartition("a", 0)
P1 = TopicPartition("a", 1)
COMMIT, ABORT = True, False
FOREIGN = 999_999

Producer = tuple[int, int]


class Asked(Protocol):
    """The target of the commands that build a state."""

    key: str

    def do(self, command: Any) -> Outcome:
        """Decide a command of a client, a timer or the housekeeping."""

    def withhold(self) -> None:
        """Withhold all markers from now on."""

    def plant(self, transaction: Transaction) -> None:
        """Start with the state that the transactional id had earlier."""

    def fresh(self) -> int:
        """Return an unused producer id."""


class Identities(NamedTuple):
    """The producers of a state, by the words of the table."""

    current: Producer
    """The producer of the last response."""
    before: Producer
    """The producer before the current one."""


def begin(run: Asked, expected: Producer = (-1, -1)) -> Producer:
    outcome = run.do(InitProducer(run.key, TIMEOUT_MS, *expected, fresh_producer_id=run.fresh()))
    return outcome.producer_id, outcome.producer_epoch


def nothing(run: Asked) -> Identities:
    """Never heard of, or forgotten."""
    return Identities((FOREIGN - 1, 3), (FOREIGN - 1, 2))


def empty(run: Asked) -> Identities:
    """Start a producer for the fourth time."""
    for _ in range(3):
        before = begin(run)
    return Identities(begin(run), before)


def bumped(run: Asked) -> Identities:
    """Empty; the producer named what it had (KIP-360)."""
    before = empty(run).current
    return Identities(begin(run, before), before)


def _ongoing(run: Asked, transaction_version: int) -> Identities:
    who = empty(run)
    run.do(AddPartitions(run.key, *who.current, frozenset({P0}), transaction_version))
    return who


def ongoing1(run: Asked) -> Identities:
    return _ongoing(run, CLASSIC)


def ongoing2(run: Asked) -> Identities:
    return _ongoing(run, TRANSACTIONS_V2)


def _end(run: Asked, who: Identities, transaction_version: int, *, commit: bool) -> Identities:
    outcome = run.do(
        EndTransaction(run.key, *who.current, commit, transaction_version, run.fresh())
    )
    if transaction_version == CLASSIC:
        return who
    return Identities((outcome.producer_id, outcome.producer_epoch), who.current)


def _ended(
    transaction_version: int, *, commit: bool, withheld: bool
) -> Callable[[Asked], Identities]:
    def build(run: Asked) -> Identities:
        who = _ongoing(run, transaction_version)
        if withheld:
            run.withhold()
        return _end(run, who, transaction_version, commit=commit)

    return build


def empty_abort(run: Asked) -> Identities:
    """CompleteAbort of a transaction that nothing was added to."""
    return _end(run, empty(run), TRANSACTIONS_V2, commit=ABORT)


def fenced(run: Asked) -> Identities:
    """Reach CompleteAbort by the timeout, unknown to the producer."""
    who = ongoing2(run)
    run.do(TimerExpired(timeout_timer(run.key), run.fresh()))
    return who


def _planted(run: Asked, epoch: int, state: State = State.EMPTY) -> Identities:
    first = run.fresh()
    run.plant(
        Transaction(
            run.key, first, epoch, TIMEOUT_MS, state, last_epoch=epoch - 1, last_update_ms=1
        )
    )
    return Identities((first, epoch), (first, epoch - 1))


def spent(run: Asked) -> Identities:
    """Empty, with the last epoch that a client can have."""
    return _planted(run, LARGEST_CLIENT_EPOCH)


def _spent_ongoing(run: Asked, transaction_version: int) -> Identities:
    who = spent(run)
    run.do(AddPartitions(run.key, *who.current, frozenset({P0}), transaction_version))
    return who


def spent_ongoing1(run: Asked) -> Identities:
    return _spent_ongoing(run, CLASSIC)


def spent_ongoing2(run: Asked) -> Identities:
    return _spent_ongoing(run, TRANSACTIONS_V2)


def rotating(run: Asked) -> Identities:
    """PrepareCommit with the largest epoch; the producer knows its next id already."""
    who = spent_ongoing2(run)
    run.withhold()
    return _end(run, who, TRANSACTIONS_V2, commit=COMMIT)


def rotated(run: Asked) -> Identities:
    """CompleteCommit under the next producer id."""
    return _end(run, spent_ongoing2(run), TRANSACTIONS_V2, commit=COMMIT)


def kept(run: Asked) -> Identities:
    """Reach Ongoing, kept for an external decision (KIP-939)."""
    return _kept(run, ongoing2(run))


def spent_kept(run: Asked) -> Identities:
    """The same with the last epoch that a client gets."""
    return _kept(run, spent_ongoing2(run))


def _kept(run: Asked, who: Identities) -> Identities:
    before = who.current
    outcome = run.do(
        InitProducer(run.key, NEVER_MS, keep_prepared=True, fresh_producer_id=run.fresh())
    )
    return Identities((outcome.producer_id, outcome.producer_epoch), before)


STATES: dict[str, Callable[[Asked], Identities]] = {
    "nothing": nothing,
    "empty": empty,
    "bumped": bumped,
    "ongoing1": ongoing1,
    "ongoing2": ongoing2,
    "preparecommit1": _ended(CLASSIC, commit=COMMIT, withheld=True),
    "preparecommit2": _ended(TRANSACTIONS_V2, commit=COMMIT, withheld=True),
    "prepareabort1": _ended(CLASSIC, commit=ABORT, withheld=True),
    "prepareabort2": _ended(TRANSACTIONS_V2, commit=ABORT, withheld=True),
    "commit1": _ended(CLASSIC, commit=COMMIT, withheld=False),
    "commit2": _ended(TRANSACTIONS_V2, commit=COMMIT, withheld=False),
    "abort1": _ended(CLASSIC, commit=ABORT, withheld=False),
    "abort2": _ended(TRANSACTIONS_V2, commit=ABORT, withheld=False),
    "empty-abort": empty_abort,
    "fenced": fenced,
    "spent": spent,
    "spent-ongoing1": spent_ongoing1,
    "spent-ongoing2": spent_ongoing2,
    "rotating": rotating,
    "rotated": rotated,
    "kept": kept,
    "spent-kept": spent_kept,
}

SETTLED = {
    "preparecommit1": "commit1",
    "preparecommit2": "commit2",
    "prepareabort1": "abort1",
    "prepareabort2": "abort2",
    "rotating": "rotated",
}
"""The state of a prepared transaction after its markers are written."""


def who_comes(word: str, who: Identities) -> Producer:
    """The producer id and epoch that a word of the table stands for."""
    current, before = who
    return {
        "none": (-1, -1),
        "current": current,
        "retry": before if before[0] != current[0] else (current[0], current[1] - 1),
        "stale": (current[0], current[1] - 2),
        "ahead": (current[0], current[1] + 1),
        "foreign": (FOREIGN, current[1]),
    }[word]


def command_of(text: str, key: str, who: Identities, fresh: int) -> Any:
    """The command that a line of the table names."""
    name, *words = text.split()
    last = text.rsplit(maxsplit=1)[-1]
    if name == "InitProducerId":
        return InitProducer(key, TIMEOUT_MS, *who_comes(last, who), fresh_producer_id=fresh)
    if name == "AddPartitionsToTxn":
        wanted = {"p0": frozenset({P0}), "p1": frozenset({P1}), "p0+p1": frozenset({P0, P1})}
        producer = who_comes(last, who)
        if "verify" in words:
            return VerifyPartitions(key, *producer, wanted[words[-2]])
        transaction_version = TRANSACTIONS_V2 if "implied" in words else CLASSIC
        return AddPartitions(key, *producer, wanted[words[-2]], transaction_version)
    if name == "EndTxn":
        transaction_version = TRANSACTIONS_V2 if words[0] == "v5" else CLASSIC
        return EndTransaction(
            key, *who_comes(last, who), words[1] == "commit", transaction_version, fresh
        )
    if name == "Timeout":
        return TimerExpired(timeout_timer(key), fresh)
    assert name == "Expiry"
    return Expire(key, idle_ms=0)
