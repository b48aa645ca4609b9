"""Transactions as operators see them: events, counts, and the last client of each transactional id.

Rules of this file:

* Nothing is decided by it, and all of it is in memory: it begins at the start of the broker.
* **Fixed memory.** There are two rings: what happens to every transaction is forgotten before what
  is worth a question, so that a busy producer does not wash away how another one was fenced.
  Characters of names are counted, too: where names are long there are fewer events.
* **Cheap to note**, since each transition notes one even if the story has no reader: an event is
  one object of a compiled class, and its reader derives the rest.
* An event is noted when it is appended. The console shows it when that is durable (C14).
* An id has no client until one uses it. Counts only grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, final

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    Expire,
    InitProducer,
    MarkersWritten,
    TimerExpired,
)
from barnabas.coordinator.transactions.state import NO_EPOCH, NO_PRODUCER_ID, State, Transaction

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.coordinator.decision import Decision
    from barnabas.coordinator.transactions.state import TopicPartition
    from barnabas.coordinator.transactions.transaction_table import TransactionTable

BY_CLIENT: Final = "client"
BY_TIMEOUT: Final = "timeout"
BY_FENCING: Final = "fenced"
"""Causes of an abort: the producer, its timeout, or a new instance or operator."""
ROUTINE_SLOTS: Final = 1500
NOTABLE_SLOTS: Final = 500
CHARACTERS_MOST: Final = 64 * 1024
"""The most characters that the names in one ring have."""
NAMES_SHOWN: Final = 4
"""Maximum number of partitions named in one event."""
OPERATORS: Final = frozenset(("barnabas", "barnabas-console"))
"""Client ids of the tools of this project, which abort transactions for an operator."""
NO_TIME: Final = -1
SEPARATOR: Final = "\n"


class Client(NamedTuple):
    """A client as Kafka's tools show one: its client id, and its address behind a slash."""

    client_id: str
    host: str


class TransactionClients:
    """The last client of each transactional id that exists."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def of(self, transactional_id: str) -> Client | None:
        """Return the last client of an id, or None if no client has used it since the start."""
        return self._clients.get(transactional_id)

    def used(self, transactional_id: str, context: RequestContext) -> None:
        """Record the client of a request about an existing ID."""
        self._clients[transactional_id] = self.client_of(transactional_id, context)

    def client_of(self, transactional_id: str, context: RequestContext) -> Client:
        """Return the client of a request; the same object if the ID's client is unchanged."""
        client_id = context.client_id or ""
        host = "/" + context.connection.peer_host
        known = self._clients.get(transactional_id)
        if known is not None and known.client_id == client_id and known.host == host:
            return known
        return Client(client_id, host)

    def forget(self, transactional_id: str) -> None:
        """Drop an ID that no longer exists."""
        self._clients.pop(transactional_id, None)


class Kind(IntEnum):
    """The kinds of events."""

    INITIALIZED = 0
    BEGUN = 1
    PARTITIONS_ADDED = 2
    OFFSETS_ADDED = 3
    PREPARED = 4
    COMMITTED = 5
    ABORTED = 6
    REFUSED = 7
    EXPIRED = 8


class Reason(IntEnum):
    """The causes of events."""

    NONE = 0
    CLIENT = 1
    TIMEOUT = 2
    FENCED = 3
    OPERATOR = 4


NOTABLE_REASONS: Final = (Reason.TIMEOUT, Reason.FENCED, Reason.OPERATOR)
ENDS: Final = (Kind.COMMITTED, Kind.ABORTED)


@final
class TransactionEvent:
    """Immutable event of a transactional id."""

    __slots__ = (
        "client",
        "former",
        "kind",
        "names",
        "number",
        "partition_count",
        "producer_epoch",
        "producer_id",
        "reason",
        "start_ms",
        "time_ms",
        "transactional_id",
    )

    def __init__(
        self,
        number: int,
        time_ms: int,
        kind: Kind,
        reason: Reason,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        client: Client | None,
        former: Client | None,
        start_ms: int,
        partition_count: int,
        names: str,
    ) -> None:
        self.number = number
        """Counts all events since the start."""
        self.time_ms = time_ms
        self.kind = kind
        self.reason = reason
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.client = client
        """The client that caused it."""
        self.former = former
        """The previous client of the transactional id, or None if it was the same one."""
        self.start_ms = start_ms
        """Start of the transaction of the event; -1 if none is open."""
        self.partition_count = partition_count
        """Number of partitions that were added or, at an end, that the transaction had."""
        self.names = names
        """The first of the partitions that were added, as topic-partition, one to a line."""


