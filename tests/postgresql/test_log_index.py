"""The functions in PostgreSQL, one after the other: what each answer means, and what it leaves."""

import itertools
from uuid import uuid4

import pytest

from barnabas.storage.postgresql.postgresql_cluster_index import _LOOK
from barnabas.storage.postgresql.postgresql_log_index import _BEGINNINGS, _EXTENTS
from barnabas.storage.replicated.cluster_index import HandOver
from barnabas.storage.replicated.log_index import (
    Extent,
    Flush,
    FlushAnswer,
    IndexMisused,
    Item,
    Lane,
    LogSnapshot,
    LogStart,
    Outcome,
)
from tests.postgresql.whole_index import WholeIndex

COMMITTED = FlushAnswer(Outcome.COMMITTED)
FENCED = FlushAnswer(Outcome.FENCED)
LEASE_MS = 60_000
NODES = itertools.count()
PARTITIONS = itertools.count()


@pytest.fixture(scope="module")
def index(server):
    opened = WholeIndex.open(server.url)
    yield opened
    opened.close()


@pytest.fixture
def session(index):
    return register(index)


@pytest.fixture
def partition(index, session):
    return led(index, session)


def register(index, node_id=None, lease_ms=LEASE_MS):
    node_id = next(NODES) if node_id is None else node_id
    return index.register(uuid4(), node_id, "broker:9092", lease_ms)


def led(index, session):
    partition_id = next(PARTITIONS)
    index.add_partition(partition_id)
    assert index.assign_one(partition_id, session, -1)
    return partition_id


def refused(*partition_ids):
    return FlushAnswer(Outcome.REFUSED, frozenset(partition_ids))


def flush(number, *items, payload=b"0123456789", lane=Lane.INLINE, starts=()):
    """Items as (partition, epoch, base, next), each of them all of the payload."""
    whole = [Item(*item, 0, len(payload)) for item in items]
    return Flush(lane, number, whole, starts, payload if items else None)


def test_a_flush_is_there_with_its_bytes(index, session, partition):
    other = led(index, session)
    items = [Item(other, 0, 0, 2, 3, 4), Item(partition, 0, 0, 7, 0, 3)]
    assert (
        index.commit_flush(session, Flush(Lane.INLINE, 0, items, payload=b"abcdefg")) == COMMITTED
    )
    assert index.extents(partition, 0, most=9) == [Extent(0, 7, 0, b"abc")]
    assert index.extents(other, 1, most=9) == [Extent(0, 2, 0, b"defg")]
    assert index.partition(partition) == (session, 0, 0, 7)


def test_called_again_it_is_there_once_f3(index, session, partition):
    first = flush(0, (partition, 0, 0, 1))
    for _ in range(3):
        assert index.commit_flush(session, first) == COMMITTED
    assert index.commit_flush(session, flush(1, (partition, 0, 1, 2))) == COMMITTED
    assert index.commit_flush(session, first) == COMMITTED
    assert len(index.extents(partition, 0, most=9)) == 2


def test_repeated_commit_of_a_flush_is_a_write_f3(server, index, session, partition):
    first = flush(0, (partition, 0, 0, 1))
    index.commit_flush(session, first)
    before = lane_version(server, session)
    index.commit_flush(session, first)
    assert lane_version(server, session) != before


@pytest.mark.parametrize("moved", [True, False])
def test_refused_or_fenced_flush_is_a_write(server, index, session, partition, moved):
    if moved:
        index.assign_one(partition, register(index), 0)
    else:
        index.fence(session)
    before = lane_version(server, session)
    answer = index.commit_flush(session, flush(0, (partition, 0, 0, 1)))
    assert answer == (refused(partition) if moved else FENCED)
    assert lane_version(server, session) != before


def lane_version(server, session):
    """Changes with every write of the row."""
    return server.execute(
        "SELECT xmin::text FROM barnabas.lanes WHERE session_id = %s AND lane = 0", session
    )


def test_one_partition_of_another_session_refuses_the_flush_f1(index, session, partition):
    lost, released, unknown, older = led(index, session), led(index, session), 10**9, partition
    index.assign_one(lost, register(index), 0)
    index.hand_over(session, [HandOver(released, 0, None)])
    for wrong in (lost, released, unknown):
        items = [(partition, 0, 0, 1), (wrong, 0, 0, 1)]
        assert index.commit_flush(session, flush(0, *items)) == refused(wrong)
    assert index.commit_flush(session, flush(0, (older, -1, 0, 1))) == refused(older)
    assert index.extents(partition, 0, most=9) == []
    # The number was not used up, and what was refused does not come back.
    assert index.commit_flush(session, flush(0, (partition, 0, 0, 2))) == COMMITTED
    assert index.extents(partition, 0, most=9) == [Extent(0, 2, 0, b"0123456789")]


def test_log_start_of_another_session_refuses_the_flush_f1(index, session, partition):
    lost = led(index, session)
    index.assign_one(lost, register(index), 0)
    attempt = flush(0, (partition, 0, 0, 1), starts=[LogStart(lost, 0, 0)])
    assert index.commit_flush(session, attempt) == refused(lost)
    assert index.partition(partition) == (session, 0, 0, 0)


def test_numbers_come_in_order_f2(index, session, partition):
    with pytest.raises(IndexMisused, match=r"flush 1 of session .* comes instead of 0"):
        index.commit_flush(session, flush(1, (partition, 0, 0, 1)))
    assert index.extents(partition, 0, most=9) == []


