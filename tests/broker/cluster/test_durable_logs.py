"""Logs that many threads wait for are asked for together; each is told of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from barnabas.broker.cluster import durable_logs
from barnabas.broker.cluster.durable_logs import LONG_AT_ONCE, WAYS_MOST, StoredLogs
from barnabas.broker.topics.leadership import Leadership
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import Corrupt, LedSince, StoreDamaged
from barnabas.storage.loading import DurableLog
from barnabas.storage.log_index import Extent, IndexClosed, LogBeginning
from barnabas.storage.log_reading import FIRST_AT_ONCE, read_log
from barnabas.storage.log_store import PartitionSpec
from barnabas.storage.memory_index import MemoryIndex, MemoryLogIndex
from tests.broker.cluster.reading import read_stored
from tests.storage.flushes import Stranger, assign, register
from tests.storage.stores import batch
from tests.waiting import wait_until

TOGETHER = 8
MANY = (WAYS_MOST + 2) * TOGETHER
LONG = FIRST_AT_ONCE + 4
"""Of extents: more than come at first."""
DAMAGED = 3
"""The partition of which something cannot be read."""


class Asked(MemoryLogIndex):
    """A way to the store that tells of each question before it is asked."""

    def __init__(self, base: Base) -> None:
        super().__init__(base.index)
        self._base = base

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        with self._base.lock:
            self._base.questions.append(list(partition_ids))
        self._base.on_question()
        self._refuse("beginnings", partition_ids)
        return super().beginnings(partition_ids, most=most, most_bytes=most_bytes)

    def extents(self, partition_id: int, from_offset: int, *, most: int) -> list[Extent]:
        self._refuse("extents", [partition_id])
        found = super().extents(partition_id, from_offset, most=most)
        with self._base.lock:
            self._base.rest_questions.append(partition_id)
        return found

    def _refuse(self, question: str, partition_ids: Sequence[int]) -> None:
        if question == self._base.refused and DAMAGED in partition_ids:
            raise StoreDamaged("invalid page in block 7")


class Base:
    """Where the ways come from."""

    def __init__(self) -> None:
        self.index = MemoryIndex()
        self.lock = threading.Lock()
        self.questions: list[list[int]] = []
        self.ways: list[Asked] = []
        self.on_question: Callable[[], object] = lambda: None
        self.rest_questions: list[int] = []
        """The long logs that more was asked of than their beginnings, each as often as that was."""
        self.refused = ""
        """The question that is not answered where it is for a damaged partition, too."""

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
        reading = {each: threads.submit(read_stored, logs, each, epochs[each]) for each in epochs}
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


@pytest.mark.parametrize("flushes", [0, 1, FIRST_AT_ONCE - 1, FIRST_AT_ONCE, LONG, 3 * LONG])
def test_short_and_long_logs_are_read_to_their_end(base, leader, session, logs, flushes):
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for each in range(0, 8, 2):
        for offset in range(flushes):
            leader.append(each, offset.to_bytes(8, "big") + batch()[8:])
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(partial(read_stored, logs), epochs, epochs.values()))
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
    beginnings = base.index.beginnings

    def without_the_front(partition_ids: Sequence[int], **limits: int) -> list[LogBeginning]:
        (found,) = beginnings(partition_ids, **limits)
        if asked_again and len(base.questions) > 1:
            return [found]
        return [found._replace(extents=found.extents[1:])]

    base.index.beginnings = without_the_front
    if asked_again:
        assert len(read_stored(logs, 1, epoch).batches) == 10
    else:
        with pytest.raises(Corrupt, match="is missing"):
            read_stored(logs, 1, epoch)
    assert len(base.questions) == 2


def test_each_is_told_of_its_own(base, session, logs):
    other = register(base.index, 3)
    epochs = [assign(base.index, each, session) for each in range(3)]
    epochs.append(assign(base.index, 3, other))
    wanted = [(0, epochs[0]), (1, epochs[1] + 1), (9, 0), (3, epochs[3])]
    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(read_stored, logs, *each).exception(60) for each in wanted]
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
        reading = [threads.submit(read_stored, logs, each, 0) for each in range(20)]
        assert all(isinstance(each.exception(60), IndexClosed) for each in reading)


@pytest.mark.parametrize("question", ["beginnings", "extents"])
def test_what_cannot_be_read_of_one_keeps_no_other_from_being_read(
    base, leader, session, logs, question
):
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for each in epochs:
        for offset in range(LONG):
            leader.append(each, offset.to_bytes(8, "big") + batch()[8:])
    base.refused = question
    with ThreadPoolExecutor(8) as threads:
        reading = {each: threads.submit(read_stored, logs, each, epochs[each]) for each in epochs}
        damage = reading.pop(DAMAGED).exception(60)
        assert [len(each.result(60).batches) for each in reading.values()] == [LONG] * 7
    assert isinstance(damage, Corrupt)
    assert re.fullmatch(
        f"partition {DAMAGED} in the store, from offset [0-9]+ on, is corrupt at byte 0:"
        " invalid page in block 7",
        str(damage),
    )
    base.refused = ""  # Somebody has repaired it.
    assert len(read_stored(logs, DAMAGED, epochs[DAMAGED]).batches) == LONG


def gained(base, *partition_ids):
    """What a look brings of logs."""
    return base.index.beginnings(partition_ids, most=FIRST_AT_ONCE, most_bytes=MANY**3)


def test_what_a_look_has_brought_is_asked_for_no_more(base, leader, session, logs):
    epochs = {each: assign(base.index, each, session) for each in range(4)}
    for each in epochs:
        for offset in range(3 * each):
            leader.append(each, offset.to_bytes(8, "big") + batch()[8:])
    logs.bring(gained(base, *epochs))
    assert [len(read_stored(logs, *each).batches) for each in epochs.items()] == [0, 3, 6, 9]
    assert base.questions == []


def test_what_a_look_has_brought_is_used_once(base, leader, session, logs):
    """This broker writes behind it; what it has to read again, it reads as it is then."""
    epoch = assign(base.index, 1, session)
    logs.bring(gained(base, 1))
    assert read_stored(logs, 1, epoch).batches == []
    leader.append(1, batch())
    assert len(read_stored(logs, 1, epoch).batches) == 1
    assert base.questions == [[1]]


def test_of_a_long_log_a_look_brings_the_beginning(base, leader, session, logs):
    epoch = assign(base.index, 1, session)
    for offset in range(LONG):
        leader.append(1, offset.to_bytes(8, "big") + batch()[8:])
    logs.bring(gained(base, 1))
    assert len(read_stored(logs, 1, epoch).batches) == LONG
    assert (base.questions, base.rest_questions) == ([], [1])


def test_what_a_look_has_brought_of_another_leadership_is_not_used(base, leader, session, logs):
    other = register(base.index, 3)
    assign(base.index, 1, other)
    brought = gained(base, 1)
    epoch = assign(base.index, 1, session)
    leader.append(1, batch())
    logs.bring(brought)
    assert len(read_stored(logs, 1, epoch).batches) == 1
    logs.bring(gained(base, 1))
    with pytest.raises(LedSince, match="is led by session"):
        read_stored(logs, 1, epoch - 1)
    assert base.questions == [[1], [1]]


def test_what_was_brought_and_is_damaged_is_asked_for_again(base, leader, session, logs):
    epoch = assign(base.index, 1, session)
    for offset in range(3):
        leader.append(1, offset.to_bytes(8, "big") + batch()[8:])
    (found,) = gained(base, 1)
    logs.bring([found._replace(extents=found.extents[1:])])
    assert len(read_stored(logs, 1, epoch).batches) == 3
    assert base.questions == [[1]]


def test_little_is_held_of_what_nobody_reads(base, leader, session, logs, monkeypatch):
    monkeypatch.setattr(durable_logs, "BROUGHT_BYTES", 5 * 1024)
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for _ in range(3):  # Whatever was brought is brought again, and counted once.
        logs.bring(gained(base, *range(8)))
    assert len(logs._brought) == 5
    for each in epochs.items():
        read_stored(logs, *each)
    assert sorted(each for question in base.questions for each in question) == [0, 1, 2]
    assert (logs._brought, logs._brought_bytes) == ({}, 0)
    logs.bring(gained(base, *range(8)))
    logs.end()
    assert (logs._brought, logs._brought_bytes) == ({}, 0)


class SlowStore:
    """What fills no log before it may."""

    def __init__(self) -> None:
        self.may_fill = threading.Event()
        self.filled_ids: list[int] = []

    def filled(self, spec: PartitionSpec, durable: DurableLog) -> tuple[None, int]:
        if len(durable.batches) > 1:
            assert self.may_fill.wait(60)
        self.filled_ids.append(spec.partition_id)
        return None, len(durable.batches)


def test_few_long_logs_are_read_before_one_of_them_is_filled(base, leader, session, logs):
    long_ids, short_ids = range(8), range(8, 20)
    epochs = {each: assign(base.index, each, session) for each in (*long_ids, *short_ids)}
    for each in epochs:
        for offset in range(LONG if each in long_ids else 1):
            leader.append(each, offset.to_bytes(8, "big") + batch()[8:])
    store = SlowStore()
    leadership = Leadership(None, store, None, logs, print)

    def load(partition_id: int) -> int:
        topic_id = bytes(16)
        epoch = epochs[partition_id]
        spec = PartitionSpec(partition_id, "t", partition_id, topic_id, LogConfig(), epoch)
        return leadership._load(spec)[1]

    with ThreadPoolExecutor(len(long_ids)) as threads:
        loading = [threads.submit(load, each) for each in long_ids]
        try:
            wait_until(lambda: len(base.rest_questions) >= LONG_AT_ONCE)
            assert [load(each) for each in short_ids] == [1] * len(short_ids), "they do not wait"
            assert len(base.rest_questions) == LONG_AT_ONCE
        finally:
            store.may_fill.set()
        assert [each.result(60) for each in loading] == [LONG] * len(long_ids)
    leadership.close()
