"""The log index in memory: its commits, permitted writers, and results of a broker's calls."""

from uuid import UUID, uuid4

import pytest

from barnabas.broker.testing.store.cluster_index import MemoryClusterIndex
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.broker.testing.store.unreliable_calls import Link
from barnabas.protocol.records import placed, read_header
from barnabas.storage.errors import IndexClosed, LedSince
from barnabas.storage.objects.blob_store import UploadKey
from barnabas.storage.replicated.cluster_index import Assignment, HandOver, Led
from barnabas.storage.replicated.cluster_transfer import SUPERSEDED, TransferRefused
from barnabas.storage.replicated.log_index import (
    Flush,
    FlushAnswer,
    IndexMisused,
    Item,
    Lane,
    LogStart,
    Outcome,
    PartitionState,
)
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.runtime.threads import start_thread
from tests.storage.flushes import assign, register
from tests.storage.stores import batch

COMMITTED = FlushAnswer(Outcome.COMMITTED)
FENCED = FlushAnswer(Outcome.FENCED)


@pytest.fixture
def index():
    return MemoryIndex()


def flush(number, *items, starts=(), lane=Lane.INLINE):
    """A flush of (partition, epoch, base offset) of one batch each."""
    parts, payload = [], b""
    for partition_id, epoch, base_offset in items:
        data = placed(bytes(batch()), read_header(batch()), base_offset, epoch)
        parts.append(
            Item(partition_id, epoch, base_offset, base_offset + 1, len(payload), len(data))
        )
        payload += data
    return Flush(lane, number, parts, starts, payload if parts else None)


def test_one_partition_that_is_led_elsewhere_refuses_all_of_a_flush_f1(index):
    mine, other = register(index, 1), register(index, 2)
    for partition_id in (1, 2):
        assign(index, partition_id, mine)
    assign(index, 3, other)
    starts = [LogStart(3, 0, 0), LogStart(4, 0, 0)]
    answer = index.commit_flush(mine, flush(0, (1, 0, 0), (2, 1, 0), starts=starts))
    assert answer == FlushAnswer(Outcome.REFUSED, frozenset({2, 3, 4}))
    assert [index.rows[each].log_end_offset for each in (1, 2, 3)] == [0, 0, 0]
    assert index.commit_flush(mine, flush(0, (1, 0, 0), (2, 0, 0))) == COMMITTED


def test_a_flush_that_was_committed_is_there_once_however_often_it_is_called_f3(index):
    session = register(index, 1)
    assign(index, 1, session)
    first = flush(0, (1, 0, 0))
    assert index.commit_flush(session, first) == COMMITTED
    assert index.commit_flush(session, first) == COMMITTED
    assert index.commit_flush(session, flush(1, (1, 0, 1))) == COMMITTED
    index.fence(session)
    assert index.commit_flush(session, first) == COMMITTED
    assert index.commit_flush(session, flush(2, (1, 0, 2))) == FENCED
    assert [len(read_log(index, 1).batches), index.rows[1].log_end_offset] == [2, 2]


def test_flushes_come_in_order_in_each_lane_f2(index):
    session = register(index, 1)
    assign(index, 1, session)
    with pytest.raises(IndexMisused, match="instead of 0"):
        index.commit_flush(session, flush(1, (1, 0, 0)))
    assert index.commit_flush(session, flush(0, (1, 0, 0))) == COMMITTED
    assert index.commit_flush(session, flush(0, (1, 0, 1), lane=Lane.BULK)) == COMMITTED
    assert index.rows[1].log_end_offset == 2


def test_inconsistent_flush_is_index_misused(index):
    session = register(index, 1)
    assign(index, 1, session)
    cut_short = Flush(Lane.INLINE, 0, [Item(1, 0, 0, 1, 50, 100)], (), bytes(100))
    without_offsets = Flush(Lane.INLINE, 0, [Item(1, 0, 0, 0, 0, 100)], (), bytes(100))
    for wrong in (
        flush(0, (1, 0, 1)),
        flush(0, (1, 0, 0), (1, 0, 1)),
        flush(0, (1, 0, 0), starts=[LogStart(1, 0, 2)]),
        cut_short,
        without_offsets,
    ):
        fresh = MemoryIndex()
        assert assign(fresh, 1, register(fresh, 1)) == 0
        with pytest.raises(IndexMisused):
            fresh.commit_flush(1, wrong)


def test_a_log_start_only_rises(index):
    session = register(index, 1)
    assign(index, 1, session)
    index.commit_flush(session, flush(0, (1, 0, 0)))
    for number, offset in enumerate((1, 0), 1):
        answer = index.commit_flush(session, flush(number, starts=[LogStart(1, 0, offset)]))
        assert answer == COMMITTED
    assert index.partition(1) == PartitionState(session, 0, 1, 1)
    assert read_log(index, 1).log_start_offset == 1


