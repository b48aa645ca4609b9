"""Bodies of flushes that are put first and named later: what is read, refused, and garbage."""

import itertools
from contextlib import closing
from uuid import uuid4

import pytest

from barnabas.protocol.records import read_header
from barnabas.storage.journal.committer import CommitterThreads
from barnabas.storage.objects.blob_store import BlobNotFound, UploadKey
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.postgresql.postgresql_blob_store import PostgreSqlBlobStore
from barnabas.storage.postgresql.primary import Primary
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
    Outcome,
)
from barnabas.storage.replicated.log_reading import read_log
from tests.postgresql.whole_index import WholeIndex
from tests.storage.journals import Waited, group_of

COMMITTED = FlushAnswer(Outcome.COMMITTED)
LEASE_MS = 60_000
NODES = itertools.count(3000)
PARTITIONS = itertools.count(3000)


@pytest.fixture(scope="module")
def index(server):
    opened = WholeIndex.open(server.url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def blobs(server):
    opened = PostgreSqlBlobStore.begin(Primary(server.url))
    yield opened
    opened.close()


@pytest.fixture
def session(index):
    return index.register(uuid4(), next(NODES), "broker:9092", LEASE_MS)


@pytest.fixture
def partition(index, session):
    partition_id = next(PARTITIONS)
    index.add_partition(partition_id)
    assert index.assign_one(partition_id, session, -1)
    return partition_id


def key_of(session, number=0, attempt=1):
    return UploadKey(session, Lane.INLINE, number, attempt).text


def named(key, partition, length=4, number=0, base=0):
    """A flush of one item, whose bytes have been put under a key."""
    return Flush(Lane.INLINE, number, [Item(partition, 0, base, base + 1, 0, length)], key=key)


def objects(server, session):
    return server.execute(
        "SELECT key, upload_key, live_extents FROM barnabas.objects WHERE session_id = %s"
        " ORDER BY object_id",
        session,
    )


def test_upload_is_read_like_every_other_flush_once_it_is_named(index, blobs, session, partition):
    key = key_of(session)
    blobs.put(key, [b"ab", memoryview(b"cdef")])
    assert index.extents(partition, 0, most=9) == []
    items = [Item(partition, 0, 0, 5, 1, 3)]
    assert index.commit_flush(session, Flush(Lane.INLINE, 0, items, key=key)) == COMMITTED
    assert index.extents(partition, 0, most=9) == [Extent(0, 5, 0, b"bcd")]
    (beginning,) = index.beginnings([partition], most=9, most_bytes=99)
    assert beginning.extents == [Extent(0, 5, 0, b"bcd")]


def test_flush_with_an_upload_that_is_called_again_is_there_once_f3(
    server, index, blobs, session, partition
):
    blobs.put(key_of(session), [b"abcd"])
    for _ in range(3):
        assert index.commit_flush(session, named(key_of(session), partition)) == COMMITTED
    assert objects(server, session) == [(None, key_of(session), 1)]
    assert index.partition(partition).log_end_offset == 1


def test_key_that_was_never_put_is_a_bug_f6(index, session, partition):
    with pytest.raises(IndexMisused, match="has put no upload"):
        index.commit_flush(session, named(key_of(session), partition))
    assert index.partition(partition).log_end_offset == 0


def test_key_of_another_session_is_a_bug_f6(index, blobs, session, partition):
    other = index.register(uuid4(), next(NODES), "broker:9092", LEASE_MS)
    blobs.put(key_of(other), [b"abcd"])
    with pytest.raises(IndexMisused, match="has put no upload"):
        index.commit_flush(session, named(key_of(other), partition))


def test_upload_that_lacks_bytes_of_a_flush_is_a_bug_f6(index, blobs, session, partition):
    blobs.put(key_of(session), [b"abc"])
    with pytest.raises(IndexMisused, match=r"has put no upload .* of 4 bytes"):
        index.commit_flush(session, named(key_of(session), partition))


def test_key_is_named_by_one_flush_f7(index, blobs, session, partition):
    key = key_of(session)
    blobs.put(key, [b"abcd"])
    assert index.commit_flush(session, named(key, partition)) == COMMITTED
    blobs.put(key, [b"late"])  # A call that comes late.
    with pytest.raises(IndexMisused, match="has put no upload"):
        index.commit_flush(session, named(key, partition, number=1, base=1))


def test_repeated_put_is_one_object(server, blobs, session):
    for _ in range(2):
        blobs.put(key_of(session), [b"abcd"])
    assert objects(server, session) == [(key_of(session), None, 0)]
    assert blobs.get_range(key_of(session), 1, 2) == b"bc"
    assert blobs.get_range(key_of(session), 3, 9) == b"d"


def test_missing_object_is_reported(blobs, session):
    with pytest.raises(BlobNotFound):
        blobs.get_range(key_of(session), 0, 1)


def test_put_waits_for_the_standby_f6(server, blobs, session):
    """Each call writes, also one that has nothing to do."""
    for call in (
        lambda: blobs.put(key_of(session), [b"abcd"]),
        lambda: blobs.put(key_of(session), [b"abcd"]),
        lambda: blobs.list("wal/", "", 1),
        lambda: blobs.delete([]),
    ):
        before = written(server)
        call()
        assert written(server) > before


def written(server):
    ((position,),) = server.execute("SELECT pg_current_wal_lsn() - '0/0'")
    return position


def test_refused_flush_leaves_its_upload(server, index, blobs, session, partition):
    blobs.put(key_of(session), [b"abcd"])
    other = index.register(uuid4(), next(NODES), "broker:9092", LEASE_MS)
    assert index.assign_one(partition, other, 0)
    answer = index.commit_flush(session, named(key_of(session), partition))
    assert answer.outcome is Outcome.REFUSED
    assert objects(server, session) == [(key_of(session), None, 0)]
    assert index.dead_keys([key_of(session)]) == [], "its number can be used"


def test_uploads_are_listed_in_order_until_they_are_named(index, blobs, session, partition):
    keys = [key_of(session, number) for number in (0, 9, 10, 255, 256)]
    for key in reversed(keys):
        blobs.put(key, [b"abcd"])
    prefix = f"wal/{session}/"
    assert blobs.list(prefix, "", 3) == keys[:3]
    assert blobs.list(prefix, keys[2], 9) == keys[3:]
    index.commit_flush(session, named(keys[0], partition))
    assert blobs.list(prefix, "", 9) == keys[1:]


def test_committer_uploads_large_flushes_and_commits_them_in_order(
    server, index, session, partition
):
    heard = Waited()
    with closing(PostgreSqlBase(server.url, new_cluster_id="c")) as base:
        uploads = UploadThreads(
            lambda: base.blob_stores()[0], pytest.fail, UploadSettings(100_000, 4)
        )
        committer = FlushCommitter(
            base.log_index(), heard, flush_bytes_max=300_000, uploads=uploads
        )
        committer.begin_session(session)
        threads = CommitterThreads(committer, heard)
        for number in range(40):
            size = 10 if number % 10 == 9 else 90_000
            threads.submit(group_of(size, partition_id=partition, base_offset=number, epoch=0))
        threads.stop()
    assert sum(count for what, count in heard.events if what == "durable") == 40
    log = read_log(index, partition)
    assert [read_header(each).base_offset for each in log.batches] == [*range(40)]
    found = objects(server, session)
    numbers = [UploadKey.parse(key).number for _, key, _ in found if key is not None]
    assert len({*numbers}) == len(numbers) > 1
    assert all(key is None for key, _, _ in found), "nothing is left over"


# ---------------------------------------------------------------------------------------- garbage


def test_keys_are_dead_by_their_number_f9(index, blobs, session, partition):
    keys = [key_of(session, 0, 1), key_of(session, 0, 2), key_of(session, 1, 3)]
    for key in keys:
        blobs.put(key, [b"abcd"])
    assert index.dead_keys(keys) == []
    index.commit_flush(session, named(keys[1], partition))
    assert index.dead_keys(keys) == [keys[0]], "one is named, the other one's number is to come"


def test_keys_are_dead_by_their_session_f9(server, index, blobs, session):
    blobs.put(key_of(session), [b"abcd"])
    index.fence(session)
    assert index.dead_keys([key_of(session)]) == [key_of(session)]
    server.execute(
        "UPDATE barnabas.leases SET lease_until = '1999-01-01' WHERE session_id = %s", session
    )
    index.register(uuid4(), next(NODES), "broker:9092", LEASE_MS)
    index.forget(1000, 0)
    assert server.execute("SELECT 1 FROM barnabas.sessions WHERE session_id = %s", session) == []
    assert index.dead_keys([key_of(session)]) == [key_of(session)]


def test_keys_of_sessions_to_come_and_other_names_are_not_dead_f9(index):
    assert index.dead_keys([key_of(2**40), "seg/1/2", "wal/"]) == []


def test_dead_keys_are_reported_after_a_write_f10(server, index, session):
    index.fence(session)
    before = written(server)
    index.dead_keys([key_of(session)])
    assert written(server) > before


def test_delete_removes_no_named_object_f6(server, index, blobs, session, partition):
    keys = [key_of(session, 0, 1), key_of(session, 0, 2)]
    for key in keys:
        blobs.put(key, [b"abcd"])
    index.commit_flush(session, named(keys[0], partition))
    blobs.delete([*keys, key_of(session, 9)])
    assert objects(server, session) == [(None, keys[0], 1)]
    assert index.extents(partition, 0, most=9) == [Extent(0, 1, 0, b"abcd")]


def test_object_of_an_upload_goes_with_its_extents(server, index, blobs, session, partition):
    blobs.put(key_of(session), [b"abcd"])
    index.commit_flush(session, named(key_of(session), partition))
    index.commit_flush(session, Flush(Lane.INLINE, 1, [], [LogStart(partition, 0, 1)]))
    index.put_snapshot(session, partition, 0, LogSnapshot(1, b"", b""))
    while index.collect_garbage(1000):
        pass
    assert objects(server, session) == []
    noted = "SELECT 1 FROM barnabas.dereferenced_keys WHERE key = %s"
    assert server.execute(noted, key_of(session)) == [], "nothing elsewhere is to be deleted"
    assert index.dead_keys([key_of(session)]) == [key_of(session)]
