"""Operations of each role, drawn from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random

from tests.history.model import Partition, Write
from tests.workload.operations import (
    CommitOffset,
    Consume,
    Leave,
    Operation,
    Poll,
    Rest,
    Send,
    Transact,
    Transform,
)
from tests.workload.settings import (
    LEFT,
    OUT,
    PARTITIONS,
    RIGHT,
    TRANSACTION_TIMEOUT_MS,
    Settings,
)

ABORTS, DAWDLES, TIMES_OUT = 0.15, 0.1, 0.02
"""Shares of a writer's transactions: aborted, long, and longer than a short timeout."""
TRANSFORM_ABORTS, TRANSFORM_DAWDLES = 0.1, 0.05
LONG_S = (0.05, 0.5)
MOST_THINKING_S = 0.3
TRANSACT_REST_S, SEND_REST_S, COMMIT_REST_S = 0.08, 0.16, 0.05
SENT_AT_ONCE = 3
MOST_TARGETS = 8
BATCHES_AT_ONCE = 5
"""Batches of a producer and partition that a broker can recognize as duplicates."""
ABANDON_REST_S = 1.0
POLLS_PER_COMMIT, COMMIT_INTERVAL_S = 3, 0.4

WRITTEN = [(topic, index) for topic in (LEFT, RIGHT) for index in range(PARTITIONS)]


def writer(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield transactions over several partitions of two topics."""
    values = _values(settings)
    while True:
        parts = tuple(
            tuple(Write(*place, next(values)) for place in _chosen(chance, WRITTEN))
            for _ in range(chance.randint(1, 3))
        )
        draw, pause_s = chance.random(), 0.0
        if draw < TIMES_OUT and settings.transaction_timeout_ms <= TRANSACTION_TIMEOUT_MS:
            pause_s = 1.5 * TRANSACTION_TIMEOUT_MS / 1000
        elif draw < DAWDLES:
            pause_s = chance.uniform(*LONG_S)
        yield Transact(parts, pause_s, aborts=chance.random() < ABORTS)
        yield _rest(settings, chance, TRANSACT_REST_S)


def sender(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield idempotent sends outside of transactions, several records at a time."""
    values = _values(settings)
    indexes = range(settings.partitions)
    places = [(topic, index) for topic in settings.topics for index in indexes] or WRITTEN
    while True:
        writes = [Write(*chance.choice(places), next(values)) for _ in range(SENT_AT_ONCE)]
        yield Send(tuple(writes))
        yield _rest(settings, chance, SEND_REST_S)


def bulk(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield batches of all sizes, as many at a time as an idempotent producer may have."""
    values = _values(settings)
    while True:
        writes = [
            Write(*place, next(values))
            for place in chance.choices(WRITTEN, k=BATCHES_AT_ONCE)
            for _ in range(chance.randint(1, 8))
        ]
        yield Send(tuple(writes), chance.choice(settings.pads))
        yield _rest(settings, chance, 0)


def abandoner(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield transactions that stay open until they time out."""
    values = _values(settings)
    while True:
        part = tuple(Write(*place, next(values)) for place in _chosen(chance, WRITTEN))
        yield Transact((part,), abandons=True)
        yield Rest(chance.uniform(0, ABANDON_REST_S))


def transformer(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield polls of ``left`` with one output to ``out`` for each record."""
    while True:
        targets = tuple((OUT, chance.randrange(PARTITIONS)) for _ in range(MOST_TARGETS))
        pause_s = chance.uniform(*LONG_S) if chance.random() < TRANSFORM_DAWDLES else 0.0
        most_s = MOST_THINKING_S if settings.rest_s is None else settings.rest_s
        think_s = chance.uniform(0, min(most_s, MOST_THINKING_S))
        aborts = chance.random() < TRANSFORM_ABORTS
        yield Transform(targets, think_s, pause_s, aborts)
        if settings.rest_s is not None:
            yield _rest(settings, chance, 0)


def reader(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield polls."""
    while True:
        yield Poll()
        if settings.rest_s is not None:
            yield _rest(settings, chance, 0)


def committer(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield offsets of a group without members, each larger than the one before."""
    place = chance.choice(WRITTEN)
    for offset in itertools.count():
        yield CommitOffset(settings.name, place, offset)
        yield _rest(settings, chance, COMMIT_REST_S)


def member(settings: Settings, chance: Random) -> Iterator[Operation]:
    """Yield polls of a member that commits what it has read every few of them."""
    while True:
        if chance.random() < settings.leaves:
            yield Leave()
        yield Consume(POLLS_PER_COMMIT, COMMIT_INTERVAL_S)
        if settings.rest_s is not None:
            yield _rest(settings, chance, 0)


ROLES: dict[str, Callable[[Settings, Random], Iterator[Operation]]] = {
    "writer": writer,
    "sender": sender,
    "transformer": transformer,
    "reader": reader,
    "bulk": bulk,
    "abandoner": abandoner,
    "committer": committer,
    "member": member,
}


def plan_of(settings: Settings) -> Iterator[Operation]:
    """Return the operations of a client."""
    return ROLES[settings.role](settings, Random(f"{settings.seed} {settings.name}"))


def _values(settings: Settings) -> Iterator[str]:
    """Yield values that no other client writes."""
    return (f"{settings.name}.{number}" for number in itertools.count())


def _rest(settings: Settings, chance: Random, most_s: float) -> Rest:
    return Rest(chance.uniform(0, most_s if settings.rest_s is None else settings.rest_s))


def _chosen(chance: Random, places: Sequence[Partition]) -> list[Partition]:
    """Return some places, now and then one of them several times."""
    some = chance.sample(places, chance.randint(1, 4))
    return some + [some[0]] * chance.randint(0, 2)
