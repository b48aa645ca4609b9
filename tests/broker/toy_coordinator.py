"""A coordinator over a toy of a state machine, whose journal commits when the test says ``sync``.

The toy's records are offset commits: a key has one number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import pytest

from barnabas.broker.coordination import coordinator_log
from barnabas.broker.coordination.coordinator_log import Admit, CoordinatorLog, TopicSettings
from barnabas.broker.coordination.runner import Runner, Submission
from barnabas.broker.coordination.shard import Shard
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.runtime.clock import ManualClock
from barnabas.coordinator.decision import (
    Decision,
    Effect,
    Now,
    Record,
    Schedule,
    Timer,
)
from barnabas.protocol.messages.offset_commit_record import (
    OFFSET_COMMIT_RECORD,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.storage.runtime.threads import new_executor
from tests.broker.harness import Administration
from tests.storage.engines import InlineEngine

MISTAKE: Final = 1000
"""A producer whose marker cannot be taken in."""

Decide = Callable[["Toy", Now], Decision]


@dataclass(frozen=True)
class Do:
    """A command that is decided by a function of the test's."""

    decide: Decide


@dataclass(frozen=True)
class Expired:
    """A timer that has come; adds one to its key."""

    timer: Timer


class Toy:
    """Numbers by key, a list of what was changed, and answers that wait."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.offsets: list[int] = []
        self.changes: list[object] = []
        self.is_forgotten = False

    def decide(self, command: Any, now: Now) -> Decision:
        if isinstance(command, Expired):
            return put(command.timer.key, self.numbers.get(command.timer.key, 0) + 1)(self, now)
        return command.decide(self, now)

    def apply(self, record: Record, offset: int) -> None:
        if record.value is None:
            self.numbers.pop(record.key.group, None)
        else:
            assert record.value.offset >= 0, "a mistake in apply"
            self.numbers[record.key.group] = record.value.offset
        self.offsets.append(offset)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """End a transaction in as many steps as the producer's id, counted in its key."""
        if producer_id == 0:
            self.changes.append((producer_id, commit))
            return None
        return self._end(producer_id, commit=commit)

    def _end(self, producer_id: int, *, commit: bool) -> Iterator[None]:
        for number in range(producer_id):
            assert producer_id < MISTAKE, "a mistake in taking in a marker"
            self.numbers[f"p{producer_id}"] = number + 1
            yield
        self.changes.append((producer_id, commit))

    def change(self, change: object) -> None:
        assert change != "mistake"
        self.changes.append(change)

    def begin(self, now: Now) -> tuple[Schedule, ...]:
        return tuple(
            Schedule(Timer(key, "begun"), now.tick_ms + 1000)
            for key, number in self.numbers.items()
            if number == 99
        )

    def set_aside(self, record_key: bytes) -> bool:
        """Return whether the key of a record contains "aside"."""
        return b"aside" in record_key

    def keys(self) -> list[str]:
        return list(self.numbers)

    def forget(self) -> None:
        self.is_forgotten = True


def record_of(key: str, number: int | None) -> Record:
    value = None if number is None else OffsetCommitValue(number)
    return Record(OFFSET_COMMIT_RECORD, OffsetCommitKey(key, "topic", 0), value, 4)


def put(key: str, number: int | None, response: object = "done", **more: Any) -> Decide:
    return lambda _toy, _now: Decision(response, (record_of(key, number),), **more)


def get(key: str) -> Decide:
    return lambda toy, _now: Decision(toy.numbers.get(key, "nothing"))


def say(**more: Any) -> Decide:
    return lambda _toy, _now: Decision(**more)


def fail(_toy: Toy, _now: Now) -> Decision:
    raise ZeroDivisionError


def schedule(name: str, after_ms: int, **more: Any) -> Decide:
    return lambda _toy, now: Decision(
        "ok", effects=(Schedule(Timer("k", name), now.tick_ms + after_ms),), **more
    )


class Coordinator:
    """A log on a simulated disk and a runner, as a coordinator has them."""

    def __init__(
        self,
        partitions: int = 1,
        administration: Administration | None = None,
        *,
        clock: ManualClock | None = None,
        latest_only: bool = False,
    ) -> None:
        self.administration = administration or Administration(engine=InlineEngine())
        if administration is None:
            self.create_topic(partitions)
        self.clock = clock or ManualClock(1_000_000)
        self.fatal: list[BaseException] = []
        self.flushed = 0
        self.spawned: list[Any] = []
        self.answers: list[object] = []
        self.host: Any = SimpleNamespace(
            clock=self.clock,
            config=SimpleNamespace(journal_file_bytes=20_000),
            spawn=lambda coroutine, _name: self.spawned.append(coroutine),
            fatal=self.fatal.append,
            flush_answers=self._count_flush,
        )
        self.log: CoordinatorLog[Toy] = CoordinatorLog(
            GROUP_OFFSETS,
            Toy,
            lambda _config: TopicSettings(3, 1 << 20, "producer"),
            self.host,
            self.administration.catalogue,
            on_loaded=self._loaded,
            on_lost=self._lost,
            latest_only=latest_only,
        )
        self.runner = self.make_runner()

    def make_runner(self) -> Any:
        return Runner(self.log, self.host, Expired, timers_wait=True)

    def _loaded(self, shard: Shard[Toy], effects: tuple[Effect, ...]) -> None:
        self.runner.take_effects(shard, effects)

    def _lost(self, shard: Shard[Toy]) -> None:
        self.runner.forget(shard)

    def _count_flush(self) -> None:
        self.flushed += 1

    def create_topic(self, partitions: int) -> None:
        catalogue = self.administration.catalogue
        asyncio.run(
            catalogue.create_topic(GROUP_OFFSETS, partitions, {"cleanup.policy": "compact"})
        )

    def delete_topic(self) -> None:
        """Delete the topic in one turn of the caller's loop, which does nothing else meanwhile."""
        catalogue = self.administration.catalogue
        deletion = catalogue.delete_topic(catalogue.topic(GROUP_OFFSETS).topic_id)
        with new_executor("deletion", 1) as thread:
            thread.submit(asyncio.run, deletion).result()

    @property
    def toy(self) -> Any:
        (machine,) = self.log.machines
        return machine

    def submit(
        self,
        decide: Decide,
        key: str = "k",
        *,
        ticket: int | None = None,
        admit: Admit | None = None,
    ) -> None:
        self.runner.submit(
            Submission(key, Do(decide), self.answers.append, lambda code: code, ticket, admit)
        )

    def sync(self) -> None:
        self.administration.step()

    def restarted(self, **more: Any) -> Coordinator:
        again = type(self)(administration=self.administration, **more)
        again.log.open()
        return again


def turn_after_each_batch(monkeypatch: pytest.MonkeyPatch, turn_s: float = 0) -> None:
    """End the slice after each batch that is read; this needs no running loop."""
    turns = SimpleNamespace(is_left=False, next_slice=lambda: asyncio.sleep(turn_s))
    monkeypatch.setattr(coordinator_log, "turns_of_loop", lambda: turns)
