"""Decisions of a coordinator: records to write, changes, effects and responses, in that order.

Rules of this folder:

1. ``decide(command, now)`` reads state and never changes it. ``apply(record)`` and ``change`` do,
   and never decide. Start-up replays records through the same ``apply`` that live traffic uses.
2. A ``Change`` is state that no restart needs (which member waits for a rebalance, when its last
   heartbeat was). It is applied together with the decision's records, and never written.
3. A decision applies as a whole when its records are appended: records, changes, effects. Later
   decisions that build on it are appended after it. Nothing of it leaves the broker before its
   records, and those that it was decided upon, are durable (``broker/coordination/runner.py``).
4. Time, member ids and everything random arrive with the command. A timer is an effect that comes
   back as a command. A response that has to wait is parked under its command's ticket, and sent by
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
    """Wall-clock time in milliseconds since 1970, for records and users."""
    tick_ms: int
    """Time of the monotonic clock, in milliseconds, by which timeouts are measured (T1)."""


class Record(NamedTuple):
    """One coordinator record; ``value`` None is a tombstone."""

    kind: AnyRecordType
    key: Any
    value: Any
    version: int | None = None
    """Version of the record's value, or None for the newest."""
    producer_id: int = NO_PRODUCER_ID
    """The producer whose open transaction contains the record."""
    meaning: Any = None
    """The value as it is held in memory, or None if ``apply`` has to read it from ``value``."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the record's key and value as bytes of the log."""
        key = self.kind.encode_key(self.key)
        if self.value is None:
            return key, None
        return key, self.kind.encode_value(self.value, self.version)


class Timer(NamedTuple):
    """Purpose of a timer; there is one at a time of each."""

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
    """Send a response to the command that was parked under ``ticket``."""

    ticket: int
    response: Any


class TransactionalProducer(NamedTuple):
    """The producer whose open transaction contains the records of a decision."""

    producer_id: int
    epoch: int


Effect: TypeAlias = Any
"""Schedule, Cancel, Answer, or an effect that one coordinator alone defines for its runner."""


class Decision(NamedTuple):
    """Records to persist, changes to apply, effects to run, and the response, in that order."""

    response: Any = None
    """Response of the command, or None if it is parked and a later decision responds."""
    records: tuple[Record, ...] = ()
    changes: tuple[Any, ...] = ()
    effects: tuple[Effect, ...] = ()
    producer: TransactionalProducer | None = None
    """The producer whose transaction the records belong to, or None."""
    steps: Generator[None, None, LongDecision] | None = None
    """Steps of a long decision, of a few milliseconds each, or None. They return the decision that
    replaces this one. Other commands for the key wait until that is applied."""
    is_known: bool = False
    """Whether the client knows the response's content already, so that it need not wait for the
    disk."""


class LongDecision(NamedTuple):
    """A decision with very many records, all of which are written or none."""

    response: Any
    records: Iterable[Record] = ()
    """Records, created again for each iteration with equal content: never all in memory."""
    effects: tuple[Effect, ...] = ()
    changes: tuple[Any, ...] = ()


NOTHING: Final = Decision()
"""Decision for a command without a client that has nothing to change."""


def decode_record(
    topic: str, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID
) -> Record | None:
    """Read a record of an internal topic, or None for a kind that this version does not know.

    Raises Malformed or KafkaError for bytes that are no record of its kind.
    """
    try:
        kind = record_type(topic, prefix(key))
    except KeyError:
        return None
    decoded = None if value is None else kind.decode_value(value)
    return Record(kind, kind.decode_key(key), decoded, producer_id=producer_id)