def test_a_node_has_one_session(index):
    token = UUID(int=7)
    session = index.register(token, 1, "", 1000)
    assert index.register(token, 1, "", 1000) == session, "the answer was lost"
    other = register(index, 2)
    assert index.register(UUID(int=8), 1, "", 1000) != session
    assert not index.heartbeat(session, 1000)
    assert index.heartbeat(other, 1000)


def test_session_with_an_expired_lease_is_fenced():
    now = [0.0]
    index = MemoryIndex(lambda: now[0])
    first, second = register(index, 1), register(index, 2)
    now[0] = 9.0
    assert index.heartbeat(second, 10_000)
    assert index.fence_expired() == frozenset()
    now[0] = 10.1
    assert index.fence_expired() == {first}
    assert index.fence_expired() == frozenset()
    assert not index.heartbeat(first, 10_000)


def test_superseded_import_changes_nothing(index):
    former, later = uuid4(), uuid4()
    former_session = index.begin_import(former, 1, has_topics=False)
    session = index.begin_import(later, 1, has_topics=False)
    with pytest.raises(TransferRefused, match=SUPERSEDED):
        index.import_logs(former_session, 3, {1: 0})
    index.import_logs(session, 3, {2: 0})
    with pytest.raises(TransferRefused, match=SUPERSEDED):
        index.end_import(former)
    assert index.is_importing(later)
    assert [*index.rows] == [2]


def test_a_log_is_read_in_parts(index):
    session = register(index, 1)
    assign(index, 1, session)
    for number in range(600):
        index.commit_flush(session, flush(number, (1, 0, number)))
    assert len(read_log(index, 1).batches) == 600
    assert [each.base_offset for each in index.extents(1, 598, most=1)] == [598]
    with pytest.raises(LedSince):
        read_log(index, 2)


# ------------------------------------------------------------------------------------ the way there


def test_a_way_that_is_cut_lets_nothing_through_until_it_is_mended(index):
    way = MemoryClusterIndex(index)
    way.cut()
    sessions = []
    asking = start_thread("asking", lambda: sessions.append(register(way, 1)))
    assert register(index, 2) == 1, "nobody came before"
    way.mend()
    asking.join()
    assert sessions == [2]


def test_a_way_that_is_cut_under_a_call_loses_its_answer(index):
    class Way(MemoryLogIndex):
        def _wait_until_reachable(self):
            if attempts:
                self.mend()
            super()._wait_until_reachable()

    attempts = []

    def cut_once(_flush):
        attempts.append(index.rows[1].log_end_offset)
        if len(attempts) == 1:
            way.cut()

    way = Way(index, cut_once)
    session = register(index, 1)
    assign(index, 1, session)
    assert way.commit_flush(session, flush(0, (1, 0, 0))) == COMMITTED
    assert attempts == [0, 1], "the second call finds it done"
    assert index.rows[1].log_end_offset == 1


def test_closed_index_raises_index_closed(index):
    way = MemoryLogIndex(index)
    way.cut()
    raised = []

    def ask():
        try:
            way.partition(1)
        except IndexClosed:
            raised.append(True)

    asking = start_thread("asking", ask)
    way.close()
    asking.join()
    assert raised == [True]
    with pytest.raises(IndexClosed):
        way.partition(1)


def test_every_call_goes_the_same_way(index):
    link = Link()
    way, logs = MemoryClusterIndex(index, link), MemoryLogIndex(index, link=link)
    way.lose_answers(1)
    session = register(way, 1)
    assert session == 1, "it is called again, and that changes nothing"
    logs.add_partition(1)
    assert way.assign([Assignment(1, session, -1)])
    assert way.heartbeat(session, 1000)
    way.hand_over(session, [HandOver(1, 0, None)])
    assert way.assign([Assignment(1, session, 0)])
    assert logs.commit_flush(session, flush(0, (1, 1, 0))) == COMMITTED
    assert [each.leader_epoch for each in logs.extents(1, 0, most=5)] == [1]
    way.want({1: 7})
    assert way.snapshot(0).led == [Led(1, session, 1, 7)]
    assert way.control(session)
    way.drain(session)
    assert not way.assign([Assignment(1, session, 1)])
    way.fence(session)
    assert logs.commit_flush(session, flush(1, (1, 1, 1))) == FENCED
    assert way.fence_expired() == frozenset()


def test_keys_are_dead_by_their_number_or_session_f9(index):
    session = register(index, 1)
    assign(index, 1, session)
    keys = [UploadKey(session, 0, number, 1).text for number in (0, 1)]
    assert index.dead_keys(keys) == [], "both numbers are to come"
    index.commit_flush(session, flush(0, (1, 0, 0)))
    others = ["", "seg/1/2", UploadKey(session + 1, 0, 0, 1).text]
    assert index.dead_keys([*keys, *others]) == keys[:1]
    index.fence(session)
    assert index.dead_keys(keys) == keys
    index.forget(9, -1_000_000)
    register(index, 2)
    assert index.dead_keys(keys) == keys