class _Ring:
    """The last events of one kind."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._characters = 0
        self._events: deque[TransactionEvent] = deque()
        self.complete_since_ms = NO_TIME
        """Time of the newest event that was dropped."""

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: TransactionEvent) -> None:
        """Record an event; if the history is full, drop the oldest ones."""
        events = self._events
        events.append(event)
        self._characters += _characters(event)
        while len(events) > self._slots or (self._characters > CHARACTERS_MOST and len(events) > 1):
            gone = events.popleft()
            self._characters -= _characters(gone)
            self.complete_since_ms = gone.time_ms

    def forget(self, is_lost: Callable[[str], bool]) -> None:
        """Drop the events of some transactional ids."""
        self._events = deque(each for each in self._events if not is_lost(each.transactional_id))
        self._characters = sum(_characters(each) for each in self._events)

    def newest_first(self) -> Iterator[TransactionEvent]:
        """Return the present events, the newest first."""
        return reversed(list(self._events))


def _characters(event: TransactionEvent) -> int:
    return len(event.transactional_id) + len(event.names)


class TransactionEvents:
    """History of all transactional IDs, since the start or as far back as memory allows."""

    def __init__(self, now_ms: int) -> None:
        """Create an empty history; it has all events from ``now_ms`` on."""
        self._routine = _Ring(ROUTINE_SLOTS)
        self._notable = _Ring(NOTABLE_SLOTS)
        self._number = 0
        self._refused: tuple[str, Client | None] | None = None
        """The id and client that were refused last: repeated refusals are noted once."""
        self.begun_ms = now_ms

    def __len__(self) -> int:
        return len(self._routine) + len(self._notable)

    @property
    def complete_since_ms(self) -> int:
        """Time since which no event is missing."""
        return max(self.begun_ms, self._routine.complete_since_ms, self._notable.complete_since_ms)

    @property
    def is_complete(self) -> bool:
        """Whether the history has all events since the start."""
        return self.complete_since_ms == self.begun_ms

    def newest_first(self) -> Iterator[TransactionEvent]:
        """Yield all present events, the newest first."""
        return merge(
            self._routine.newest_first(),
            self._notable.newest_first(),
            key=_number_of,
            reverse=True,
        )

    def forget(self, is_lost: Callable[[str], bool], now_ms: int) -> None:
        """Drop the events of IDs that this broker no longer coordinates."""
        self._routine.forget(is_lost)
        self._notable.forget(is_lost)
        self._refused = None
        self.restart(now_ms)

    def restart(self, now_ms: int) -> None:
        """Restart the history: it lacks events of IDs that another broker coordinated."""
        self.begun_ms = now_ms

    # -------------------------------------------------------------------------------- what happens

    def moves(
        self,
        known: TransactionTable,
        decision: Decision,
        command: Command,
        asker: Client | None,
        former: Client | None,
        now_ms: int,
    ) -> None:
        """Record a coming transition.

        ``asker`` is the client that caused it, or None if unknown; ``former`` is the previous
        client of the transactional id.
        """
        if isinstance(command, MarkersWritten):
            return
        after: Transaction | None = decision.records[-1].meaning
        if after is None:
            if isinstance(command, Expire):
                key = command.transactional_id
                self._add(now_ms, Kind.EXPIRED, Reason.NONE, key)
            return
        before = known.transactions.get(after.transactional_id)
        was_open = before is not None and before.state == State.ONGOING
        other = former if asker is not None and former != asker else None
        if isinstance(command, AddPartitions):
            added = after.partitions
            if before is not None and was_open:
                added = added - before.partitions
            self._grown(after, added, asker or former, was_open=was_open)
        elif isinstance(command, InitProducer) and after.state in (State.EMPTY, State.ONGOING):
            kind = Kind.PREPARED if was_open else Kind.INITIALIZED
            self._of(after, kind, Reason.NONE, asker, other)
        elif after.state == State.PREPARE_COMMIT:
            count = len(after.partitions)
            self._of(after, Kind.COMMITTED, Reason.CLIENT, asker, None, count)
        elif after.state == State.PREPARE_ABORT and was_open:
            reason = _reason(command, asker)
            client = former if reason is Reason.TIMEOUT else asker
            self._of(after, Kind.ABORTED, reason, client, other, len(after.partitions))

    def refused(self, transaction: Transaction, client: Client, now_ms: int) -> None:
        """Record the refusal of a fenced client, once for consecutive requests of one client."""
        key = transaction.transactional_id
        if self._refused == (key, client):
            return
        self._refused = key, client
        producer_id, epoch = transaction.owner
        self._add(
            now_ms,
            Kind.REFUSED,
            Reason.FENCED,
            key,
            producer_id=producer_id,
            epoch=epoch,
            client=client,
        )

    def _grown(
        self,
        after: Transaction,
        added: frozenset[TopicPartition],
        client: Client | None,
        *,
        was_open: bool,
    ) -> None:
        kind = Kind.PARTITIONS_ADDED if was_open else Kind.BEGUN
        shown = [f"{topic}-{partition}" for topic, partition in islice(added, NAMES_SHOWN)]
        if was_open and len(added) == 1 and shown[0].startswith(GROUP_OFFSETS):
            kind = Kind.OFFSETS_ADDED
        names = SEPARATOR.join(shown)
        self._of(after, kind, Reason.NONE, client, None, len(added), names)

    def _of(
        self,
        after: Transaction,
        kind: Kind,
        reason: Reason,
        client: Client | None,
        former: Client | None,
        count: int = 0,
        names: str = "",
    ) -> None:
        producer_id, epoch = after.owner
        self._add(
            after.last_update_ms,
            kind,
            reason,
            after.transactional_id,
            producer_id=producer_id,
            epoch=epoch,
            client=client,
            former=former,
            start_ms=after.start_ms,
            count=count,
            names=names,
        )

    def _add(
        self,
        time_ms: int,
        kind: Kind,
        reason: Reason,
        transactional_id: str,
        *,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
        client: Client | None = None,
        former: Client | None = None,
        start_ms: int = NO_TIME,
        count: int = 0,
        names: str = "",
    ) -> None:
        is_notable = reason in NOTABLE_REASONS or kind is Kind.PREPARED or former is not None
        ring = self._notable if is_notable else self._routine
        self._number += 1
        ring.add(
            TransactionEvent(
                self._number,
                time_ms,
                kind,
                reason,
                transactional_id,
                producer_id,
                epoch,
                client,
                former,
                start_ms,
                count,
                names,
            )
        )


def _number_of(event: TransactionEvent) -> int:
    return event.number


def _reason(command: Command, asker: Client | None) -> Reason:
    if isinstance(command, TimerExpired):
        return Reason.TIMEOUT
    if not isinstance(command, InitProducer):
        return Reason.CLIENT
    is_operator = asker is not None and asker.client_id in OPERATORS
    return Reason.OPERATOR if is_operator else Reason.FENCED


class TransactionCounts:
    """Counters of one coordinator; all only grow."""

    __slots__ = (
        "aborted",
        "begun",
        "committed",
        "markers_delayed",
        "markers_written",
        "requests_given_up",
        "requests_held",
    )

    def __init__(self) -> None:
        self.begun = 0
        self.committed = 0
        self.aborted = {BY_CLIENT: 0, BY_TIMEOUT: 0, BY_FENCING: 0}
        self.requests_held = 0
        """Number of requests that waited for a transition in flight."""
        self.requests_given_up = 0
        """Number of requests whose wait ended by a timeout: they get CONCURRENT_TRANSACTIONS."""
        self.markers_written = 0
        self.markers_delayed = 0
        """Number of markers that could not be written, and are retried."""

    def moves(self, known: TransactionTable, decision: Decision, command: Command) -> None:
        """Count a coming transition; the abort of an empty transaction (KIP-890) is not counted."""
        after: Transaction | None = decision.records[-1].meaning
        if after is None:
            return
        before = known.transactions.get(after.transactional_id)
        was_open = before is not None and before.state == State.ONGOING
        if after.state == State.ONGOING and not was_open:
            self.begun += 1
        elif after.state == State.PREPARE_COMMIT:
            self.committed += 1
        elif after.state == State.PREPARE_ABORT and was_open:
            self.aborted[_abort_reason(command)] += 1


def _abort_reason(command: Command) -> str:
    if isinstance(command, TimerExpired):
        return BY_TIMEOUT
    return BY_FENCING if isinstance(command, InitProducer) else BY_CLIENT
