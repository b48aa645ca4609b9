"""Logs that many threads wait for share queries; each thread gets its own result."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.leading import leadership as leadership_module
from barnabas.broker.cluster.leading.leadership import LOADS_AT_ONCE, LONG_LOADS_AT_ONCE, Leadership
from barnabas.broker.cluster.membership import durable_logs
from barnabas.broker.cluster.membership.durable_logs import (
    FILLED_AT_ONCE,
    WAYS_MOST,
    StoredLogs,
    _Request,
)
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import Corrupt, IndexClosed, LedSince, NoRoom, StoreDamaged
from barnabas.storage.log.config import LogConfig
from barnabas.storage.replicated import log_reading
from barnabas.storage.replicated.loading import DurableLog, LongLog, LongReading
from barnabas.storage.replicated.log_index import ANY_BYTES, Extent, LogBeginning, LogSnapshot
from barnabas.storage.replicated.log_reading import FIRST_AT_ONCE, read_log
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import Queue, new_event, new_executor, new_lock, new_queue
from barnabas.storage.store import loading_apart
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec
from tests.broker.cluster.reading import read_stored
from tests.cycles import cycles
from tests.storage.flushes import FlushEngine, Stranger, assign, register
from tests.storage.stores import NOW_MS, ROOT, batch, read_all
from tests.waiting import WAIT_S, until, wait_until

TOGETHER = 8
MANY = (WAYS_MOST + 2) * TOGETHER
LONG = FIRST_AT_ONCE + 4
"""Number of extents, more than the first query returns."""
SETTLED_S = 1
"""Simulated time after which all threads wait."""
DAMAGED = 3
"""The partition of which something cannot be read."""


class Asked(MemoryLogIndex):
    """Connection to the store that reports each query before it runs."""

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
        found = super().beginnings(partition_ids, most=most, most_bytes=most_bytes)
        with self._base.lock:
            self._base.answers.append(found)
        return found

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        self._refuse("extents", [partition_id])
        found = super().extents(partition_id, from_offset, most=most, most_bytes=most_bytes)
        with self._base.lock:
            self._base.rest_questions.append(partition_id)
        return found

    def _refuse(self, question: str, partition_ids: Sequence[int]) -> None:
        if question == self._base.refused and DAMAGED in partition_ids:
            raise StoreDamaged("invalid page in block 7")


class Base:
    """Factory of the connections."""

    def __init__(self) -> None:
        self.index = MemoryIndex()
        self.lock = new_lock()
        self.questions: list[list[int]] = []
        self.answers: list[list[LogBeginning]] = []
        self.ways: list[Asked] = []
        self.on_question: Callable[[], object] = lambda: None
        self.rest_questions: list[int] = []
        """Partition IDs of the long logs, once for each query of more than their beginnings."""
        self.refused = ""
        """Kind of query that fails if it includes a damaged partition."""

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


@pytest.fixture
def counted():
    """Return bytes that count those in memory."""

    class Counted(bytes):
        held = 0
        most = 0

        def __init__(self, _data: bytes) -> None:
            Counted.held += len(self)
            Counted.most = max(Counted.most, Counted.held)

        def __del__(self) -> None:
            Counted.held -= len(self)

    return Counted


def test_concurrent_log_reads_share_queries(base, session, logs, monkeypatch):
    monkeypatch.setattr(durable_logs, "TOGETHER", TOGETHER)
    epochs = {each: assign(base.index, each, session) for each in range(MANY)}
    held = new_event()
    base.on_question = lambda: held.wait(60)
    with new_executor("threads", MANY) as threads:
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
    # A thread with a connection sends its query, even if others have sent all but its own log.
    assert len(base.questions) - before <= MANY // TOGETHER + WAYS_MOST


@pytest.mark.parametrize("flushes", [0, 1, FIRST_AT_ONCE - 1, FIRST_AT_ONCE, LONG, 3 * LONG])
def test_short_and_long_logs_are_read_to_their_end(base, leader, session, logs, flushes):
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for each in range(0, 8, 2):
        for _ in range(flushes):
            leader.append(each, batch())
    with new_executor("threads", 8) as threads:
        read = list(threads.map(partial(read_stored, logs), epochs, epochs.values()))
    for each, found in enumerate(read):
        assert len(found.batches) == (0 if each % 2 else flushes)
        expected = read_log(MemoryLogIndex(base.index), each)
        assert [*map(bytes, found.batches)] == [*map(bytes, expected.batches)]


@pytest.mark.parametrize("asked_again", [False, True])
def test_extents_removed_by_upkeep_during_read_are_not_damage(
    base, leader, session, logs, asked_again
):
    """A snapshot makes earlier extents garbage, and any broker's upkeep can remove them."""
    epoch = assign(base.index, 1, session)
    for _ in range(10):
        leader.append(1, batch())
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
    assert len(base.questions) == (2 if asked_again else 3)


