"""Upkeep of the tables in PostgreSQL: they stay small."""

import threading
from contextlib import closing
from random import Random
from uuid import uuid4

import pytest

from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from barnabas.storage.postgresql.postgresql_blob_store import PostgreSqlBlobStore
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.replicated.log_index import Extent, Flush, Lane, Outcome
from barnabas.storage.replicated.object_reading import ObjectReader
from tests.postgresql.whole_index import WholeIndex
from tests.seeds import SEED
from tests.storage.packing_contract import PackingContract
from tests.storage.segment_contract import SegmentsInObjectsContract, SegmentsInRowsContract
from tests.storage.upkeep_contract import (
    MANY,
    STORE,
    Leader,
    UpkeepContract,
    collect_all,
    forget_all,
)


@pytest.fixture(scope="module")
def index(server):
    # What is counted was done at the first attempt, however busy the machine is.
    opened = WholeIndex.open(server.url, patience_s=60)
    yield opened
    opened.close()


@pytest.fixture
def assign(index):
    def assign_next(partition_id, session):
        return index.assign_one(partition_id, session, index.partition(partition_id).leader_epoch)

    return assign_next


@pytest.fixture
def remove(server):
    """Return a function that removes a partition, whose topic is deleted already."""
    statement = "SELECT barnabas.remove_partitions(ARRAY[%s])"
    return lambda partition_id: server.execute(statement, partition_id)


class Tables:
    @pytest.fixture(autouse=True)
    def _objects_have_what_lies_in_them(self, server):
        yield
        assert server.execute(MISCOUNTED) == []

    @pytest.fixture(autouse=True)
    def _snapshots_go_with_their_partitions(self, server):
        yield
        assert server.execute(_LEFT_BEHIND) == []


class TestPostgreSql(Tables, UpkeepContract):
    pass


class TestPacking(Tables, PackingContract):
    pass


class TestSegments(Tables, SegmentsInRowsContract):
    @pytest.fixture
    def blobs(self, server):
        opened = PostgreSqlBlobStore.begin(Primary(server.url))
        yield opened
        opened.delete(opened.list("seg/", "", MANY))
        opened.close()


class TestSegmentsInObjects(Tables, SegmentsInObjectsContract):
    @pytest.fixture
    def objects(self, tmp_path):
        return ObjectBlobStore.open(Address(f"file://{tmp_path}"))

    @pytest.fixture
    def index(self, server, objects):
        reader = ObjectReader(lambda: objects)
        opened = WholeIndex.begin(Primary(server.url, patience_s=60), reader)
        yield opened
        opened.close()
        reader.close()

    @pytest.fixture
    def blobs(self, objects):
        return objects


MISCOUNTED = """
SELECT object_id, live_extents, count(partition_id), dead_bytes
FROM barnabas.objects LEFT JOIN barnabas.extents USING (object_id)
GROUP BY object_id HAVING live_extents <> count(partition_id) OR live_extents = 0
    OR dead_bytes <> octet_length(payload) - sum(length)
    OR (dead_bytes * 4 > octet_length(payload)) <> (sparse_since IS NOT NULL)
"""
_LEFT_BEHIND = """
SELECT partition_id FROM barnabas.snapshots
WHERE partition_id NOT IN (SELECT partition_id FROM barnabas.partitions)
"""


def test_an_object_goes_with_the_last_extent_in_it_f6(server, index, assign):
    leader = Leader(index, assign)
    one, other = leader.lead(), leader.lead()
    leader.append(one, other)
    (session,) = {leader.session}
    count = "SELECT count(*) FROM barnabas.objects WHERE session_id = %s"
    for partition_id, left in ((one, 1), (other, 0)):
        leader.snapshot(partition_id, 2)
        leader.start_at(partition_id, 2)
        collect_all(index)
        assert server.execute(count, session) == [(left,)]


def test_the_key_of_an_object_elsewhere_is_noted_when_nothing_lies_in_it(server, index, assign):
    leader = Leader(index, assign)
    partition_id = leader.lead()
    leader.append(partition_id, key="wal/1/2/0-0-0")
    keys = "SELECT key FROM barnabas.dereferenced_keys"
    leader.snapshot(partition_id, 2)
    assert server.execute(keys) == []
    leader.start_at(partition_id, 2)
    collect_all(index)
    assert server.execute(keys) == [("wal/1/2/0-0-0",)]


def test_a_partition_stays_known_as_long_as_its_topics_tombstone_does(
    server, index, assign, remove
):
    leader = Leader(index, assign)
    partition_id = leader.lead()
    leader.append(partition_id)
    topic_id = partition_id.to_bytes(16, "big")
    server.execute("INSERT INTO barnabas.topics VALUES (%s, 'gone', true)", topic_id)
    server.execute(
        "INSERT INTO barnabas.topic_partitions VALUES (%s, %s, 0)", partition_id, topic_id
    )
    remove(partition_id)
    assert collect_all(index) == 1
    assert index.partition(partition_id) == (None, 0, 0, 2)
    server.execute("DELETE FROM barnabas.topics WHERE topic_id = %s", topic_id)
    assert collect_all(index) == 0
    assert index.partition(partition_id) is None


