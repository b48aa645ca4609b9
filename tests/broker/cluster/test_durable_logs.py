"""Logs that many threads wait for are asked for together; each is told of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.broker.cluster import durable_logs
from barnabas.broker.cluster.durable_logs import WAYS_MOST, StoredLogs
from barnabas.storage.errors import Corrupt, LedSince
from barnabas.storage.log_index import Extent, IndexClosed, LogHead
from barnabas.storage.log_reading import read_log
from barnabas.storage.memory_index import MemoryIndex, MemoryLogIndex
from tests.storage.flushes import Stranger, assign, register
from tests.storage.stores import batch
from tests.waiting import wait_until

TOGETHER = 8
MANY = (WAYS_MOST + 2) * TOGETHER


class Asked(MemoryLogIndex):
    """A way to the store that tells of each question before it is asked."""

    def __init__(self, base: Base) -> None:
        super().__init__(base.index)
        self._base = base

    def heads(self, partition_ids: list[int]) -> list[LogHead]:
        with self._base.lock:
            self._base.questions.append(list(partition_ids))
        self._base.on_question()
        return super().heads(partition_ids)


class Base:
    """Where the ways come from."""

    def __init__(self) -> None:
        self.index = MemoryIndex()
        self.lock = threading.Lock()
        self.questions: list[list[int]] = []
        self.ways: list[Asked] = []
        self.on_question: Callable[[], object] = lambda: None

    def log_index(self) -> Asked:
        with self.lock:
            self.ways.append(Asked(self))
        return self.ways[-1]


@pytest.fixture
def base():
    return Base()


@pytest.fixture
def leader(base):
    return Stranger(base.index)


@pytest.fixture
def session(leader):
    return leader.session


@pytest.fixture
def logs(base, session):
    made = StoredLogs(base)
    made.begin(session)
    yield made
    made.close()


def test_what_many_wait_for_is_asked_for_together(base, session, logs, monkeypatch):
    monkeypatch.setattr(durable_logs, "TOGETHER", TOGETHER)
    epochs = {each: assign(base.index, each, session) for each in range(MANY)}
    held = threading.Event()
    base.on_question = lambda: held.wait(60)
    with ThreadPoolExecutor(MANY) as threads:
        reading = {each: threads.submit(logs.read, each, epochs[each]) for each in epochs}
        wait_until(lambda: len(base.questions) == WAYS_MOST)
        wait_until(lambda: len(logs._waiting) == MANY - sum(map(len, base.questions)))
        before = len(base.questions)
        held.set()
        assert all(each.result(60).batches == [] for each in reading.values())
    assert len(base.ways) == WAYS_MOST
    asked = [each for question in base.questions for each in question]
    assert sorted(asked) == list(range(MANY)), "each once"
    assert max(map(len, base.questions)) <= TOGETHER
    assert min(map(len, base.questions[:before])) > 0
    assert len(base.questions) - before <= MANY // TOGETHER


@pytest.mark.parametrize("flushes", [0, 1, 15, 16, 17, 40])
def test_short_and_long_logs_are_read_to_their_end(base, leader, session, logs, flushes):
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for each in range(0, 8, 2):
        for offset in range(flushes):
            leader.append(each, offset.to_bytes(8, "big") + batch()[8:])
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(logs.read, epochs, epochs.values()))
    for each, found in enumerate(read):
        assert len(found.batches) == (0 if each % 2 else flushes)
        expected = read_log(MemoryLogIndex(base.index), each)
        assert [*map(bytes, found.batches)] == [*map(bytes, expected.batches)]


@pytest.mark.parametrize("asked_again", [False, True])
def test_what_upkeep_removes_meanwhile_is_no_damage(base, leader, session, logs, asked_again):
    """A snapshot that stands makes the front needless, and whoever collects garbage removes it."""
    epoch = assign(base.index, 1, session)
    for offset in range(10):
        leader.append(1, offset.to_bytes(8, "big") + batch()[8:])
    first_extents = base.index.first_extents

    def without_the_front(heads: Sequence[LogHead], **limits: int) -> dict[int, list[Extent]]:
        found = first_extents(heads, **limits)
        return found if asked_again and len(base.questions) > 1 else {1: found[1][1:]}

    base.index.first_extents = without_the_front
    if asked_again:
        assert len(logs.read(1, epoch).batches) == 10
    else:
        with pytest.raises(Corrupt, match="is missing"):
            logs.read(1, epoch)
    assert len(base.questions) == 2


def test_each_is_told_of_its_own(base, session, logs):
    other = register(base.index, 3)
    epochs = [assign(base.index, each, session) for each in range(3)]
    epochs.append(assign(base.index, 3, other))
    wanted = [(0, epochs[0]), (1, epochs[1] + 1), (9, 0), (3, epochs[3])]
    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(logs.read, *each).exception(60) for each in wanted]
    assert told[0] is None
    assert [str(each) for each in told[1:]] == [
        f"partition 1 is led by session {session} in epoch 0, not by {session} in 1",
        "partition 9 was deleted",
        f"partition 3 is led by session {other} in epoch 0, not by {session} in 0",
    ]
    assert all(isinstance(each, LedSince) for each in told[1:])


def test_what_a_question_ends_by_is_raised_to_all_who_wait_for_it(base, session, logs):
    def closed() -> None:
        raise IndexClosed

    base.on_question = closed
    with ThreadPoolExecutor(20) as threads:
        reading = [threads.submit(logs.read, each, 0) for each in range(20)]
        assert all(isinstance(each.exception(60), IndexClosed) for each in reading)