def test_a_log_that_changes_again_and_again_is_read_until_it_stays(base, leader, session, logs):
    epoch = assign(base.index, 1, session)
    for _ in range(10):
        leader.append(1, batch())
    beginnings = base.index.beginnings

    def without_more_and_more(partition_ids: Sequence[int], **limits: int) -> list[LogBeginning]:
        (found,), times = beginnings(partition_ids, **limits), len(base.questions)
        return [found if times == 9 else found._replace(extents=found.extents[times:])]

    base.index.beginnings = without_more_and_more
    assert len(read_stored(logs, 1, epoch).batches) == 10
    assert len(base.questions) == 9


@pytest.mark.parametrize("moves_after", [1, 2])
def test_changes_of_later_leader_during_read_are_not_damage(
    base, leader, session, logs, moves_after
):
    """Another leader takes over while the log is read, also at the second read."""
    epoch = assign(base.index, 1, session)
    for _ in range(10):
        leader.append(1, batch())
    other = register(base.index, 3)
    beginnings = base.index.beginnings

    def without_the_front(partition_ids: Sequence[int], **limits: int) -> list[LogBeginning]:
        (found,) = beginnings(partition_ids, **limits)
        if len(base.questions) == moves_after:
            assign(base.index, 1, other)
        return [found._replace(extents=found.extents[1:])]

    base.index.beginnings = without_the_front
    with pytest.raises(LedSince, match=f"is led by session {other}"):
        read_stored(logs, 1, epoch)


@pytest.mark.parametrize("then", ["nothing", "it is there", "it is led elsewhere", "it is gone"])
def test_damage_of_a_long_log_is_believed_when_it_is_found_again(
    base, leader, session, logs, then, monkeypatch
):
    """Damage is believed if nothing has changed between two reads, though upkeep can change the log
    later.
    """
    epoch = assign(base.index, 1, session)
    for _ in range(LONG):
        leader.append(1, batch())
    other = register(base.index, 3)
    extents = Asked.extents

    def without_one(*arguments: object, **limits: int) -> list[Extent]:
        found = extents(*arguments, **limits)
        if base.rest_questions == [1]:
            if then == "it is led elsewhere":
                assign(base.index, 1, other)
            elif then == "it is gone":
                del base.index.rows[1]
        elif then == "it is there":
            return found
        return [*found[:5], *found[6:]]

    monkeypatch.setattr(Asked, "extents", without_one)
    if then == "it is there":
        assert len(read_stored(logs, 1, epoch).batches) == LONG
    else:
        reasons = {
            "nothing": "the extent should start at offset 5",
            "it is led elsewhere": f"is led by session {other}",
            "it is gone": "was deleted",
        }
        expected = Corrupt if then == "nothing" else LedSince
        with pytest.raises(expected, match=reasons[then]):
            read_stored(logs, 1, epoch)
    assert base.rest_questions == [1] * (2 if then in {"nothing", "it is there"} else 1)
    assert len(logs._ways) == logs._ways_made, "all are given back"
    for _ in range(FILLED_AT_ONCE):
        assert logs._filling.acquire(blocking=False), "nobody's turn goes on"


