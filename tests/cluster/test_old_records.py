"""Old records of a cluster: their next leader reads them from the store when a client does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.cluster.membership.membership import HEARTBEATS_PER_LEASE, SERVED_SHARE
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.testing.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.storage.replicated.log_reading import FIRST_AT_ONCE
from barnabas.storage.replicated.remote_segment import RemoteSegment
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.broker.data_plane import Named, Wire, batch, fetch_request
from tests.broker.metrics.scrape import scrape
from tests.waiting import wait_until
from tests.workload.routing import Led
from tests.workload.wire_client import WireClient, commit_offset, committed_offset
from tests.worlds import world

__all__ = ["world"]

T = Led("t", 0)
MANY = FIRST_AT_ONCE + 20
"""Flushes of a log that is too long to be loaded at once."""
WAIT_MS = 30_000
"""More than a read of old records takes."""
FOR_OLD = {"min_bytes": 0, "max_wait_ms": WAIT_MS}
"""Limits of a fetch that waits for old records, and not for others."""
SHORT_WAIT_MS = 500
LEASE_S = 10
"""barnabas.lease.ms"""
MIB = 1024 * 1024
LEASED_S = LEASE_S * (SERVED_SHARE - 1 / HEARTBEATS_PER_LEASE) - 0.5
"""Time for which a leader without its store serves at least, however long its last heartbeat is
ago when the store falls silent."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2) as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def client(cluster):
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def row_of(cluster):
    (row,) = [each for each in cluster._store.index.rows.values() if each.extents]
    return row


def produce(client, begin, count):
    for number in range(begin, begin + count):
        assert client.produce(T, batch(b"%d" % number)) == number


def keep_snapshot(cluster):
    """Wait until the leader's upkeep has kept a snapshot of all records."""
    cluster.clock.advance(minutes=2)
    row = row_of(cluster)
    end = row.log_end_offset
    wait_until(lambda: row.parts and row.parts[-1].next_offset == end, "a snapshot")


def leader_log(cluster):
    number = cluster.leader(*T)
    logs = cluster.brokers[number].server.logs.logs.values()
    return next((each for each in logs if each.topic == "t"), None)


def take_over(cluster):
    before = cluster.leader(*T)
    cluster.kill(before)
    cluster.wait_until_served()
    return before


def values(count, begin=0):
    return [b"%d" % number for number in range(begin, begin + count)]


def read(cluster, offset=0, **more):
    with Wire(cluster.brokers[cluster.leader(*T)].address) as wire:
        return wire.read(Named("t"), **FOR_OLD, **more)


def test_old_records_are_read_from_the_store_by_the_next_leader(cluster, client):
    produce(client, 0, 1)
    cluster.clock.advance(seconds=5)  # Upkeep meets the log.
    produce(client, 1, MANY - 1)
    keep_snapshot(cluster)
    produce(client, MANY, 3)
    take_over(cluster)
    log = leader_log(cluster)
    assert isinstance(log.segments[0], RemoteSegment)
    assert sum(segment.size_bytes for segment in log.local_segments) < log.size_bytes / 10
    assert read(cluster) == values(MANY + 3)
    produce(client, MANY + 3, 2)
    assert read(cluster, isolation=1) == values(MANY + 5)


@pytest.fixture
def taken_over(cluster, client):
    """A leader that has the old records in the store only."""
    produce(client, 0, 1)
    cluster.clock.advance(seconds=5)  # Upkeep meets the log.
    produce(client, 1, MANY - 1)
    keep_snapshot(cluster)
    former = take_over(cluster)
    cluster.restart(former)
    cluster.wait_until_served()
    return leader_log(cluster)


def test_second_takeover_needs_no_other_snapshot(cluster, client, taken_over):
    produce(client, MANY, MANY)
    take_over(cluster)
    log = leader_log(cluster)
    assert log is not taken_over
    assert isinstance(log.segments[0], RemoteSegment)
    assert read(cluster) == values(2 * MANY)


def test_parts_of_several_leaders_cover_the_log(cluster, client, taken_over):
    cluster.clock.advance(seconds=5)
    produce(client, MANY, MANY)
    keep_snapshot(cluster)
    take_over(cluster)
    remote = [each for each in leader_log(cluster).segments if isinstance(each, RemoteSegment)]
    assert [each.base_offset for each in remote] == [0, MANY]
    assert read(cluster) == values(2 * MANY)


def test_new_records_are_read_while_the_store_is_silent(cluster, client, taken_over):
    produce(client, MANY, 3)
    number = cluster.leader(*T)
    with Wire(cluster.brokers[number].address) as wire:
        cluster.cut_from_store(number)
        old = fetch_request(12, (Named("t"), (0, 0)), max_wait_ms=WAIT_MS)
        wire.send(FETCH, old, 12)
        wait_until(lambda: parked(cluster, number) == 1, "the fetch waits")
        with Wire(cluster.brokers[number].address) as other:
            assert other.fetch_one(Named("t"), MANY).error_code == ErrorCode.NONE
        cluster.mend_to_store(number)
        (found,) = wire.receive().responses[0].partitions
        assert found.error_code == ErrorCode.NONE
        assert found.records
        assert wire.read(Named("t"), **FOR_OLD) == values(MANY + 3)
    assert parked(cluster, number) == 0


