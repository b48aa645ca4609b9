"""A broker of a cluster has no journal in files, and its directory is a cache of what is durable.

Its periodic work and its logs have to be correct there, too.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.storage.repair.check import verify
from barnabas.storage.repair.scrub_notes import FILE_NAME
from tests.broker.console.asking import HTTP, ask_api
from tests.broker.data_plane import Named, Wire, batch
from tests.broker.handlers.test_fetch import fill, log_of, settle
from tests.broker.metrics.scrape import scrape
from tests.broker.moves import led_cluster, served, state, stored
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

DATA, KEPT = Named("data"), Named("kept")
HOUR_S = 3600
CONFIG = {
    "barnabas.scrub.bytes.per.second": "100000000",
    "barnabas.scrub.interval.ms": "60000",
    "log.retention.ms": "-1",
    "producer.id.expiration.ms": "60000",
}


@pytest.fixture
def cluster(world):
    """The first broker leads everything, in small segments."""
    with led_cluster({DATA.name: [0], KEPT.name: [0]}, brokers=2, **CONFIG, **HTTP) as cluster:
        for topic in (DATA, KEPT):
            in_small_segments(cluster.brokers[0], topic)
        yield cluster


@pytest.fixture
def leader(cluster):
    return cluster.brokers[0]


@pytest.fixture
def wire(leader):
    with Wire(leader.address) as wire:
        yield wire


def in_small_segments(leader, topic) -> None:
    """Whenever its log is read, too."""

    def configure() -> None:
        shown = leader.server.catalogue.topics[topic.name]
        shown.log_config = replace(shown.log_config, segment_bytes=2000, index_interval_bytes=500)
        for _, log in shown.partitions_here():
            log.configure(shown.log_config)

    leader.call(configure)


# ------------------------------------------------------------------------------ what it says of it


def test_its_metrics_are_of_flushes_and_of_no_journal(cluster, leader, wire):
    wire.produce(DATA, batch(b"v"))
    found = scrape(leader)
    names = {family.name for family in found.families}
    assert not names & {"barnabas_journal_bytes", "barnabas_journal_written_bytes"}
    assert found("barnabas_flush_seconds_count") >= 1
    assert found("barnabas_flush_batches_sum") >= 1
    assert found("barnabas_disk_free_bytes") > 0
    assert found("barnabas_flushes_refused_total") == 0
    assert found("barnabas_sessions_total") == 1
    assert found("barnabas_cluster_store_unavailable") == 0


def test_its_console_and_its_history_have_no_journal(world, leader, wire):
    wire.produce(DATA, batch(b"v"))
    for _ in range(3):
        leader.call(leader.server.history.sample)
        leader.clock.advance(seconds=1)
    overview = world.run(ask_api(leader, "overview"))
    assert overview["journal_bytes"] == 0
    storage = world.run(ask_api(leader, "storage"))
    assert (storage["journal_bytes"], storage["journal_written_bytes"]) == (0, 0)
    assert storage["flushed_batches"] >= 1
    assert sum(each["count"] for each in storage["flushes"]) >= 1


def test_log_dirs_are_those_of_local_copies(cluster, leader, wire):
    fill(leader, wire, DATA, 5)
    request = DescribeLogDirsRequest([DescribableLogDirTopic("data", [0])])
    (here,) = wire.ask(DESCRIBE_LOG_DIRS, request, 4).results
    assert here.topics[0].partitions[0].partition_size == log_of(leader, DATA).size_bytes > 0
    with Wire(cluster.brokers[1].address) as other:
        (elsewhere,) = other.ask(DESCRIBE_LOG_DIRS, request, 4).results
    assert elsewhere.topics[0].partitions == []
    assert elsewhere.usable_bytes > 0


# --------------------------------------------------------------------- what it does now and then


def test_retention_moves_the_durable_start_and_frees_the_cache(cluster, leader, wire):
    fill(leader, wire, DATA, 60)
    log = log_of(leader, DATA)
    segments = len(log.segments)
    assert segments > 5
    retention = {"retention.bytes": "3000"}
    configs = leader.server.catalogue.configs
    leader._do(configs.alter_topic_configs("data", lambda _: retention))
    leader.clock.advance(seconds=HOUR_S)
    wait_until(lambda: stored(cluster, "data", 0).log_start_offset > 0)
    start = stored(cluster, "data", 0).log_start_offset
    wait_until(lambda: leader.call(lambda: log.log_start_offset) == start)
    leader.clock.advance(seconds=HOUR_S)  # A checkpoint has the files removed.
    wait_until(lambda: leader.call(lambda: not log.dropped_segments))
    assert len(log.segments) < segments
    cluster.move("data", 0, to=1)
    assert log_of(cluster.brokers[1], DATA).log_start_offset == start


def test_a_compacted_copy_and_a_new_one_have_the_same_latest_records(cluster, leader, wire):
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    configs = leader.server.catalogue.configs
    leader._do(configs.alter_topic_configs("kept", lambda _: compact))
    in_small_segments(leader, KEPT)
    for number in range(100):
        wire.produce(KEPT, batch(b"%d" % number, b"x" * 100))
    log = log_of(leader, KEPT)
    size_bytes = log.size_bytes
    leader.clock.advance(seconds=HOUR_S)
    wait_until(lambda: leader.call(lambda: log.cleaning.swaps))
    in_place = lambda: leader.call(lambda: not log.cleaning.swaps_under_way)  # noqa: E731  short
    while not in_place():
        leader.clock.advance(seconds=HOUR_S)  # A checkpoint has the files renamed.
    assert log.size_bytes < size_bytes
    assert leader.call(lambda: verify(log)) == []
    kept = wire.read(KEPT)[-2:]
    cluster.move("kept", 0, to=1)
    with Wire(cluster.brokers[1].address) as other:
        assert other.read(KEPT)[-2:] == kept


def damage(leader, topic=DATA) -> None:
    """Change a byte of the oldest segment's file, that readers have not in memory."""

    def change() -> None:
        segment = log_of(leader, topic).segments[0]
        file = leader.server.file_system.open(segment.log_path)
        file.pwritev([b"\xff" * 50], 70)
        file.close()

    leader.call(change)