@pytest.mark.parametrize("refused", ["", "beginnings"])
def test_a_log_of_which_nothing_is_there_is_damaged(
    base, leader, session, logs, refused, monkeypatch
):
    """Neither a short log that did not fit into a response nor a deleted one is a long log."""
    monkeypatch.setattr(durable_logs, "WAYS_MOST", 1)
    epochs = {each: assign(base.index, each, session) for each in range(5)}
    for each in epochs:
        for _ in range(3):
            leader.append(each, batch())
    gone = [1, 2]
    for each in gone:
        del base.index.rows[each].extents[:]
    base.refused = refused
    held = new_event()

    def on_question() -> None:
        assert held.wait(60)
        assert len(base.questions) < 50, "it is asked for without end"

    base.on_question = on_question
    with new_executor("threads", 5) as threads:
        reading = {0: threads.submit(read_stored, logs, 0, epochs[0])}
        wait_until(lambda: base.questions == [[0]])
        for each in range(1, 5):
            reading[each] = threads.submit(read_stored, logs, each, epochs[each])
        wait_until(lambda: len(logs._waiting) == 4)
        held.set()
        told = {each: read.exception(60) for each, read in reading.items()}
    damaged = [*gone, DAMAGED] if refused else gone
    assert [each for each, error in told.items() if isinstance(error, Corrupt)] == damaged
    assert [each for each, error in told.items() if error is None] == [*epochs.keys() - {*damaged}]
    assert all("ends before offset " in str(told[each]) for each in gone)


def test_each_log_read_gets_its_own_error(base, session, logs):
    other = register(base.index, 3)
    epochs = [assign(base.index, each, session) for each in range(3)]
    epochs.append(assign(base.index, 3, other))
    wanted = [(0, epochs[0]), (1, epochs[1] + 1), (9, 0), (3, epochs[3])]
    with new_executor("threads", 4) as threads:
        told = [threads.submit(read_stored, logs, *each).exception(60) for each in wanted]
    assert told[0] is None
    assert [str(each) for each in told[1:]] == [
        f"partition 1 is led by session {session} in epoch 0, not by {session} in 1",
        "partition 9 was deleted",
        f"partition 3 is led by session {other} in epoch 0, not by {session} in 0",
    ]
    assert all(isinstance(each, LedSince) for each in told[1:])


def test_query_error_is_raised_to_all_waiting_reads(base, session, logs):
    def closed() -> None:
        raise IndexClosed

    base.on_question = closed
    with new_executor("threads", 20) as threads:
        reading = [threads.submit(read_stored, logs, each, 0) for each in range(20)]
        assert all(isinstance(each.exception(60), IndexClosed) for each in reading)


@pytest.mark.parametrize("question", ["beginnings", "extents"])
def test_damage_of_one_log_does_not_fail_other_reads(base, leader, session, logs, question):
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for each in epochs:
        for _ in range(LONG):
            leader.append(each, batch())
    base.refused = question
    told: list[_Request] = []
    tell = logs._complete

    def noted_tell(answered: Sequence[_Request]) -> None:
        told.extend(answered)
        tell(answered)

    logs._complete = noted_tell
    with new_executor("threads", 8) as threads:
        reading = {each: threads.submit(read_stored, logs, each, epochs[each]) for each in epochs}
        damage = reading.pop(DAMAGED).exception(60)
        assert [len(each.result(60).batches) for each in reading.values()] == [LONG] * 7
    assert isinstance(damage, Corrupt)
    assert len(told) == len({*told}), "each is told once"
    assert re.fullmatch(
        f"partition {DAMAGED} in the store, from offset [0-9]+ on, is corrupt at byte 0:"
        " invalid page in block 7",
        str(damage),
    )
    base.refused = ""  # It is repaired.
    assert len(read_stored(logs, DAMAGED, epochs[DAMAGED]).batches) == LONG


