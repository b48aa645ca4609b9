"""Parts of many logs that are taken over at once: few queries, and none of them lost."""

import pytest

from barnabas.broker.cluster.membership.parts_reader import LOGS_AT_ONCE, PartsReader
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import IndexClosed, StoreDamaged
from barnabas.storage.replicated.log_index import LogHead, LogSnapshot, PartitionState
from barnabas.storage.runtime.threads import new_event, start_thread
from tests.postgresql.old_logs import part_up_to
from tests.storage.flushes import assign, register
from tests.storage.remote import Cold
from tests.waiting import wait_until

LOGS = LOGS_AT_ONCE + 20
END = 100


class Counted(MemoryLogIndex):
    """A connection that counts queries of parts, and can hold or fail them."""

    queries = ()
    hold = None
    damaged = frozenset()

    def parts(self, from_offsets, *, most):
        type(self).queries = (*self.queries, len(from_offsets))
        if self.hold is not None:
            self.hold.wait(60)
        if not self.damaged.isdisjoint(from_offsets):
            raise StoreDamaged("a page cannot be read")
        return super().parts(from_offsets, most=most)


@pytest.fixture
def way():
    return type("Way", (Counted,), {})


@pytest.fixture
def heads():
    return [
        LogHead(partition_id, PartitionState(1, 0, 0, END), LogSnapshot(END, b"", b""))
        for partition_id in range(1, LOGS + 1)
    ]


@pytest.fixture
def cold(way, heads):
    index = MemoryIndex()
    session = register(index, 1)
    for head in heads:
        assign(index, head.partition_id, session)
        index.rows[head.partition_id].parts = [part_up_to(END, head.partition_id)]
    made = Cold(index, way=way)
    yield made.store
    made.store.close()


def read_at_once(reader, heads):
    """Start a read for each head; return their results and threads."""
    found = {}

    def read(head):
        try:
            found[head.partition_id] = reader.read(head)
        except IndexClosed as closed:
            found[head.partition_id] = closed

    return found, [start_thread("load", lambda head=head: read(head)) for head in heads]


def test_logs_that_come_during_a_query_share_the_next_ones(cold, way, heads):
    reader = PartsReader(cold)
    way.hold = new_event()
    found, threads = read_at_once(reader, heads[:1])
    wait_until(lambda: way.queries == (1,), "a query")
    others, more = read_at_once(reader, heads[1:])
    wait_until(lambda: len(reader._waiting) == LOGS, "all logs wait")
    way.hold.set()
    for thread in (*threads, *more):
        thread.join(60)
    sizes = {key: [facts.size_bytes for _, facts in each] for key, each in (found | others).items()}
    assert sizes == {head.partition_id: [head.partition_id] for head in heads}
    assert way.queries == (1, LOGS_AT_ONCE, LOGS - 1 - LOGS_AT_ONCE)
    assert reader._waiting == []


def test_log_whose_parts_cannot_be_read_spoils_no_other_log(cold, way, heads):
    way.damaged = frozenset({2})
    reader = PartsReader(cold)
    way.hold = new_event()
    found, threads = read_at_once(reader, heads[:1])
    wait_until(lambda: way.queries == (1,), "a query")
    others, more = read_at_once(reader, heads[1:4])
    wait_until(lambda: len(reader._waiting) == 4, "all logs wait")
    way.hold.set()
    for thread in (*threads, *more):
        thread.join(60)
    assert {key: len(each) for key, each in (found | others).items()} == {1: 1, 2: 0, 3: 1, 4: 1}


def test_two_loads_of_one_log_get_its_parts(cold, way, heads):
    reader = PartsReader(cold)
    way.hold = new_event()
    found, threads = read_at_once(reader, heads[:1])
    wait_until(lambda: way.queries == (1,), "a query")
    others, more = read_at_once(reader, [heads[1], heads[1]])
    wait_until(lambda: len(reader._waiting) == 3, "all loads wait")
    way.hold.set()
    for thread in (*threads, *more):
        thread.join(60)
    assert {*found, *others} == {1, 2}
    assert reader._waiting == []


def test_end_of_the_store_ends_all_waits(cold, way, heads):
    reader = PartsReader(cold)
    way.hold = new_event()
    found, threads = read_at_once(reader, heads[:3])
    wait_until(lambda: len(reader._waiting) == 3, "all logs wait")
    cold.close()
    way.hold.set()
    for thread in threads:
        thread.join(60)
    assert {type(each) for each in found.values()} == {IndexClosed}
    assert reader._waiting == []
