"""What a leader knows of transactions that are coordinated elsewhere, by log and producer (R7).

Between the coordinator's word that a partition is part of a transaction and the append that goes by
it the transaction may end. So a *guard* is made before the coordinator is asked. Any marker of the
producer in that log drops it, and so does the loss of the log; who finds his guard dropped appends
nothing, whatever he was told. It is good for one append.

| there is | a question is asked | its guard is taken or released | a marker, or the log is lost |
|---|---|---|---|
| nothing | a guard more | - | nothing |
| guards | a guard more | one less | nothing |
| a verified id | a guard more | as it was | nothing |

The id is noted by who has taken a guard and appends: as long as its transaction is open in the log,
nobody has to be asked for it again. All of it is in memory: after a start, and where a log has come
from elsewhere, the coordinator is asked once more.

A log takes any first sequence of a producer that it does not know (S9). If the batch that was asked
about is refused after all, those sent behind it must not be taken in its place: the lowest sequence
that a question was about is kept for such producers, of so many as have room.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.storage.log.producers import ProducerState


BEGINNINGS_MAX: Final = 10_000
"""Producers in logs of which it is kept with what they wanted to begin."""


class Log(Protocol):
    """The log of a partition, as far as it matters here: which one it is, and who writes there."""

    @property
    def producers(self) -> ProducerState:
        """Who has written there."""


class Guard:
    """One question about one producer in one log."""

    __slots__ = ("is_dropped", "log", "producer_id")

    def __init__(self, log: Log, producer_id: int) -> None:
        self.log = log
        self.producer_id = producer_id
        self.is_dropped = False
        """Whether it is good for nothing any more."""


@dataclass(slots=True)
class _Known:
    """What there is for one producer in one log."""

    guards: set[Guard] = field(default_factory=set)
    transactional_id: str | None = None
    """Whose the open transaction is, as its coordinator said."""


class Guards:
    """The guards of one broker, and the ids that were verified."""

    def __init__(self) -> None:
        self._by_log: dict[Log, dict[int, _Known]] = {}
        self._beginnings: OrderedDict[tuple[Log, int], tuple[int, int]] = OrderedDict()
        """Epoch and lowest sequence, the last that was noted at the end."""

    def __len__(self) -> int:
        """Of how many producers in how many logs something is known."""
        return sum(map(len, self._by_log.values()))

    # ----------------------------------------------------------------------------- who asks

    def make(self, log: Log, producer_id: int) -> Guard:
        """Make a guard; call this before the coordinator is asked."""
        guard = Guard(log, producer_id)
        self._known(log, producer_id).guards.add(guard)
        return guard

    def take(self, guard: Guard, log: Log) -> bool:
        """Use up a guard right before an append to ``log``; False: nothing may be appended."""
        is_good = not guard.is_dropped and guard.log is log
        self.release(guard)
        return is_good

    def release(self, guard: Guard) -> None:
        """Drop a guard that is not needed; no effect on one that is dropped."""
        if guard.is_dropped:
            return
        guard.is_dropped = True
        producers = self._by_log[guard.log]
        known = producers[guard.producer_id]
        known.guards.remove(guard)
        if not known.guards and known.transactional_id is None:
            self._remove(guard.log, guard.producer_id)

    def note_verified(self, log: Log, producer_id: int, transactional_id: str) -> None:
        """Note whose transaction is opened in a log: call this with a guard taken."""
        self._known(log, producer_id).transactional_id = transactional_id
        self._beginnings.pop((log, producer_id), None)

    def has_verified(self, log: Log, producer_id: int, transactional_id: str) -> bool:
        """Whether the open transaction of a producer is that of a transactional id."""
        known = self._by_log.get(log, {}).get(producer_id)
        return known is not None and known.transactional_id == transactional_id

    def knows(self, log: Log, producer_id: int) -> bool:
        """Whether a producer has asked to write in a transaction, or does."""
        return producer_id in self._by_log.get(log, ())

    # ------------------------------------------------------------------- who is not known to a log

    def note_beginning(self, log: Log, producer_id: int, epoch: int, sequence: int) -> None:
        """Note what is asked about for a producer that the log does not know."""
        noted = self._beginnings.pop((log, producer_id), (epoch, sequence))
        if noted[0] == epoch:
            sequence = min(sequence, noted[1])
        self._beginnings[log, producer_id] = (epoch, sequence)
        if len(self._beginnings) > BEGINNINGS_MAX:
            self._beginnings.popitem(last=False)

    def is_ahead(self, log: Log, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether a lower sequence of a producer that the log does not know has to come first."""
        noted = self._beginnings.get((log, producer_id))
        return noted is not None and noted[0] == epoch and noted[1] < sequence

    # ----------------------------------------------------------------------------- what happens

    def end(self, log: Log, producer_id: int) -> None:
        """Drop everything of a producer of which a marker comes into a log."""
        self._beginnings.pop((log, producer_id), None)
        producers = self._by_log.get(log)
        if producers is not None and producer_id in producers:
            _drop(producers[producer_id])
            self._remove(log, producer_id)

    def lose(self, log: Log) -> None:
        """Drop everything of a log that is here no more."""
        for known in self._by_log.pop(log, {}).values():
            _drop(known)
        for key in [key for key in self._beginnings if key[0] is log]:
            del self._beginnings[key]

    def _known(self, log: Log, producer_id: int) -> _Known:
        return self._by_log.setdefault(log, {}).setdefault(producer_id, _Known())

    def _remove(self, log: Log, producer_id: int) -> None:
        producers = self._by_log[log]
        del producers[producer_id]
        if not producers:
            del self._by_log[log]


def _drop(known: _Known) -> None:
    for guard in known.guards:
        guard.is_dropped = True