def gained(base, *partition_ids):
    """Return the beginnings of logs that a poll brings."""
    return base.index.beginnings(partition_ids, most=FIRST_AT_ONCE, most_bytes=MANY**3)


def test_beginnings_from_poll_need_no_query(base, leader, session, logs):
    epochs = {each: assign(base.index, each, session) for each in range(4)}
    for each in epochs:
        for _ in range(3 * each):
            leader.append(each, batch())
    logs.bring(gained(base, *epochs))
    assert [len(read_stored(logs, *each).batches) for each in epochs.items()] == [0, 3, 6, 9]
    assert base.questions == []


def test_beginning_from_poll_is_used_once(base, leader, session, logs):
    """The broker appends after it; a later read queries the current log."""
    epoch = assign(base.index, 1, session)
    logs.bring(gained(base, 1))
    assert read_stored(logs, 1, epoch).batches == []
    leader.append(1, batch())
    assert len(read_stored(logs, 1, epoch).batches) == 1
    assert base.questions == [[1]]


def test_a_look_says_which_logs_are_long(base, leader, session, logs):
    epoch = assign(base.index, 1, session)
    for _ in range(LONG):
        leader.append(1, batch())
    logs.bring(gained(base, 1))
    assert len(read_stored(logs, 1, epoch).batches) == LONG
    assert (base.questions, base.rest_questions) == ([[1]], [1]), "what is known of it, anew"


def test_beginning_of_other_leadership_is_not_used(base, leader, session, logs):
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


def test_damaged_beginning_from_poll_is_queried_again(base, leader, session, logs):
    epoch = assign(base.index, 1, session)
    for _ in range(3):
        leader.append(1, batch())
    (found,) = gained(base, 1)
    logs.bring([found._replace(extents=found.extents[1:])])
    assert len(read_stored(logs, 1, epoch).batches) == 3
    assert base.questions == [[1]]


def test_unread_beginnings_are_limited_in_memory(base, leader, session, logs, monkeypatch):
    monkeypatch.setattr(durable_logs, "BROUGHT_BYTES", 5 * 1024)
    epochs = {each: assign(base.index, each, session) for each in range(8)}
    for _ in range(3):  # Repeated beginnings are counted once.
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
    """Store of logs that returns no extent of a long log before it may."""

    def __init__(self) -> None:
        self.may_fill = new_event()
        self.batches: dict[int, int] = {}

    def filled(self, spec: PartitionSpec, durable: DurableLog) -> tuple[None, None]:
        self.batches[spec.partition_id] = len(durable.batches)
        return None, None

    def filled_apart(self, spec: PartitionSpec, durable: DurableLog, _is_over: object) -> None:
        assert self.may_fill.wait(60)
        self.batches[spec.partition_id] = len([*durable.batches])


class SlowLoads:
    """Loads logs, of which no long one is filled before it may."""

    def __init__(self, logs: StoredLogs, epochs: dict[int, int]) -> None:
        self.store = SlowStore()
        self._epochs = epochs
        host = SimpleNamespace(loop=asyncio.get_running_loop())
        self.leadership = Leadership(host, self.store, None, logs, print)

    async def load(self, partition_id: int) -> int:
        """Return the number of batches."""
        topic_id, epoch = bytes(16), self._epochs[partition_id]
        spec = PartitionSpec(partition_id, "t", partition_id, topic_id, LogConfig(), epoch)
        loaded = await self.leadership._loaded(spec, lambda: False)
        loaded.memory.close()
        return self.store.batches[partition_id]


@pytest.fixture
def slow(monkeypatch):
    """Long logs are slow to be filled."""
    monkeypatch.setattr(leadership_module, "filled_apart", SlowStore.filled_apart)


