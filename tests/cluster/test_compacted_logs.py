"""Compacted logs that are larger than the disk of their leader (F14)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.cluster.membership import durable_logs
from barnabas.broker.testing.cluster import Cluster
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.replicated import header_loading
from barnabas.storage.replicated.offloading import unfollowed_bytes
from barnabas.storage.replicated.remote_segment import RemoteSegment
from barnabas.storage.replicated.stored_compaction import StoredCompaction
from barnabas.storage.runtime.clock import sleep
from tests.broker.data_plane import NOW_MS, Named, Wire, unpack
from tests.cluster.test_old_records import FOR_OLD, T, leader_log, row_of, take_over
from tests.waiting import wait_until
from tests.workload.wire_client import WireClient, commit_offset, committed_offset
from tests.worlds import world

__all__ = ["world"]

MIB = 1024 * 1024
KEYS = 80
VALUE_BYTES = 100_000
"""The latest values of all keys are eight times as large as the cache."""
ROUNDS = 3
CONFIG = {
    "barnabas.cache.max.bytes": str(MIB),
    "barnabas.disk.reserve.bytes": str(MIB),
    "log.cleaner.backoff.ms": "1000",
    "offsets.topic.num.partitions": "1",
}
TOPIC = {
    "cleanup.policy": "compact",
    "segment.bytes": str(MIB),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


def record(key, value):
    records = [Record(0, NOW_MS, b"%d" % key, value, ())]
    return memoryview(bytearray(encode_batch(records)))


def value_of(key, number):
    return b"%d of %d" % (number, key) + bytes(VALUE_BYTES)


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    monkeypatch.setattr(durable_logs, "LOCAL_BYTES_MOST", MIB)
    monkeypatch.setattr(header_loading, "SEGMENT_BYTES", MIB)
    with Cluster(brokers=2, config=CONFIG) as running:
        running.create_topic("t", configs=TOPIC)
        for broker in running.brokers:
            disk = broker.server.logs.file_system
            disk.capacity_bytes = disk.used_bytes + 6 * MIB
        yield running


@pytest.fixture
def client(cluster):
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def local_bytes(cluster):
    log = leader_log(cluster)
    return None if log is None else sum(each.disk_bytes for each in log.local_segments)


def until_off_the_disk(cluster):
    def has_room():
        cluster.clock.advance(seconds=2)
        size_bytes = local_bytes(cluster)
        return size_bytes is not None and size_bytes <= MIB

    wait_until(has_room, "room on the disk")


def fill(cluster, client, number):
    """Give each key its next value."""
    for key in range(KEYS):
        client.produce(T, record(key, value_of(key, number)))
        if key % 5 == 4:
            until_off_the_disk(cluster)


def latest(cluster):
    """Return the number of records, and the last value of each key."""
    found, count, offset = {}, 0, 0
    with Wire(cluster.brokers[cluster.leader(*T)].address) as wire:
        while True:
            data = wire.fetch_one(Named("t"), offset, **FOR_OLD)
            assert data.error_code == 0
            if offset >= data.high_watermark:
                return count, found
            for _, header in iterate_batches(data.records):
                offset = header.next_offset
            for each in unpack(data.records):
                found[each.key] = each.value
                count += 1


def stored_bytes(cluster):
    return sum(each.size_bytes for each in row_of(cluster).extents)


def until_compacted(cluster):
    """Wait until the store has about one value of each key."""

    def is_compacted():
        cluster.clock.advance(seconds=2)
        return stored_bytes(cluster) < (KEYS + 15) * VALUE_BYTES

    wait_until(is_compacted, "a compacted log in the store")


def test_log_larger_than_the_disk_is_compacted(cluster, client):
    for number in range(ROUNDS):
        fill(cluster, client, number)
    until_compacted(cluster)
    until_off_the_disk(cluster)
    log = leader_log(cluster)
    assert isinstance(log.segments[0], RemoteSegment)
    wanted = {b"%d" % key: value_of(key, ROUNDS - 1) for key in range(KEYS)}
    assert latest(cluster)[1] == wanted

    former = take_over(cluster)
    assert isinstance(leader_log(cluster).segments[0], RemoteSegment)
    assert local_bytes(cluster) <= MIB
    assert latest(cluster)[1] == wanted

    cluster.restart(former)
    client.produce(T, record(0, None))
    fill(cluster, client, ROUNDS)
    until_compacted(cluster)
    wanted = {b"%d" % key: value_of(key, ROUNDS) for key in range(KEYS)}
    assert latest(cluster)[1] == wanted


def test_pass_waits_while_the_store_has_not_followed(cluster, client, monkeypatch):
    monkeypatch.setattr(StoredCompaction, "run", _never_followed)
    number = cluster.leader(*T)
    cluster.brokers[number].server.logs.file_system.capacity_bytes = None
    for at in range(KEYS):  # A pass takes one record of five.
        key = at if at % 5 else -1
        client.produce(T, record(key, value_of(key, at)))
    for _ in range(30):
        cluster.clock.advance(seconds=5)
        sleep(1)
    written = unfollowed_bytes([leader_log(cluster)])
    assert 0 < written <= MIB + MIB // 4, "a segment more than the limit"


async def _never_followed(_walk, _snapshot_offset):
    return False


def offsets_log(cluster):
    number = cluster.leader("__consumer_offsets", 0)
    if number is None:
        return None
    logs = cluster.brokers[number].server.logs.logs.values()
    return next((each for each in logs if each.topic == "__consumer_offsets"), None)


def test_offsets_whose_segments_left_the_disk_come_with_the_next_leader(cluster, client):
    groups = [f"group {number}" for number in range(20)]
    client.produce(T, record(0, b"v"))
    for round_number in range(2):
        for number, group in enumerate(groups):
            commit_offset(client, group, T, round_number * number)

        def has_left():
            cluster.clock.advance(seconds=2)
            log = offsets_log(cluster)
            return log is not None and isinstance(log.segments[0], RemoteSegment)

        wait_until(has_left, "offsets off the disk")
        cluster.kill(cluster.leader("__consumer_offsets", 0))
        cluster.wait_until_served()
        found = [committed_offset(client, group, T) for group in groups]
        assert found == [round_number * number for number in range(len(groups))]
        for number in range(2):
            if number not in cluster.running:
                cluster.restart(number)
