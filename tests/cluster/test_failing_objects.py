"""An object store of a cluster fails, or loses objects, while its brokers live on.

Records whose objects are unavailable are an error of their readers, and of no others. Nothing is
acknowledged that is not stored, and each record is in the log once when the store returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from barnabas.broker.testing.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.objects.blob_store import UPLOADS_PREFIX, BlobStoreError
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from tests.broker.data_plane import Named, Wire, batch, produce_request, values
from tests.cluster.objects import Bucket, give_clusters_a_bucket
from tests.storage.scripted_objects import ScriptedObjects, clusters_with_objects
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

TOPIC = Named("t")
CONFIG = {"barnabas.flush.object.min.bytes": "1", "barnabas.flush.ms": "0"}
LARGE_BYTES = 900_000
"""Size of a record that is read from its object alone."""
UPLOADS = 4
"""barnabas.objects.uploads.max"""
PRODUCERS = 7
LEASES_S = 35
"""More than three times barnabas.lease.ms."""
WORDS = "partition 1 in the store"
LIMITS = {"min_bytes": 1, "max_wait_ms": 5000}


def lose(objects: ScriptedObjects, key: str) -> None:
    del objects.bodies[key]


def damage(objects: ScriptedObjects, key: str) -> None:
    body = bytearray(objects.bodies[key])
    body[LARGE_BYTES // 2] ^= 1
    objects.bodies[key] = bytes(body)


def cut_off(objects: ScriptedObjects, key: str) -> None:
    objects.bodies[key] = objects.bodies[key][: LARGE_BYTES // 2]


def read_at(wire: Wire, offset: int) -> bytes | None:
    """Return the first record from an offset on, once it has come."""
    found: list[Any] = []

    def has_come() -> bool:
        found[:] = [wire.fetch_one(TOPIC, offset, **LIMITS)]
        assert not found[0].error_code
        return bool(found[0].records)

    wait_until(has_come)
    return values(found[0].records)[0]


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lose, "object wal/1/0-0000000000000000-1 is missing"),
        (damage, "the checksum of the batch at offset 0 is wrong"),
        (cut_off, f"object wal/1/0-0000000000000000-1 ends at byte {LARGE_BYTES // 2}"),
    ],
)
def test_records_of_a_bad_object_are_an_error_and_all_others_are_served(
    world, caplog, harm: Callable[[ScriptedObjects, str], None], reason: str
) -> None:
    """The store has confirmed the object, and the leader has no copy of its records."""
    records = [b"%d" % number + bytes(LARGE_BYTES) for number in range(4)]
    with clusters_with_objects() as stores, Cluster(brokers=1, config=CONFIG) as cluster:
        cluster.create_topic(TOPIC.name)
        (objects,) = stores
        with Wire(cluster.brokers[0].address) as wire:
            for each in records[:-1]:
                assert not wire.produce(TOPIC, batch(each)).error_code
        sound = dict(objects.bodies)
        keys = [each for each in objects if each.startswith(UPLOADS_PREFIX)]
        cluster.clock.advance(minutes=2)
        rows = cluster._store.index.rows.values()
        wait_until(lambda: any(row.parts for row in rows), "a snapshot")
        cluster.kill(0)
        cluster.restart(0)
        harm(objects, keys[0])
        cluster.wait_until_served()
        with Wire(cluster.brokers[0].address) as wire:
            assert not wire.produce(TOPIC, batch(records[-1])).error_code
            for offset in range(1, len(records)):
                assert read_at(wire, offset) == records[offset]

            def code() -> int:
                return int(wire.fetch_one(TOPIC, 0, **LIMITS).error_code)

            wait_until(code)
            assert code() == ErrorCode.KAFKA_STORAGE_ERROR
            assert f"partition=t-0: {WORDS}" in caplog.text
            assert reason in caplog.text
            objects.bodies.update(sound)
            wait_until(lambda: not code(), "the records again", seconds=120)
            assert wire.read(TOPIC, **LIMITS) == records


@pytest.fixture
def bucket(monkeypatch) -> Bucket:
    return give_clusters_a_bucket(monkeypatch)


@pytest.fixture
def cluster(bucket) -> Iterator[Cluster]:
    with Cluster(brokers=2, config=CONFIG) as running:
        running.create_topic(TOPIC.name)
        yield running


def producing(cluster: Cluster, leader: int) -> list[int]:
    """Begin to send one record by each producer; return the offsets, of which more come."""
    offsets: list[int] = []

    def send(number: int) -> None:
        with Wire(cluster.brokers[leader].address) as wire:
            wire.send(PRODUCE, produce_request(9, TOPIC, (0, batch(b"%d" % number))), 9)
            (result,) = wire.receive().responses[0].partition_responses
            assert not result.error_code
            offsets.append(result.base_offset)

    for number in range(PRODUCERS):
        start_thread(f"producer-{number}", partial(send, number))
        sleep(0.1)
    return offsets


def uploads_in(bucket: Bucket) -> int:
    return sum(key.startswith(UPLOADS_PREFIX) for key in bucket)


def check(cluster: Cluster, offsets: list[int]) -> None:
    """Make sure that each record was acknowledged, and is in the log once."""
    wait_until(lambda: len(offsets) == PRODUCERS, lambda: f"acknowledged: {offsets}")
    assert sorted(offsets) == [*range(1, PRODUCERS + 1)]
    values = [each.value for each in cluster.records(TOPIC.name).result]
    assert sorted(values) == [b"%d" % number for number in range(PRODUCERS)] + [b"first"]


def test_store_that_is_unavailable_for_all_brokers_moves_no_partition(
    world, cluster, bucket
) -> None:
    leader = cluster.leader(TOPIC.name)
    with Wire(cluster.brokers[leader].address) as wire:
        assert not wire.produce(TOPIC, batch(b"first")).error_code

        def refuse(key: str, put: Callable[[], None]) -> None:
            raise BlobStoreError("503 Service Unavailable")

        bucket.on_put = refuse
        offsets = producing(cluster, leader)
        sleep(LEASES_S)
        assert not offsets
        assert wire.read(TOPIC) == [b"first"], "records in memory are served"
    assert cluster.leader(TOPIC.name) == leader
    bucket.on_put = Bucket().on_put
    check(cluster, offsets)
    assert cluster.leader(TOPIC.name) == leader


def test_uploads_stop_at_four_while_commits_have_no_result(world, cluster, bucket) -> None:
    """PostgreSQL is unavailable, or fails over."""
    leader = cluster.leader(TOPIC.name)
    with Wire(cluster.brokers[leader].address) as wire:
        assert not wire.produce(TOPIC, batch(b"first")).error_code
    before, is_open = uploads_in(bucket), new_event()

    def put_later(_key: str, put: Callable[[], None]) -> None:
        is_open.wait()
        put()

    bucket.on_put = put_later
    offsets = producing(cluster, leader)
    cluster.hold_commits(leader)
    is_open.set()
    wait_until(lambda: uploads_in(bucket) == before + UPLOADS, "four uploads")
    sleep(LEASES_S)
    assert uploads_in(bucket) == before + UPLOADS
    assert not offsets
    cluster.release_commits(leader)
    check(cluster, offsets)