async def test_short_logs_wait_for_no_long_one(base, leader, session, logs, slow):
    """However many of those there are, and however long they take: few are read at once."""
    long_ids = range(LOADS_AT_ONCE + 2)
    short_ids = range(len(long_ids), len(long_ids) + 8)
    epochs = {each: assign(base.index, each, session) for each in (*long_ids, *short_ids)}
    for each in epochs:
        for _ in range(LONG if each in long_ids else 1):
            leader.append(each, batch())
    loads = SlowLoads(logs, epochs)
    loading = [asyncio.create_task(loads.load(each)) for each in long_ids]
    try:
        await until(lambda: len(base.rest_questions) >= LONG_LOADS_AT_ONCE)
        async with asyncio.timeout(WAIT_S):
            assert await asyncio.gather(*map(loads.load, short_ids)) == [1] * len(short_ids)
        assert len(base.rest_questions) == LONG_LOADS_AT_ONCE < WAYS_MOST
    finally:
        loads.store.may_fill.set()
    assert await asyncio.gather(*loading) == [LONG] * len(long_ids)
    loads.leadership.close()


async def test_nothing_is_held_of_long_logs_that_wait(
    base, leader, session, logs, slow, counted, monkeypatch
):
    """Loading does not depend on the number of waiting long logs, or on their beginnings."""
    epochs = {each: assign(base.index, each, session) for each in range(20)}
    snapshot = LogSnapshot(0, bytes(1000), b"")
    for each, epoch in epochs.items():
        for _ in range(LONG):
            leader.append(each, batch())
        assert base.index.put_snapshot(session, each, epoch, snapshot)
    beginnings = Asked.beginnings

    def counted_of(found: LogBeginning) -> LogBeginning:
        extents = [each._replace(data=counted(each.data)) for each in found.extents]
        known = snapshot._replace(producers=counted(snapshot.producers))
        return LogBeginning(found.head._replace(snapshot=known), extents)

    def noted(*arguments: object, **limits: int) -> list[LogBeginning]:
        return [*map(counted_of, beginnings(*arguments, **limits))]

    monkeypatch.setattr(Asked, "beginnings", noted)
    loads = SlowLoads(logs, epochs)
    loading = [asyncio.create_task(loads.load(each)) for each in epochs]
    try:
        await asyncio.sleep(SETTLED_S)
        assert len(base.rest_questions) == LONG_LOADS_AT_ONCE
        most = LONG_LOADS_AT_ONCE * len(snapshot.producers)
        await until(lambda: counted.held <= most, lambda: f"{counted.held} bytes")
        assert counted.most > most
    finally:
        loads.store.may_fill.set()
    assert await asyncio.gather(*loading) == [LONG] * len(epochs)
    await until(lambda: counted.held == 0, lambda: f"{counted.held} bytes")
    loads.leadership.close()


@pytest.fixture
def little_memory(monkeypatch):
    """Limit the memory of a response, and of all responses."""
    monkeypatch.setattr(durable_logs, "BYTES_AT_ONCE", 4 * len(batch()))
    monkeypatch.setattr(durable_logs, "SHORT_BYTES_MOST", 12 * len(batch()))


def test_however_many_logs_come_at_once_few_bytes_are_held(base, leader, session, little_memory):
    logs = StoredLogs(base)
    logs.begin(session)
    epochs = {each: assign(base.index, each, session) for each in range(MANY)}
    for each in epochs:
        leader.append(each, batch())
    ready: Queue[contextlib.ExitStack] = new_queue()

    def load(partition_id: int) -> None:
        with contextlib.ExitStack() as memory:
            with logs.reading(partition_id, epochs[partition_id], memory) as log:
                assert len(log.batches) == 1
            ready.put(memory.pop_all())

    with new_executor("threads", MANY) as threads:
        loading = [threads.submit(load, each) for each in epochs]
        sleep(SETTLED_S)
        for _ in epochs:
            memory = ready.get(timeout=60)
            assert 0 < logs.short_bytes.held <= 13 * len(batch())
            memory.close()
        assert [each.result(60) for each in loading] == [None] * MANY
    assert logs.short_bytes.held == 0
    logs.close()


