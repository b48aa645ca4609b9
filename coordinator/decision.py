"""What a coordinator says to do: records to write, changes, effects and answers, in that order.

Rules of this folder:

1. ``decide(command, now)`` reads state and never changes it. ``apply(record)`` and ``change`` do,
   and never decide. Start-up replays records through the same ``apply`` that live traffic uses.
2. A ``Change`` is state that no restart needs (which member waits for a rebalance, when one was
   last heard of). It is applied together with the decision's records, and never written.
3. A decision applies as a whole when its records are appended: records, changes, effects. What
   follows from it is appended behind it. Nothing of it leaves the broker before its records, and
   those that it was decided upon, are durable (``broker/coordination/runner.py``).
4. Time, member ids and everything random arrive with the command. A timer is an effect that comes
   back as a command. An answer that has to wait is parked under its command's ticket, and given by
   an ``Answer`` effect of a later decision.
5. Every error is a value in the response; an exception is a bug.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.protocol.api import AnyRecordType, prefix
from barnabas.protocol.messages import record_type

NO_PRODUCER_ID: Final = -1


class Now(NamedTuple):
    """The time a command is decided at, in ms."""

    wall_ms: int
    """Since 1970: what is written into records and shown to people."""
    tick_ms: int
    """On a clock that never goes back: what timeouts are measured with (T1)."""


class Record(NamedTuple):
    """One coordinator record; ``value`` None is a tombstone."""

    kind: AnyRecordType
    key: Any
    value: Any
    version: int | None = None
    """Version the value is written with; None: the newest."""
    producer_id: int = NO_PRODUCER_ID
    """Whose open transaction the record is part of."""
    meaning: Any = None
    """What the value says, as it is kept in memory; None: ``apply`` has to read it."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """The record's key and value as they stand in the log."""
        key = self.kind.encode_key(self.key)
        if self.value is None:
            return key, None
        return key, self.kind.encode_value(self.value, self.version)


class Timer(NamedTuple):
    """What a timer is for; there is one at a time of each."""

    key: str
    """The group, or the transactional id."""
    name: str
    member_id: str = ""


class Schedule(NamedTuple):
    """Bring ``timer`` back as a command at ``at_tick_ms``, in place of its earlier time if any."""

    timer: Timer
    at_tick_ms: int


class Cancel(NamedTuple):
    """Forget a timer, if it is scheduled."""

    timer: Timer


class Answer(NamedTuple):
    """Answer the command that was parked under ``ticket``."""

    ticket: int
    response: Any


class TransactionalProducer(NamedTuple):
    """Whose open transaction the records of a decision are part of."""

    producer_id: int
    epoch: int


Effect: TypeAlias = Any
"""Schedule, Cancel, Answer, or what only one coordinator's runner knows."""


class Decision(NamedTuple):
    """What to persist, what to change, what to do, and what to answer, in that order."""

    response: Any = None
    """None: the command is parked; a later decision answers it."""
    records: tuple[Record, ...] = ()
    changes: tuple[Any, ...] = ()
    effects: tuple[Effect, ...] = ()
    producer: TransactionalProducer | None = None
    """Makes the records part of this producer's transaction."""
    steps: Generator[None, None, LongDecision] | None = None
    """Where deciding takes long: it goes on a few milliseconds at a time, and returns the decision
    that counts in place of this one. Nothing else is done for the key until that is applied."""
    is_known: bool = False
    """Whether the response tells the client nothing new, so that it need not wait for the disk."""


class LongDecision(NamedTuple):
    """A decision with very many records, all of which are written or none."""

    response: Any
    records: Iterable[Record] = ()
    """Made anew each time one goes through them, the same every time: they are never all there."""
    effects: tuple[Effect, ...] = ()
    changes: tuple[Any, ...] = ()


NOTHING: Final = Decision()
"""For a command without a client that found nothing to do."""


def decode_record(
    topic: str, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID
) -> Record | None:
    """Read a record of an internal topic; None for a kind that this version does not know.

    Raises Malformed or KafkaError for bytes that are no record of its kind.
    """
    try:
        kind = record_type(topic, prefix(key))
    except KeyError:
        return None
    decoded = None if value is None else kind.decode_value(value)
    return Record(kind, kind.decode_key(key), decoded, producer_id=producer_id)
