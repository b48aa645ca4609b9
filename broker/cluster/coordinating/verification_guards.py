"""Verification state of transactions with a remote coordinator, by log and producer (R7).

The transaction can end between the coordinator's confirmation that a partition is part of it and
the append that relies on this. So a *guard* is created before the request to the coordinator. Any
marker of the producer in that log drops the guard, and so does the loss of the log. A request whose
guard was dropped appends nothing, even if the coordinator confirmed. A guard is valid for one
append.

| state | request sent | guard taken or released | marker, or log lost |
|---|---|---|---|
| nothing | one more guard | - | nothing |
| guards | one more guard | one less | nothing |
| a verified ID | one more guard | unchanged | nothing |

A request that takes a guard and appends records the transactional ID: while its transaction is open
in the log, no further requests are needed. All of this is in memory. After a start, or when the log
came from another broker, the coordinator is queried again.

A log accepts any first sequence of a producer that it does not know (S9). If the batch that was to
be verified is refused, the batches sent after it must not take its place. So the lowest sequence
under verification is recorded, for up to BEGINNINGS_MAX such producers.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.storage.log.producers import ProducerState


BEGINNINGS_MAX: Final = 10_000
"""Maximum number of producers, by log, whose first sequence is kept."""


class Log(Protocol):
    """Parts of a partition log that guards use: its identity and its producers."""

    @property
    def producers(self) -> ProducerState:
        """State of the log's producers."""


class Guard:
    """Guard of one verification of one producer in one log."""

    __slots__ = ("is_dropped", "log", "producer_id")

    def __init__(self, log: Log, producer_id: int) -> None:
        self.log = log
        self.producer_id = producer_id
        self.is_dropped = False
        """Whether the guard is no longer valid."""


@dataclass(slots=True)
class _Producer:
    """Guards and verified ID of one producer in one log."""

    guards: set[Guard] = field(default_factory=set)
    transactional_id: str | None = None
    """Verified ID of the open transaction, or ``None``."""


class Guards:
    """The guards of one broker, and the ids that were verified."""

    def __init__(self) -> None:
        self._by_log: dict[Log, dict[int, _Producer]] = {}
        self._beginnings: OrderedDict[tuple[Log, int], tuple[int, int]] = OrderedDict()
        """Epoch and lowest sequence under verification, the last recorded at the end."""

    def __len__(self) -> int:
        """Return the number of pairs of a log and a producer with state."""
        return sum(map(len, self._by_log.values()))

    # -------------------------------------------------------------------------- verification

    def make(self, log: Log, producer_id: int) -> Guard:
        """Create a guard; call this before the request to the coordinator."""
        guard = Guard(log, producer_id)
        self._known(log, producer_id).guards.add(guard)
        return guard

    def take(self, guard: Guard, log: Log) -> bool:
        """Use up a guard right before an append to ``log``; return False to forbid the append."""
        is_good = not guard.is_dropped and guard.log is log
        self.release(guard)
        return is_good

    def release(self, guard: Guard) -> None:
        """Drop a guard that is not needed; no effect on a guard that is dropped already."""
        if guard.is_dropped:
            return
        guard.is_dropped = True
        producers = self._by_log[guard.log]
        known = producers[guard.producer_id]
        known.guards.remove(guard)
        if not known.guards and known.transactional_id is None:
            self._remove(guard.log, guard.producer_id)

    def note_verified(self, log: Log, producer_id: int, transactional_id: str) -> None:
        """Record the transactional ID of an open transaction: call this with a guard taken."""
        self._known(log, producer_id).transactional_id = transactional_id
        self._beginnings.pop((log, producer_id), None)

    def has_verified(self, log: Log, producer_id: int, transactional_id: str) -> bool:
        """Whether the producer's open transaction belongs to ``transactional_id``."""
        known = self._by_log.get(log, {}).get(producer_id)
        return known is not None and known.transactional_id == transactional_id

    def knows(self, log: Log, producer_id: int) -> bool:
        """Whether the log has guards or a verified ID of the producer."""
        return producer_id in self._by_log.get(log, ())

    # ------------------------------------------------------------- producers unknown to the log

    def note_beginning(self, log: Log, producer_id: int, epoch: int, sequence: int) -> None:
        """Record the sequence under verification of a producer that the log does not know."""
        noted = self._beginnings.pop((log, producer_id), (epoch, sequence))
        if noted[0] == epoch:
            sequence = min(sequence, noted[1])
        self._beginnings[log, producer_id] = (epoch, sequence)
        if len(self._beginnings) > BEGINNINGS_MAX:
            self._beginnings.popitem(last=False)

    def is_ahead(self, log: Log, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether a lower sequence of a producer that the log does not know must come first."""
        noted = self._beginnings.get((log, producer_id))
        return noted is not None and noted[0] == epoch and noted[1] < sequence

    # ----------------------------------------------------------------------------- events

    def end(self, log: Log, producer_id: int) -> None:
        """Drop all state of a producer when its marker is appended to the log."""
        self._beginnings.pop((log, producer_id), None)
        producers = self._by_log.get(log)
        if producers is not None and producer_id in producers:
            _drop(producers[producer_id])
            self._remove(log, producer_id)

    def lose(self, log: Log) -> None:
        """Drop all state of a log that this broker does not lead any more."""
        for known in self._by_log.pop(log, {}).values():
            _drop(known)
        for key in [key for key in self._beginnings if key[0] is log]:
            del self._beginnings[key]

    def _known(self, log: Log, producer_id: int) -> _Producer:
        return self._by_log.setdefault(log, {}).setdefault(producer_id, _Producer())

    def _remove(self, log: Log, producer_id: int) -> None:
        producers = self._by_log[log]
        del producers[producer_id]
        if not producers:
            del self._by_log[log]


def _drop(known: _Producer) -> None:
    for guard in known.guards:
        guard.is_dropped = True