def test_of_a_long_log_an_answer_is_held(base, leader, session, logs, counted, monkeypatch):
    """However long it is: it is written while it is read."""
    size = len(batch())
    monkeypatch.setattr(log_reading, "BYTES_AT_ONCE", 10 * size)
    monkeypatch.setattr(loading_apart, "PIECE_BYTES", 5 * size)
    epoch = assign(base.index, 1, session)
    for _ in range(20 * LONG):
        leader.append(1, batch())
    extents = Asked.extents

    def noted(*arguments: object, **limits: int) -> list[Extent]:
        return [each._replace(data=counted(each.data)) for each in extents(*arguments, **limits)]

    monkeypatch.setattr(Asked, "extents", noted)
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT)
    store = LogStore(disk, ROOT, engine=FlushEngine(base.index), now_ms=lambda: NOW_MS)
    spec = PartitionSpec(1, "t", 0, bytes(16), LogConfig(segment_bytes=50 * size), epoch)
    with contextlib.ExitStack() as memory:
        with pytest.raises(LongLog) as long, logs.reading(1, epoch, memory):
            pass
        with logs.reading(1, epoch, memory, long.value.reading) as durable:
            log = loading_apart.filled_apart(store, spec, durable, lambda: False)
    assert len(read_all(log)) == 20 * LONG
    assert log.next_offset == log.high_watermark == 20 * LONG
    assert size <= counted.most <= 16 * size
    assert counted.held == logs.short_bytes.held == 0


