"""A leader over an object store is replaced while its calls of the store are under way.

Its process continues, and its calls take effect late. The log gets nothing of them, and their
objects are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from barnabas.broker.cluster.leading import packer
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.objects.blob_store import UploadKey
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.replicated.segment_packing import PackLimits
from barnabas.storage.runtime.threads import new_event
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.moves import STAYS
from tests.cluster.objects import Bucket, give_clusters_a_bucket, keep_up_all_the_time
from tests.cluster.test_killed_at_packing import wanted
from tests.cluster.test_old_records import T, values
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until
from tests.workload.wire_client import WireClient
from tests.worlds import world

__all__ = ["world"]

UPLOADS = 4
"""barnabas.objects.uploads.max"""
COUNT = 12
PRODUCER_ID = 4711
CONFIG = STAYS | {
    "barnabas.flush.object.min.bytes": "1",
    "barnabas.flush.ms": "0",
    "barnabas.objects.delete.delay.ms": "0",
}


@pytest.fixture
def bucket(monkeypatch) -> Bucket:
    keep_up_all_the_time(monkeypatch, snapshot_ms=50)
    return give_clusters_a_bucket(monkeypatch)


@pytest.fixture
def cluster(bucket, brokers) -> Iterator[WatchedCluster]:
    with WatchedCluster(brokers, config=CONFIG) as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def client(cluster) -> Iterator[WireClient]:
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def numbered(number: int) -> memoryview:
    """Return the record with a number, always of the same producer."""
    value = b"%d" % number
    return batch(value, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=number)


def produce(client: WireClient, begin: int, end: int) -> None:
    for number in range(begin, end):
        assert client.produce(T, numbered(number)) == number


def read(cluster: WatchedCluster) -> list[bytes | None]:
    return [each.value for each in cluster.records("t").result]


def wait_for_end_of_garbage(cluster: WatchedCluster, bucket: Bucket) -> None:
    wait_until(lambda: {*bucket} <= {*wanted(cluster), GUARD_KEY}, "the end of all garbage")


def leader_of(cluster: WatchedCluster) -> int:
    cluster.wait_until_served()
    number = cluster.leader(*T)
    assert number is not None
    return number


@pytest.mark.parametrize(("brokers", "is_lost"), [(2, False), (2, True), (1, True)])
def test_uploads_under_way_are_not_committed_by_a_leader_that_was_replaced(
    cluster, client, bucket, brokers, is_lost
):
    """Flushes are refused, or the session has ended and the leader begins another one."""
    produce(client, 0, COUNT)
    held: dict[str, int] = {}
    is_open = new_event()

    def put_later(key: str, put: Callable[[], None]) -> None:
        upload = UploadKey.parse(key)
        if upload is not None and not is_open.is_set():
            held[key] = upload.number
            is_open.wait()
        put()

    leader = leader_of(cluster)
    bucket.on_put = put_later
    with Wire(cluster.brokers[leader].address) as wire:
        for flushes in range(1, UPLOADS + 2):
            record = numbered(COUNT + flushes - 1)
            wire.send(PRODUCE, produce_request(9, Named("t"), (0, record)), 9)
            under_way = min(flushes, UPLOADS)
            wait_until(lambda most=under_way: len({*held.values()}) == most, "the next upload")
        if is_lost:
            cluster.expire(leader)
        else:
            cluster.assign(*T, 1 - leader)
            wait_until(lambda: cluster.leads(1 - leader, "t"), "the next leader")
        is_open.set()
    produce(client, COUNT, 2 * COUNT)
    assert read(cluster) == values(2 * COUNT)
    assert not {*held} & {*wanted(cluster)}
    if not is_lost:
        # Their numbers are not used up as long as the session lives and flushes nothing else.
        cluster.expire(leader)
    wait_for_end_of_garbage(cluster, bucket)


@pytest.mark.parametrize("brokers", [2])
def test_segment_is_not_named_by_a_leader_whose_successor_has_loaded(
    cluster, client, bucket, monkeypatch
):
    replace, results, held, is_open = MemoryIndex.replace_by_segment, [], [], new_event()

    def replaced(index: MemoryIndex, *arguments: object) -> bool:
        if not held:
            held.append(arguments)
            is_open.wait()
            results.append(replace(index, *arguments))
            return results[-1]
        return replace(index, *arguments)

    monkeypatch.setattr(MemoryIndex, "replace_by_segment", replaced)
    produce(client, 0, COUNT)
    leader = leader_of(cluster)
    wait_until(lambda: held, "a segment is put, and is to be named")
    cluster.assign(*T, 1 - leader)
    wait_until(lambda: cluster.leads(1 - leader, "t"), "the next leader")
    assert read(cluster) == values(COUNT)
    is_open.set()
    wait_until(lambda: results, "the late call")
    assert results == [False]
    produce(client, COUNT, 2 * COUNT)
    assert read(cluster) == values(2 * COUNT)
    wait_for_end_of_garbage(cluster, bucket)


@pytest.fixture(autouse=True)
def packs_all_the_time(monkeypatch) -> None:
    limits = PackLimits(object_bytes_min=100, extents_max=5)
    settings = packer.PackerSettings(limits, look_ms=20, retry_ms=20)
    monkeypatch.setattr(packer, "PackerSettings", lambda *_: settings)
