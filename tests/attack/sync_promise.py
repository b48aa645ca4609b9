"""The sync promise, proved from a trace: no response leaves before its promised bytes are on the
disk.

Every promise has a word of its own, which is in the bytes for the journal. Every response has a
correlation id of its own, which is in the bytes for a socket.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.attack.shim import Event, Kind

WORD = re.compile(rb"(?:record|commit|transaction)-[0-9]{8}")
_FRAME = struct.Struct(">ii")
NEVER = 1 << 60


class Promise(NamedTuple):
    """An answer without an error, and the word of what it promises.

    ``times``: that many writes of the word must be durable: a transaction has a record for each of
    its states.
    """

    correlation_id: int
    word: bytes
    times: int = 1


@dataclass
class Evidence:
    """When what was durable, and what was sent; times are numbers of events."""

    durable: dict[bytes, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The times at which the writes of each word were durable."""
    sent: dict[int, int] = field(default_factory=dict)
    """The time at which the response of each correlation id left."""


def evidence(events: Iterable[Event]) -> Evidence:
    """Read a trace."""
    found = Evidence()
    unsynced: defaultdict[int, list[list[bytes]]] = defaultdict(lambda: [[], []])
    """By descriptor: the words that the next sync will cover, and those that one covers now."""
    streams: defaultdict[int, bytearray] = defaultdict(bytearray)
    for number, event in enumerate(events):
        waiting, covered = unsynced[event.descriptor]
        match event.kind:
            case Kind.WRITTEN:
                waiting += WORD.findall(event.data)
            case Kind.WRITTEN_DURABLY:
                for word in WORD.findall(event.data):
                    found.durable[word].append(number)
            case Kind.SYNC_BEGUN:
                unsynced[event.descriptor] = [[], covered + waiting]
            case Kind.SYNCED:
                for word in covered:
                    found.durable[word].append(number)
                unsynced[event.descriptor] = [waiting, []]
            case Kind.SENT:
                streams[event.descriptor] += event.data
                _take_answers(streams[event.descriptor], number, found.sent)
    return found


def _take_answers(stream: bytearray, number: int, sent: dict[int, int]) -> None:
    """Note the answers that begin in ``stream``: one has left when its first byte has."""
    while len(stream) >= _FRAME.size:
        size, correlation_id = _FRAME.unpack_from(stream)
        if correlation_id not in sent:
            sent[correlation_id] = number
        if len(stream) < size + 4:
            return
        del stream[: size + 4]


def broken(promises: Iterable[Promise], found: Evidence) -> list[str]:
    """Return the responses that left too early, or without their words in any journal."""
    problems = []
    for correlation_id, word, times in promises:
        durable = [*found.durable.get(word, ()), *[NEVER] * times][times - 1]
        left = found.sent.get(correlation_id)
        if left is None:
            problems.append(f"the answer for {word!r} is not in the trace")
        elif left <= durable:
            problems.append(f"the answer for {word!r} left at {left}, durable at {durable}")
    return problems