def parked(cluster, number):
    return scrape(cluster.brokers[number])("barnabas_cold_reads_parked")


def test_fetch_of_old_records_from_a_silent_store_ends_in_its_time(
    world, cluster, client, taken_over
):
    number = cluster.leader(*T)
    codes, begun_s = [], monotonic()
    with Wire(cluster.brokers[number].address) as wire:
        cluster.cut_from_store(number)
        while not codes or not codes[-1]:
            before_s = monotonic()
            found = wire.fetch_one(Named("t"), 0, max_wait_ms=SHORT_WAIT_MS)
            assert not found.records
            assert monotonic() - before_s < 2 * SHORT_WAIT_MS / 1000
            codes.append(found.error_code)
            if monotonic() - begun_s < LEASED_S:
                assert codes[-1] == ErrorCode.NONE
    assert codes[-1] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.mend_to_store(number)
    # A reader that tries again while the leader gets its lease, or another one takes over.
    assert [each.value for each in cluster.records("t").result] == values(MANY)


def test_log_that_becomes_compacted_loses_its_parts(cluster, client, taken_over):
    broker = cluster.brokers[cluster.leader(*T)]
    with Wire(broker.address) as wire:
        alter = AlterableConfig("cleanup.policy", 0, "compact")
        resource = AlterConfigsResource(2, taken_over.topic, [alter])
        wire.ask(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest([resource]), 1)

    def is_compacted():
        cluster.clock.advance(seconds=5)
        return read(cluster) == values(1, MANY - 1)

    wait_until(is_compacted, "the last value of the only key")
    wait_until(lambda: row_of(cluster).parts == [], "a log without parts")
    take_over(cluster)
    assert read(cluster) == values(1, MANY - 1)


def test_offsets_with_a_stored_policy_of_retention_come_whole_with_the_next_leader(cluster, client):
    """A directory of Apache Kafka may have such a policy."""
    commit_offset(client, "g", T, 0)
    metastore = cluster._base.metastore(0)
    (offsets,) = [each for each in metastore.load().topics if each.name == GROUP_OFFSETS]
    metastore.set_topic_configs(offsets.topic_id, {"cleanup.policy": "delete"})
    brokers = cluster.brokers
    wait_until(lambda: all(policy_of(each) == "delete" for each in brokers), "the policy")
    cluster.clock.advance(seconds=5)  # Upkeep meets the log.
    for number in range(MANY):
        commit_offset(client, "g", T, number)
    cluster.clock.advance(minutes=2)
    rows = cluster._store.index.rows
    (used,) = [each for each in offsets.partitions if rows[each.partition_id].extents]
    row = rows[used.partition_id]
    wait_until(
        lambda: row.snapshot and row.snapshot.next_offset == row.log_end_offset, "a snapshot"
    )
    cluster.kill(cluster.leader(GROUP_OFFSETS, used.index))
    assert committed_offset(client, "g", T) == MANY - 1


def policy_of(broker):
    topic = broker.call(lambda: broker.server.catalogue.topic(GROUP_OFFSETS))
    return topic.configs["cleanup.policy"]


