"""Two drivers of one checkpoint, in every order of their steps.

The first one, A, has written a batch and planned the next when B is started. Each step that the
other could see is taken when the schedule says so; all schedules are played, one after the other:

    A         decide · finish · plan · decide
    B         look · fence · start · (plan) · look · fence · decide · finish

There are 330 orders. By night one kind of sink plays them all, and the other kinds every tenth; by
day a third of these: every tenth, and every thirtieth.

"look" is all that is read ahead of the fence, "fence" is InitProducerId and reading the ledger
again, "start" is Spark reading the checkpoint, "plan" and "finish" are its files, which are written
once. B is started as `python -m barnabas.spark run` does it, and again when A came between.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextvars import ContextVar

import pytest

from barnabas.spark_connector.cluster.producer import TransactionalProducer
from barnabas.spark_connector.errors import Fenced, Overtaken, TransactionLost
from barnabas.spark_connector.ledger.ownership import Ownership
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.spark_connector.sinks.starting import take_the_sink
from barnabas.storage.runtime.threads import new_queue, start_thread
from barnabas.testing import Broker
from tests.products import case
from tests.spark_connector.checkpointed import (
    DATA_SOURCE,
    KINDS,
    SINGLE,
    ConcurrentUpdate,
    Driver,
    SparkCheckpoint,
    committed,
    options,
)

PINNING = {"transaction.two.phase.commit.enable": "true"}
LAST = 3
STEPS_OF_A = 4
PATIENCE_S = 60
STARTS_MAX = 5
PLAYS_OF_A_LEDGER = 10
GIVES_UP = (Fenced, Overtaken, ConcurrentUpdate, TransactionLost)
"""Errors that end a driver when another one is active."""

_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
"""Driver of this thread."""
_kept: ContextVar[dict[int, list]] = ContextVar("kept")
"""The objects that the driver of this thread keeps, by the id of their owner."""


class PerThread:
    """A process's kept objects, for drivers that are threads."""

    def __init__(self) -> None:
        self.all: list = []

    def _mine(self) -> list:
        if _kept.get(None) is None:
            _kept.set({})
        return _kept.get().setdefault(id(self), [])

    def __bool__(self) -> bool:
        return bool(self._mine())

    def pop(self):
        return self._mine().pop()

    def append(self, each) -> None:
        self._mine().append(each)


class Actor:
    """A driver in a thread, which takes a step at each command."""

    def __init__(self, name: str, work) -> None:
        self.name = name
        self.error: Exception | None = None
        self.is_over = False
        self.at = "beginning"
        self._may_go = new_queue()
        self._stands = new_queue()
        self._thread = start_thread(name, lambda: self._run(work))
        self._wait()

    def step(self) -> None:
        self._may_go.put(None)
        self._wait()

    def pause(self, place: str) -> None:
        """Called by the driver, ahead of what others can see."""
        self.at = place
        self._stands.put(None)
        self._may_go.get(timeout=PATIENCE_S)

    def _wait(self) -> None:
        self._stands.get(timeout=PATIENCE_S)

    def _run(self, work) -> None:
        _actor.set(self)
        try:
            self.pause("beginning")
            work()
        except Exception as error:  # noqa: BLE001 - judged by the test
            self.error = error
        finally:
            for kept in (*kept_decider._kept._mine(), *starting._kept._mine()):
                (kept.decider if hasattr(kept, "decider") else kept.cluster).close()
            self.is_over = True
            self._stands.put(None)


def pause(place: str) -> None:
    actor = _actor.get()
    if actor is not None:
        actor.pause(place)


@pytest.fixture
def _steps(monkeypatch):
    """Stop drivers before each effect that the others can see."""

    def stop_ahead_of(owner, name, place, when=lambda _self: True):
        original = getattr(owner, name)

        def paused(self, *given, **named):
            if when(self):
                pause(place)
            return original(self, *given, **named)

        monkeypatch.setattr(owner, name, paused)

    stop_ahead_of(Ownership, "_refuse_in_time", "look")
    stop_ahead_of(
        TransactionalProducer, "begin", "fence", lambda self: self._id.count(".") == 1
    )  # A task's has more dots.
    stop_ahead_of(Ownership, "write_decision", "decide")
    stop_ahead_of(SparkCheckpoint, "plan", "plan")
    stop_ahead_of(SparkCheckpoint, "finish", "finish")
    stop_ahead_of(Driver, "__init__", "start")
    monkeypatch.setattr(kept_decider, "_kept", PerThread())
    monkeypatch.setattr(starting, "_kept", PerThread())