def test_nothing_is_held_for_a_log_that_finds_no_room(base, leader, session, logs):
    """Neither its way nor its turn: others come to both, be the disk full for days."""
    epoch = assign(base.index, 1, session)
    for _ in range(LONG):
        leader.append(1, batch())
    disk = SimulatedFileSystem(capacity_bytes=LONG * len(batch()) // 2)
    disk.make_directory(ROOT)
    store = LogStore(disk, ROOT, engine=FlushEngine(base.index), now_ms=lambda: NOW_MS)
    spec = PartitionSpec(1, "t", 0, bytes(16), LogConfig(), epoch)
    with (
        contextlib.ExitStack() as memory,
        pytest.raises(NoRoom),
        logs.reading(1, epoch, memory, LongReading()) as durable,
    ):
        loading_apart.filled_apart(store, spec, durable, lambda: False)
    assert len(logs._ways) == logs._ways_made == 1
    for _ in range(FILLED_AT_ONCE):
        assert logs._filling.acquire(blocking=False)
    assert disk.used_bytes == 0


@pytest.mark.parametrize("meanwhile", ["nothing", "it went", "a newer one came"])
def test_beginning_from_poll_counts_as_short_log_once_read(
    base, leader, session, little_memory, meanwhile
):
    """A reader of a kept beginning waits for memory, too; until then it does not count, and may be
    dropped.
    """
    logs = StoredLogs(base)
    logs.begin(session)
    epoch = assign(base.index, 1, session)
    for _ in range(3):
        leader.append(1, batch())
    logs.bring(gained(base, 1))
    others = logs.short_bytes.hold(10 * len(batch()))
    with new_executor("threads", 1) as threads, contextlib.ExitStack() as memory:
        reading = threads.submit(lambda: memory.enter_context(logs.reading(1, epoch, memory)))
        sleep(SETTLED_S)
        assert not reading.done()
        if meanwhile == "it went":
            logs._take_brought(1)
        elif meanwhile == "a newer one came":
            leader.append(1, batch())
            logs.bring(gained(base, 1))
        others.close()
        found = len(reading.result(60).batches)
        assert found == (4 if meanwhile == "a newer one came" else 3)
        assert logs.short_bytes.held == found * len(batch())
    assert logs.short_bytes.held == 0
    assert base.questions == ([] if meanwhile == "nothing" else [[1]])
    assert (logs._brought, logs._brought_bytes) == ({}, 0)
    logs.close()


def test_logs_that_do_not_fit_into_response_are_queried_again(
    base, session, little_memory, monkeypatch
):
    """The producers' snapshot of a log can be larger than all its records, and than a response."""
    monkeypatch.setattr(durable_logs, "WAYS_MOST", 1)
    logs = StoredLogs(base)
    logs.begin(session)
    epochs = {each: assign(base.index, each, session) for each in range(16)}
    sizes = {each: len(batch()) * (9 if each == DAMAGED else 1) for each in epochs}
    for each, epoch in epochs.items():
        snapshot = LogSnapshot(0, bytes(sizes[each]), b"")
        assert base.index.put_snapshot(session, each, epoch, snapshot)
    held = new_event()
    base.on_question = lambda: held.wait(60)
    with new_executor("threads", 20) as threads:
        gone = [threads.submit(read_stored, logs, each, 0) for each in range(16, 20)]
        reading = {each: threads.submit(read_stored, logs, each, epochs[each]) for each in epochs}
        wait_until(lambda: base.questions)
        wait_until(lambda: len(logs._waiting) + len(base.questions[0]) == 20)
        held.set()
        assert {
            each: len(read.result(60).snapshot.producers) for each, read in reading.items()
        } == (sizes)
        assert all(isinstance(each.exception(60), LedSince) for each in gone)
    answered = [[each.head.partition_id for each in answer] for answer in base.answers]
    assert sorted(each for answer in answered for each in answer) == list(epochs), "each once"
    for answer in answered:
        most = durable_logs.BYTES_AT_ONCE
        assert len(answer) <= 1 or sum(sizes[each] for each in answer) <= most
    assert logs.short_bytes.held == 0
    logs.close()


def test_ways_are_closed_when_nothing_was_read_for_long(base, leader, session, logs, monkeypatch):
    monkeypatch.setattr(durable_logs, "IDLE_S", 0.1)
    epoch = assign(base.index, 1, session)
    leader.append(1, batch())
    for count in (1, 2):
        assert len(read_stored(logs, 1, epoch).batches) == 1
        assert len(base.ways) == count, "one that is closed is of no use"
        wait_until(lambda: all(each.is_closed for each in base.ways))
    assert logs._ways_made == 0
    assert logs._idle_timer is None


def test_ways_that_are_in_use_are_not_closed(base, session, logs):
    epoch = assign(base.index, 1, session)
    read_stored(logs, 1, epoch)
    held = new_event()
    base.on_question = lambda: held.wait(60)
    with new_executor("threads", 1) as threads:
        reading = threads.submit(read_stored, logs, 1, epoch)
        wait_until(lambda: len(base.questions) == 2)
        timer = logs._idle_timer
        logs._close_idle_ways(logs._questions)
        assert logs._idle_timer is not timer, "it will be looked again"
        assert [each.is_closed for each in base.ways] == [False]
        held.set()
        assert reading.result(60).batches == []
    logs._close_idle_ways(logs._questions - 1)
    assert [each.is_closed for each in base.ways] == [False]
    logs._close_idle_ways(logs._questions)
    assert [each.is_closed for each in base.ways] == [True]
    timer.set()


def test_nothing_runs_on_once_it_is_closed(base, session):
    logs = StoredLogs(base)
    logs.begin(session)
    epoch = assign(base.index, 1, session)
    read_stored(logs, 1, epoch)
    timer = logs._idle_timer
    assert not timer.is_set()
    logs.close()
    assert timer.is_set()


def test_error_of_a_query_leaves_no_cycle():
    with cycles() as found:
        request = _Request(1, 2, 3)
        request.errors.append(IndexClosed())
        with contextlib.suppress(IndexClosed):
            request.beginning()
        del request
    assert not found
