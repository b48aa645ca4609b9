"""A cluster's store in memory: what it is to one broker, whole, cut off, and closed."""

from uuid import uuid4

import pytest

from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.errors import IndexClosed
from barnabas.storage.metastore.interface import MetaStoreError, TopicExists
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.log_index import Flush, Item, Lane
from barnabas.storage.runtime.threads import start_thread
from tests.real.storage.cluster_contract import LEASE_MS, ClusterIndexContract
from tests.waiting import WAIT_S

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"


@pytest.fixture
def store():
    made = MemoryStore(CLUSTER_ID)
    yield made
    made.close()


@pytest.fixture
def base(store):
    made = store.base()
    yield made
    made.close()


class TestMemoryClusterIndex(ClusterIndexContract):
    """The index in memory."""


def in_thread(call):
    """Call on a thread; returns the thread and what the call has returned or raised."""
    results = []

    def run():
        try:
            results.append(call())
        except (IndexClosed, MetaStoreError) as error:
            results.append(error)

    thread = start_thread("thread", run)
    return thread, results


def calls_of(base):
    """One call of each kind of way."""
    index, metastore, logs = base.cluster_index(), base.metastore(1), base.log_index()
    return [index.new_node_id, metastore.load, lambda: logs.partition(7)]


def test_brokers_see_what_the_others_do(store):
    one, other = store.base(), store.base()
    topic = one.metastore(1).create_topic("t", uuid4().bytes, 1, {})
    assert other.metastore(2).load().topics == (topic,)
    assert [one.metastore(1).identity.node_id, other.metastore(2).identity.node_id] == [1, 2]
    assert other.metastore(2).identity.cluster_id == CLUSTER_ID
    (partition,) = topic.partitions
    session = other.cluster_index().register(uuid4(), 2, "", LEASE_MS)
    asked = [Assignment(partition.partition_id, session, -1)]
    assert one.cluster_index().assign(asked) == {partition.partition_id}
    flush = Flush(Lane.INLINE, 0, [Item(partition.partition_id, 0, 0, 1, 0, 1)], (), b"x")
    other.log_index().commit_flush(session, flush)
    assert one.log_index().partition(partition.partition_id).log_end_offset == 1
    for each in (one, other):
        each.close()


def test_a_flush_takes_what_it_takes(store):
    flushes = []
    base = store.base(flushes.append)
    session = base.cluster_index().register(uuid4(), 1, "", LEASE_MS)
    flush = Flush(Lane.INLINE, 0, [])
    base.log_index().commit_flush(session, flush)
    assert flushes == [flush]
    base.close()


@pytest.mark.parametrize("kind", range(3))
def test_call_on_a_cut_link_waits_until_it_is_mended(store, kind):
    base, other = store.base(), store.base()
    call = calls_of(base)[kind]
    assert (base.last_error, base.warning) == ("", None)
    base.cut()
    assert base.last_error
    thread, results = in_thread(call)
    assert other.cluster_index().new_node_id(), "others are not cut off"
    assert (results, other.last_error) == ([], "")
    base.mend()
    thread.join(WAIT_S)
    assert len(results) == 1
    assert not isinstance(results[0], Exception)
    assert base.last_error == ""
    for each in (base, other):
        each.close()


@pytest.mark.parametrize("kind", range(3))
def test_closing_ends_what_waits(store, kind):
    base = store.base()
    call = calls_of(base)[kind]
    base.cut()
    thread, results = in_thread(call)
    base.close()
    thread.join(WAIT_S)
    assert isinstance(results[0], MetaStoreError if kind == 1 else IndexClosed)
    for make in (base.log_index, base.cluster_index, lambda: base.metastore(1)):
        with pytest.raises(IndexClosed):
            make()


def test_wait_on_a_cut_link_returns_after_it_is_mended(store):
    base, other = store.base(), store.base()
    index = base.cluster_index()
    other.cluster_index().register(uuid4(), 1, "", LEASE_MS)
    index.wait(0, WAIT_S)
    base.cut()
    index.wait(0, 0.01)
    thread, results = in_thread(lambda: index.wait(0, WAIT_S))
    thread.join(0.05)
    assert results == []
    base.mend()
    thread.join(WAIT_S)
    assert results == [None]
    for each in (base, other):
        each.close()


def test_closing_ends_a_wait_for_changes_of_who_is_cut_off(store):
    base = store.base()
    index = base.cluster_index()
    base.cut()
    thread, results = in_thread(lambda: index.wait(0, WAIT_S))
    base.close()
    thread.join(WAIT_S)
    assert isinstance(results[0], IndexClosed)


def test_a_change_that_is_refused_shows_no_partitions(store, base):
    metastore = base.metastore(1)
    topic_id = uuid4().bytes
    metastore.create_topic("t", topic_id, 2, {})
    with pytest.raises(TopicExists):
        metastore.create_topic("t", uuid4().bytes, 2, {})
    assert len(store.index.rows) == 2