class Play:
    """One schedule: which driver takes each step."""

    def __init__(self, broker, kind: str, directory, stride: int, number: int) -> None:
        sink_id = f"{kind}-{stride}-{number}"
        self.output = f"out-{sink_id}"
        broker.create_topic(self.output)
        self.files = SparkCheckpoint(directory / sink_id)
        # Each driver reads the whole ledger several times: not that of hundreds of plays.
        ledger = f"ledger-{kind}-{stride}-{number // PLAYS_OF_A_LEDGER}"
        self.options = options(broker, sink_id, self.files, topic=self.output, ledgerTopic=ledger)
        self.kind = kind
        self.a = Actor("A", self._run_a)
        # Alone, up to the decision about its second batch.
        decisions = 0
        while decisions < 2:
            self.a.step()
            decisions += self.a.at == "decide"
        self.b = Actor("B", self._run_b)
        self.b.step()

    def _run_a(self) -> None:
        self._drive()

    def _run_b(self) -> None:
        for start in itertools.count(1):
            take_the_sink(self.options, self.files.topics, is_two_phase=self.kind != SINGLE)
            try:
                self._drive()
            except _Restart as restart:
                if start == STARTS_MAX:
                    raise restart.__cause__ from None
            else:
                return

    def _drive(self) -> None:
        driver = Driver(self.kind, self.options, self.files)
        try:
            driver.run(LAST)
        except (ConcurrentUpdate, Overtaken) as error:
            if driver.is_first:
                raise _Restart from error
            raise
        finally:
            driver.close()

    def play(self, schedule: tuple[str, ...]) -> list[str]:
        """Follow a schedule, then let B end and after it A; returns who took which step."""
        taken = []
        wanted = iter(schedule)
        while not (self.a.is_over and self.b.is_over):
            name = next(wanted, "B")
            actor = self.a if (name == "A" and not self.a.is_over) or self.b.is_over else self.b
            taken.append(f"{actor.name}:{actor.at}")
            actor.step()
        return taken


class _Restart(Exception):
    """The query is to be started again, as the command does it."""


def schedules():
    """All orders in which B's steps come between A's, the rest of them after it."""
    for places in itertools.combinations_with_replacement(range(8), STEPS_OF_A):
        order = []
        for place in places:
            order += ["B"] * (place - order.count("B")) + ["A"]
        yield tuple(order)


@pytest.fixture(scope="module")
def broker():
    with Broker(config=PINNING) as running:
        running.create_topic("in")
        yield running


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_steps")
@pytest.mark.parametrize(
    ("kind", "stride"),
    [
        *(case(kind, 10 if kind == SINGLE else 30, in_test=True) for kind in KINDS),
        *(case(kind, 1 if kind == SINGLE else 10, in_test=False) for kind in KINDS),
    ],
)
def test_the_later_driver_wins_and_nothing_is_lost_or_doubled(broker, tmp_path, kind, stride):
    ends = Counter()
    chosen = list(schedules())[::stride]
    for number, schedule in enumerate(chosen):
        play = Play(broker, kind, tmp_path, stride, number)
        taken = play.play(schedule)
        said = f"{' '.join(taken)}\nA: {play.a.error!r}\nB: {play.b.error!r}"
        assert play.b.error is None, said
        a = play.a.error
        if isinstance(a, _Restart):
            a = a.__cause__
        assert a is None or isinstance(a, GIVES_UP), said
        assert committed(broker, play.output) == {f"{each}": 1 for each in range(LAST + 1)}, said
        ends[type(a).__name__] += 1
    assert ends["Fenced"] + ends["TransactionLost"] > 0
    assert sum(ends.values()) == 330 / stride
    if kind != DATA_SOURCE:
        assert ends["NoneType"] == 0, ends