def test_forgotten_metastore_connection_continues(server, index):
    with closing(PostgreSqlMetaStore.open(server.url, node_id=1, new_cluster_id="c")) as store:
        store.set_group_configs("g", {"a": "1"})
        assert index.forget(MANY, 600_000) == 0
        forget_all(index)
        ways = "SELECT count(*) FROM barnabas.metastores"
        assert server.execute(ways) == [(0,)]
        for value in ("2", "3"):
            store.set_group_configs("g", {"a": value})
            assert store.load().group_configs == {"g": {"a": value}}
        assert server.execute(ways) == [(1,)]


def test_sessions_are_forgotten_while_others_start_and_end(server, index):
    """All sessions end, and no row is left."""
    forget_all(index)
    ways = [WholeIndex.open(server.url, patience_s=60) for _ in range(3)]
    failures = []

    def come_and_go(way, node_id):
        try:
            for number in range(25):
                session = way.register(uuid4(), node_id, "", 0, STORE)
                flush = Flush(Lane.INLINE, 0, [])
                assert way.commit_flush(session, flush).outcome is not Outcome.REFUSED
                way.control(session)
                if number % 2:
                    way.fence(session)
                way.heartbeat(session, 0)
        except BaseException as error:  # noqa: BLE001  Reported below.
            failures.append(error)

    def forget():
        try:
            while not ended.is_set():
                ways[2].forget(3, 0)
                ways[2].fence_expired()
        except BaseException as error:  # noqa: BLE001  Reported below.
            failures.append(error)

    ended = threading.Event()
    threads = [threading.Thread(target=come_and_go, args=(ways[at], 900 + at)) for at in range(2)]
    forgetting = threading.Thread(target=forget)
    for each in (*threads, forgetting):
        each.start()
    for each in threads:
        each.join()
    ended.set()
    forgetting.join()
    for way in ways:
        way.close()
    assert failures == []
    assert sum(way.attempts_failed for way in ways) == 0, "nobody was left waiting"
    for node_id in (900, 901):
        index.fence(index.register(uuid4(), node_id, "", 0, STORE))
    index.control(index.register(uuid4(), 902, "", 600_000, STORE))
    forget_all(index)
    left = "SELECT count(*) FROM barnabas.sessions WHERE node_id IN (900, 901)"
    assert server.execute(left) == [(0,)]
    for table in ("leases", "lanes"):
        orphans = f"SELECT session_id FROM barnabas.{table} EXCEPT SELECT session_id"
        assert server.execute(f"{orphans} FROM barnabas.sessions") == []


def test_several_collect_and_replace_beside_flushes(server, index, assign):
    """All flushes end, and the count of an object equals its contents."""
    ways = [WholeIndex.open(server.url, patience_s=60) for _ in range(4)]
    leaders = [Leader(way, assign) for way in ways[:2]]
    shared = []
    failures = []

    def work(leader, seed):
        random = Random(seed)
        mine = [leader.lead() for _ in range(3)]
        shared.extend(mine)
        try:
            for _ in range(15):
                leader.append(*mine)
                each = random.choice(mine)
                _, _, start, end = leader.index.partition(each)
                leader.snapshot(each, end)
                extents = leader.index.extents(each, start, most=MANY)
                new = Extent(extents[0].base_offset, end, 0, b"compacted")
                assert leader.replace(each, new)
                leader.append(*mine)
                leader.snapshot(each, end)
                leader.start_at(each, end)
        except BaseException as error:  # noqa: BLE001  Reported below.
            failures.append(error)

    def collect(way):
        try:
            while not ended.is_set():
                way.collect_garbage(2)
        except BaseException as error:  # noqa: BLE001  Reported below.
            failures.append(error)

    ended = threading.Event()
    workers = [
        threading.Thread(target=work, args=(leader, SEED + number))
        for number, leader in enumerate(leaders)
    ]
    collectors = [threading.Thread(target=collect, args=(way,)) for way in ways[2:]]
    for each in (*workers, *collectors):
        each.start()
    for each in workers:
        each.join()
    ended.set()
    for each in collectors:
        each.join()
    for way in ways:
        way.close()
    assert failures == []
    assert sum(way.attempts_failed for way in ways) == 0, "nobody was left waiting"
    collect_all(index)
    assert server.execute(MISCOUNTED) == []
    for partition_id in shared:
        _, _, start, end = index.partition(partition_id)
        extents = index.extents(partition_id, 0, most=MANY)
        assert extents[0].base_offset <= start
        assert extents[-1].next_offset == end
