"""Flushes whose bodies are in an object store: what PostgreSQL has of them."""

import itertools
from contextlib import closing
from uuid import uuid4

import pytest

from barnabas.protocol.records import read_header
from barnabas.storage.errors import Corrupt, ObjectDamaged
from barnabas.storage.journal.committer import CommitterThreads
from barnabas.storage.objects.blob_store import UploadKey
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.blob_garbage import (
    delete_dead_objects,
    delete_dereferenced_objects,
)
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.flush_uploads import UploadSettings, UploadThreads
from barnabas.storage.replicated.log_index import (
    Extent,
    Flush,
    FlushAnswer,
    IndexMisused,
    Item,
    Lane,
    LogSnapshot,
    LogStart,
    ObjectPlace,
    ObjectSize,
    Outcome,
)
from barnabas.storage.replicated.log_reading import read_log
from tests.postgresql.whole_index import WholeIndex
from tests.storage.journals import Waited, group_of

COMMITTED = FlushAnswer(Outcome.COMMITTED)
LEASE_MS = 60_000
NODES = itertools.count(5000)
PARTITIONS = itertools.count(5000)
SIZE = ObjectSize(20, 50)


@pytest.fixture(scope="module")
def index(server):
    opened = WholeIndex.open(server.url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def base(server, tmp_path_factory):
    address = Address(f"file://{tmp_path_factory.mktemp('objects')}")
    with closing(
        PostgreSqlBase(
            server.url,
            new_cluster_id="c",
            open_objects=lambda cluster_id: ObjectBlobStore.open(address.below(cluster_id)),
        )
    ) as opened:
        yield opened


@pytest.fixture
def session(index):
    begun = index.register(uuid4(), next(NODES), "broker:9092", LEASE_MS, "file:///objects")
    assert index.begin_objects(begun) == []
    return begun


@pytest.fixture
def partition(index, session):
    partition_id = next(PARTITIONS)
    index.add_partition(partition_id)
    assert index.assign_one(partition_id, session, -1)
    return partition_id


def key_of(session, number=0, attempt=1):
    return UploadKey(session, Lane.INLINE, number, attempt).text


def named(key, partition, *, position=8, length=12, number=0, size=SIZE):
    item = Item(partition, 0, number, number + 1, position, length)
    return Flush(Lane.INLINE, number, [item], key=key, size=size)


def test_readers_get_the_place_of_what_is_elsewhere(index, session, partition):
    key = key_of(session)
    assert index.commit_flush(session, named(key, partition)) == COMMITTED
    expected = Extent(0, 1, 0, b"", ObjectPlace(key, 8, 12, SIZE))
    assert index.extents(partition, 0, most=9) == [expected]
    (beginning,) = index.beginnings([partition], most=9, most_bytes=99)
    assert beginning.extents == [expected]
    (recent,) = index.recent_beginnings([partition], most=9, most_bytes=99)
    assert recent.extents == [expected]
    assert [each.length for each in index.extent_sizes(partition, 0, most=9)] == [12]


def test_flush_that_is_called_again_is_there_once_f3(server, index, session, partition):
    for _ in range(3):
        assert index.commit_flush(session, named(key_of(session), partition)) == COMMITTED
    found = server.execute(
        "SELECT key, payload, kind, size_bytes, footer_at, live_extents FROM barnabas.objects"
        " WHERE session_id = %s",
        session,
    )
    assert found == [(key_of(session), None, "wal", 50, 20, 1)]


def test_flush_that_names_an_object_before_a_store_is_in_use_is_a_bug(
    server, index, session, partition
):
    ((used,),) = server.execute("SELECT address FROM barnabas.object_store")
    server.execute("UPDATE barnabas.object_store SET address = NULL")
    with pytest.raises(IndexMisused, match=r"wal/\S+, and no object store is in use"):
        index.commit_flush(session, named(key_of(session), partition))
    server.execute("UPDATE barnabas.object_store SET address = %s", used)
    assert index.commit_flush(session, named(key_of(session), partition)) == COMMITTED


def test_sessions_of_a_restored_copy_use_no_key_again_f7(server):
    """Brokers of both put objects into the same store: one may be late."""
    server.execute("CREATE DATABASE original")
    address = server.url.removesuffix("postgres")
    with closing(WholeIndex.open(f"{address}original")) as original:
        first = original.register(uuid4(), 1, "", LEASE_MS, "file:///objects")
    server.execute("CREATE DATABASE restored TEMPLATE original")
    later = []
    for name in ("original", "restored"):
        with closing(WholeIndex.open(address + name)) as index:
            later.append(index.register(uuid4(), 1, "", LEASE_MS, "file:///objects"))
    assert len({first, *later, *(key_of(each) for each in (first, *later))}) == 6
    assert min(later) > first


def test_extent_beyond_the_bodies_is_a_bug(index, session, partition):
    with pytest.raises(IndexMisused, match="names more than its payload"):
        index.commit_flush(session, named(key_of(session), partition, length=13))


def test_index_without_an_object_store_says_so(index, session, partition):
    index.commit_flush(session, named(key_of(session), partition))
    with pytest.raises(ObjectDamaged, match="not configured"):
        index.bodies(index.extents(partition, 0, most=9))


def test_committer_puts_large_flushes_and_the_log_is_read_back(
    server, base, index, session, partition
):
    heard = Waited()
    uploads = UploadThreads(
        lambda: base.blob_stores()[0],
        pytest.fail,
        UploadSettings(100_000, 4, in_object_store=True),
    )
    committer = FlushCommitter(base.log_index(), heard, flush_bytes_max=300_000, uploads=uploads)
    committer.begin_session(session)
    threads = CommitterThreads(committer, heard)
    for number in range(40):
        size = 10 if number % 10 == 9 else 90_000
        threads.submit(group_of(size, partition_id=partition, base_offset=number, epoch=0))
    threads.stop()
    assert sum(count for what, count in heard.events if what == "durable") == 40
    log = read_log(base.log_index(), partition)
    assert [read_header(each).base_offset for each in log.batches] == [*range(40)]
    keys = [
        key
        for (key,) in server.execute(
            "SELECT key FROM barnabas.objects WHERE session_id = %s AND key IS NOT NULL", session
        )
    ]
    assert len(keys) > 1
    assert base.blob_stores()[0].list(f"wal/{session}/", "", 99) == sorted(keys)
    base.blob_stores()[0].delete(keys[:1])
    with pytest.raises(Corrupt, match="is missing"):
        read_log(base.log_index(), partition)


# ---------------------------------------------------------------------------------------- garbage


def test_key_of_deleted_records_waits_for_its_delay_f6(index, base, session, partition):
    blobs, key = base.blob_stores()[0], key_of(session)
    blobs.put(key, [bytes(50)])
    index.commit_flush(session, named(key, partition))
    starts = [LogStart(partition, 0, 1)]
    index.commit_flush(session, Flush(Lane.INLINE, 1, [], starts))
    index.put_snapshot(session, partition, 0, LogSnapshot(1, b"", b""))
    while index.collect_garbage(1000):
        pass
    assert index.dead_keys([key]) == [], "a restored database may need it"
    assert key not in index.dereferenced_keys(1000, LEASE_MS)
    assert key in index.dereferenced_keys(1000, 0)
    delete_dead_objects(index, blobs)
    assert blobs.list(f"wal/{session}/", "", 9) == [key]
    assert delete_dereferenced_objects(index, blobs, 0)
    assert blobs.list(f"wal/{session}/", "", 9) == []
    assert key not in index.dereferenced_keys(1000, 0)


def test_attempt_that_no_flush_named_is_deleted_once_its_number_is_used_f9(
    index, base, session, partition
):
    blobs = base.blob_stores()[0]
    keys = [key_of(session, 0, attempt) for attempt in (1, 2)]
    for key in keys:
        blobs.put(key, [bytes(50)])
    delete_dead_objects(index, blobs)
    assert blobs.list(f"wal/{session}/", "", 9) == keys
    index.commit_flush(session, named(keys[1], partition))
    delete_dead_objects(index, blobs)
    assert blobs.list(f"wal/{session}/", "", 9) == keys[1:]


def test_dereferenced_keys_are_reported_after_a_write_f10(server, index):
    def written():
        ((position,),) = server.execute("SELECT pg_current_wal_lsn() - '0/0'")
        return position

    before = written()
    index.dereferenced_keys(9, 0)
    assert written() > before


def test_objects_elsewhere_are_not_packed_and_take_no_space(index, session, partition):
    """Their extents stay where they are, however few of them live."""
    other = next(PARTITIONS)
    index.add_partition(other)
    assert index.assign_one(other, session, -1)
    before = index.space(0)
    items = [Item(partition, 0, 0, 1, 8, 11), Item(other, 0, 0, 1, 19, 1)]
    flush = Flush(Lane.INLINE, 0, items, key=key_of(session), size=SIZE)
    assert index.commit_flush(session, flush) == COMMITTED
    index.commit_flush(session, Flush(Lane.INLINE, 1, [], [LogStart(partition, 0, 1)]))
    index.put_snapshot(session, partition, 0, LogSnapshot(1, b"", b""))
    while index.collect_garbage(1000):
        pass
    while index.pack_extents(1000, 10_000_000, 0).extents:
        pass
    assert index.space(0).pinned_bytes <= before.pinned_bytes
    place = ObjectPlace(key_of(session), 19, 1, SIZE)
    assert index.extents(other, 0, most=9) == [Extent(0, 1, 0, b"", place)]
    assert index.extents(partition, 0, most=9) == []