def scrubbed(leader, minutes=2) -> None:
    counts = leader.server.scrubber.counts
    before = counts.last_full_pass_ms
    leader.clock.advance(minutes=minutes)
    wait_until(lambda: counts.last_full_pass_ms > before)


def test_a_damaged_copy_is_replaced_once_and_not_again_and_again(cluster, leader, wire):
    fill(leader, wire, DATA, 60)
    values = wire.read(DATA)
    log = log_of(leader, DATA)
    damage(leader)
    leader.clock.advance(minutes=2)
    wait_until(lambda: leader.call(lambda: log_of(leader, DATA) not in {None, log}))
    served(cluster, "data", 0, 0)
    assert wire.read(DATA) == values
    renewed = log_of(leader, DATA)
    assert len(renewed.segments) > 1
    assert leader.server.scrubber.describe_damage() is None
    settle(leader, DATA)
    damage(leader)
    scrubbed(leader)
    assert leader.server.scrubber.describe_damage() is not None
    assert log_of(leader, DATA) is renewed
    assert state(leader, "data", 0) is State.SERVED


def test_verified_segments_of_copies_are_not_recorded(cluster, leader, wire):
    fill(leader, wire, DATA, 60)
    scrubbed(leader)
    leader.call(leader.server.scrubber.save)
    names = leader.server.file_system.list_directory(leader.server.logs.root)
    assert FILE_NAME not in names


def test_idle_producers_are_forgotten(cluster, leader, wire):
    producer = {"producer_id": 1 << 62, "producer_epoch": 0, "base_sequence": 0}
    assert wire.produce(DATA, batch(b"v", **producer)).error_code == 0
    log = log_of(leader, DATA)
    assert len(list(log.producers.entries())) == 1
    leader.clock.advance(seconds=HOUR_S)
    wait_until(lambda: leader.call(lambda: not list(log.producers.entries())))