def test_deleted_old_records_leave_the_segments(cluster, client, taken_over):
    with Wire(cluster.brokers[cluster.leader(*T)].address) as wire:
        topics = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, MANY)])]
        wire.ask(DELETE_RECORDS, DeleteRecordsRequest(topics, 10_000), 2)
    assert [each.base_offset for each in taken_over.segments] == [MANY]
    produce(client, MANY, 2)
    with Wire(cluster.brokers[cluster.leader(*T)].address) as wire:
        assert wire.fetch_one(Named("t"), 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        found = wire.fetch_one(Named("t"), MANY)
    assert found.log_start_offset == MANY


def test_full_segments_leave_the_disk_of_their_leader():
    small = {"barnabas.cache.max.bytes": str(MIB)}
    records = [b"%d" % number + bytes(200_000) for number in range(24)]
    with Cluster(brokers=1, config=small) as cluster:
        cluster.create_topic("t", configs={"segment.bytes": str(MIB)})
        client = WireClient("client", [cluster.brokers[0].address], 1)
        client.produce(T, batch(records[0]))
        cluster.clock.advance(seconds=5)
        for record in records[1:]:
            client.produce(T, batch(record))
        keep_snapshot(cluster)
        log = leader_log(cluster)

        def has_room():
            cluster.clock.advance(seconds=30)
            sealed = log.local_segments[:-1]
            return sum(segment.size_bytes for segment in sealed) <= MIB

        wait_until(has_room, "the oldest segments are off the disk")
        assert isinstance(log.segments[0], RemoteSegment)
        assert read(cluster) == records
        client.routing.close()


def test_active_segment_larger_than_the_disk_leaves_it():
    small = {"barnabas.cache.max.bytes": str(MIB), "barnabas.disk.reserve.bytes": str(MIB)}
    records = [b"%d" % number + bytes(200_000) for number in range(40)]
    with Cluster(brokers=1, config=small) as cluster:
        cluster.create_topic("t")
        disk = cluster.brokers[0].server.logs.file_system
        disk.capacity_bytes = disk.used_bytes + 5 * MIB
        client = WireClient("client", [cluster.brokers[0].address], 1)
        for number, record in enumerate(records):
            client.produce(T, batch(record))
            if number % 5 == 4:
                cluster.clock.advance(seconds=30)
                log = leader_log(cluster)
                wait_until(
                    lambda log=log: sum(each.size_bytes for each in log.local_segments) <= MIB,
                    "records off the disk",
                )
        assert read(cluster) == records
        client.routing.close()


def test_producer_that_outruns_the_upkeep_is_served_again():
    small = {"barnabas.cache.max.bytes": str(MIB), "barnabas.disk.reserve.bytes": str(MIB)}
    with Cluster(brokers=1, config=small) as cluster:
        cluster.create_topic("t")
        disk = cluster.brokers[0].server.logs.file_system
        disk.capacity_bytes = disk.used_bytes + 4 * MIB
        accepted, refused = [], 0
        with Wire(cluster.brokers[0].address) as wire:
            while len(accepted) < 40:
                record = b"%d" % len(accepted) + bytes(200_000)
                code = wire.produce(Named("t"), batch(record)).error_code
                if code == ErrorCode.NONE:
                    accepted.append(record)
                else:
                    assert code == ErrorCode.KAFKA_STORAGE_ERROR
                    refused += 1
                    assert refused < 20, "the segments that left still take space"
                    cluster.clock.advance(seconds=1)
                    sleep(1)  # A write that waits for room tries again.
        assert refused, "the disk was never full"
        assert read(cluster) == accepted


def test_cache_gives_way_to_records_when_the_disk_fills(cluster, client, taken_over):
    broker = cluster.brokers[cluster.leader(*T)]
    disk = broker.server.logs.file_system
    assert read(cluster) == values(MANY)
    assert scrape(broker)("barnabas_cache_bytes") > 0
    disk.capacity_bytes = disk.used_bytes + broker.server.config.disk_reserve_bytes + MIB
    wait_until(lambda: scrape(broker)("barnabas_cache_bytes") == 0, "an empty cache")
    produce(client, MANY, 2)
    assert read(cluster) == values(MANY + 2)
    assert scrape(broker)("barnabas_cache_bytes") == 0
    disk.capacity_bytes = None
    assert read(cluster) == values(MANY + 2)
    assert scrape(broker)("barnabas_cache_bytes") > 0


@pytest.mark.parametrize("expire", [False, True], ids=["lease", "fenced"])
def test_leadership_lost_during_a_cold_read_moves_the_reader(cluster, client, taken_over, expire):
    former = cluster.leader(*T)
    with Wire(cluster.brokers[former].address) as wire:
        cluster.cut_from_store(former, expire=expire)
        old = fetch_request(12, (Named("t"), (0, 0)), max_wait_ms=WAIT_MS)
        wire.send(FETCH, old, 12)
        wait_until(lambda: cluster.leader(*T) not in (None, former), "another leader")
        cluster.wait_until_served()
        produce(client, MANY, 2)
        assert read(cluster) == values(MANY + 2)
        cluster.mend_to_store(former)
        (found,) = wire.receive().responses[0].partitions
        assert found.error_code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.KAFKA_STORAGE_ERROR,
        )
    wait_until(lambda: len(cluster.running) == 2, "both brokers")


def test_damaged_parts_are_not_used(cluster, client, taken_over):
    row = row_of(cluster)
    (part,) = row.parts
    row.parts = [part._replace(facts=part.facts[:-1] + bytes([part.facts[-1] ^ 1]))]
    take_over(cluster)
    assert not isinstance(leader_log(cluster).segments[0], RemoteSegment)
    assert read(cluster) == values(MANY)


def test_leader_that_dies_before_its_snapshot_leaves_the_earlier_parts(cluster, client, taken_over):
    parts = [*row_of(cluster).parts]
    cluster.clock.advance(seconds=5)
    produce(client, MANY, MANY)
    number = cluster.leader(*T)
    cluster.hold_commits(number)
    cluster.clock.advance(minutes=2)
    cluster.kill(number)
    cluster.release_commits(number)
    cluster.wait_until_served()
    assert row_of(cluster).parts[: len(parts)] == parts
    assert isinstance(leader_log(cluster).segments[0], RemoteSegment)
    assert read(cluster) == values(2 * MANY)