def test_lanes_have_orders_of_their_own_f2(index, session, partition):
    for lane in (Lane.INLINE, Lane.BULK):
        base = lane.value
        answer = index.commit_flush(session, flush(0, (partition, 0, base, base + 1), lane=lane))
        assert answer == COMMITTED


def test_an_object_elsewhere_is_named_by_its_key(server, index, session, partition):
    key = f"wal/{uuid4()}"
    items = [Item(partition, 0, 0, 5, 100, 50)]
    assert index.commit_flush(session, Flush(Lane.BULK, 0, items, key=key)) == COMMITTED
    assert server.execute(
        "SELECT session_id, live_extents FROM barnabas.objects WHERE key = %s", key
    ) == [(session, 1)]


def test_flush_that_does_not_follow_the_log_raises_index_misused(index, session, partition):
    index.commit_flush(session, flush(0, (partition, 0, 0, 5)))
    for base in (4, 6):
        with pytest.raises(IndexMisused, match="does not begin where its logs end"):
            index.commit_flush(session, flush(1, (partition, 0, base, 9)))
    with pytest.raises(IndexMisused, match="does not begin where its logs end"):
        index.commit_flush(session, flush(1, (partition, 0, 5, 6), (partition, 0, 6, 7)))
    assert index.partition(partition) == (session, 0, 0, 5)
    assert index.commit_flush(session, flush(1, (partition, 0, 5, 6))) == COMMITTED


def test_bytes_that_are_not_in_the_payload_are_a_bug(index, session, partition):
    item = Item(partition, 0, 0, 1, 3, 5)
    with pytest.raises(IndexMisused, match="names more than its payload"):
        index.commit_flush(session, Flush(Lane.INLINE, 0, [item], payload=b"1234567"))


def test_a_session_that_is_not_there_has_ended(index):
    assert index.commit_flush(10**9, flush(0)) == FlushAnswer(Outcome.FENCED)


def test_log_starts_rise_within_the_log(index, session, partition):
    index.commit_flush(session, flush(0, (partition, 0, 0, 9)))
    for number, start, expected in [(1, 4, 4), (2, 3, 4), (3, 9, 9)]:
        starts = [LogStart(partition, 0, start)]
        assert index.commit_flush(session, flush(number, starts=starts)) == COMMITTED
        assert index.partition(partition) == (session, 0, expected, 9)
    with pytest.raises(IndexMisused, match="check constraint"):
        index.commit_flush(session, flush(4, starts=[LogStart(partition, 0, 10)]))


def test_nothing_of_a_fenced_session_is_committed_but_what_was_stays_so(index, session, partition):
    first = flush(0, (partition, 0, 0, 1))
    index.commit_flush(session, first)
    index.fence(session)
    assert index.commit_flush(session, flush(1, (partition, 0, 1, 2))) == FENCED
    assert index.commit_flush(session, first) == COMMITTED
    assert not index.heartbeat(session, LEASE_MS)
    assert index.partition(partition) == (session, 0, 0, 1)


def test_draining_session_continues_with_its_partitions(index, session, partition):
    index.drain(session)
    assert index.heartbeat(session, LEASE_MS)
    assert index.commit_flush(session, flush(0, (partition, 0, 0, 1))) == COMMITTED
    another = next(PARTITIONS)
    index.add_partition(another)
    assert not index.assign_one(another, session, -1)
    index.fence(session)
    index.drain(session)
    assert not index.heartbeat(session, LEASE_MS)


def test_extents_are_read_from_anywhere(index, session, partition):
    for number in range(5):
        base = 2 * number
        index.commit_flush(
            session, flush(number, (partition, 0, base, base + 2), payload=b"%d" % number)
        )
    found = index.extents(partition, 5, most=2)
    assert found == [Extent(4, 6, 0, b"2"), Extent(6, 8, 0, b"3")]
    assert [each.data for each in index.extents(partition, 8, most=9)] == [b"4"]
    assert index.extents(partition, 10, most=9) == []


def test_binary_and_text_results_are_equal(index, session):
    """The results contain each type of column, also empty ones."""
    other = index.register(uuid4(), next(NODES), '{"a": "\u00fc \\\\ "b""}', LEASE_MS)
    index.drain(other)
    every, some, empty = ids = [led(index, session) for _ in range(3)]
    data = bytes(range(256))
    items = [Item(every, 0, 0, 2**40, 0, 256), Item(some, 0, 0, 1, 255, 1)]
    assert index.commit_flush(session, Flush(Lane.INLINE, 0, items, (), data)) == COMMITTED
    assert index.put_snapshot(session, every, 0, LogSnapshot(2**40, data[::-1], b""))
    index.want({empty: 7})
    index.pin({some: 8})
    index.add_partition(next(PARTITIONS))  # No session leads it, in epoch -1.
    now = index.snapshot(0).version
    for statement, arguments in (
        (_EXTENTS, (every, 0, 9, 999)),
        (_BEGINNINGS, (ids, 9, 999)),
        (_BEGINNINGS, (ids, 0, 999)),
        (_LOOK, (0, 0, session, 9, 9, 999)),
        (_LOOK, (now, now, session, 9, 9, 999)),
    ):
        asked = [
            index._primary.execute(statement, arguments, binary=binary) for binary in (True, False)
        ]
        assert asked[0] == asked[1]
        assert [[type(each) for each in row] for row in asked[0]] == (
            [[type(each) for each in row] for row in asked[1]]
        )
        assert asked[0]
    assert index.extents(every, 0, most=1) == [Extent(0, 2**40, 0, data)]
