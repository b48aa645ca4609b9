"""Metrics of brokers in a cluster, after something has happened to them."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.leading.upkeep import UpkeepCounts
from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.metrics.collectors import register_cluster_store
from barnabas.broker.metrics.exposition import exposition
from barnabas.broker.metrics.families import Metrics
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.counts import FlushCounts
from barnabas.storage.replicated.log_index import StoredSpace
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.metrics.in_cluster import scrape_kafka_names
from tests.broker.metrics.scrape import Scrape, scrape
from tests.broker.moves import INTERNAL_PARTITIONS, Held, assign, led_cluster, log_of, seize, served
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

DATA = Named("data")
INTERNAL = 2 * INTERNAL_PARTITIONS
LEASE_S = 10
SMALL_UPLOADS = {"barnabas.flush.object.min.bytes": "1000"}


@pytest.fixture
def cluster(world):
    """Broker 0 leads two partitions of three, and the internal topics."""
    with led_cluster({DATA.name: [0, 0, 1]}, brokers=2) as cluster:
        yield cluster


def states(broker):
    """Partitions that are read, opened, served and given away."""
    seen = scrape(broker)
    names = ("reading", "opened", "served", "draining")
    return [seen("barnabas_cluster_partitions", state=name) for name in names]


def counted(broker):
    """Partitions that came, logs that were closed, flushes that were refused."""
    seen = scrape(broker)
    return [
        seen(f"barnabas_{name}")
        for name in (
            "cluster_takeover_seconds_count",
            "cluster_logs_closed_total",
            "flushes_refused_total",
        )
    ]


def test_partitions_by_state(cluster, monkeypatch):
    first, second = cluster.brokers
    came = counted(second)[0]
    assert [states(each) for each in cluster.brokers] == [[0, 0, INTERNAL + 2, 0], [0, 0, 1, 0]]
    reads = Held(monkeypatch, StoredLogs, "reading")
    assign(cluster, DATA.name, 1, 1)
    wait_until(lambda: states(second) == [1, 0, 1, 0])
    reads.release()
    served(cluster, DATA.name, 1, 1)
    cluster.move(DATA.name, 0, to=1)
    assert [states(each) for each in cluster.brokers] == [[0, 0, INTERNAL, 0], [0, 0, 3, 0]]
    assert counted(second) == [came + 2, 0, 0]
    assert scrape(second)("barnabas_cluster_takeover_seconds_sum") > 0
    assert first.server.leadership.states()[State.AWAY] == 3


def test_partition_that_waits_for_its_commits_before_it_goes(cluster):
    broker = cluster.brokers[0]
    cluster.hold_commits(0)
    with Wire(broker.address) as wire:
        wire.send(PRODUCE, produce_request(9, DATA, (0, batch(b"a"))), 9)
        wait_until(lambda: log_of(broker, DATA.name, 0).next_offset == 1)
        cluster.want(DATA.name, 0, 1)
        wait_until(lambda: states(broker) == [0, 0, INTERNAL + 1, 1])
        cluster.release_commits(0)
        assert wire.receive().responses[0].partition_responses[0].error_code == ErrorCode.NONE
    wait_until(lambda: states(broker) == [0, 0, INTERNAL + 1, 0])


def test_refused_flush(cluster):
    first = cluster.brokers[0]
    came = counted(first)[0]
    cluster.hold_commits(0)
    with Wire(first.address) as wire:
        wire.send(PRODUCE, produce_request(9, DATA, (0, batch(b"a"))), 9)
        wait_until(lambda: log_of(first, DATA.name, 0).next_offset == 1)
        seize(cluster, DATA.name, 0, 1)
        cluster.release_commits(0)
        answer = wire.receive().responses[0].partition_responses[0].error_code
    assert answer == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert counted(first) == [came, 0, 1], "the view has closed the log before"


def test_session_that_ends(cluster):
    first = cluster.brokers[0]
    came = counted(first)[0]
    cluster.expire(0)
    wait_until(lambda: scrape(first)("barnabas_sessions_total") == 2)
    assert counted(first)[2] == 0, "nothing was refused: nothing was asked for"
    cluster.wait_until_served()
    assert counted(first)[0] == came + states(first)[2]


def test_brokers_and_controller_by_kafkas_names(cluster, monkeypatch):
    def kafka(name):
        found = f"kafka_controller_kafkacontroller_{name}"
        running = [cluster.brokers[each] for each in cluster.running]
        return [scrape_kafka_names(each)(found) for each in running]

    wait_until(lambda: kafka("activebrokercount") == [2, 2])
    assert sum(kafka("activecontrollercount")) == 1
    wait_until(lambda: kafka("offlinepartitionscount") == [0, 0])
    assignments = Held(monkeypatch, cluster._store.index, "assign")
    cluster.kill(1)
    wait_until(lambda: kafka("offlinepartitionscount") == [1])
    assert kafka("activebrokercount") == [1]
    assignments.release()
    wait_until(lambda: kafka("offlinepartitionscount") == [0])
    wait_until(lambda: kafka("activecontrollercount") == [1])


def test_lease_and_store_as_they_stand(world, cluster):
    broker = cluster.brokers[0]

    def seen(scraped):
        names = ("lease_age_seconds", "lease_seconds", "may_serve", "store_unavailable")
        return [scraped(f"barnabas_cluster_{name}") for name in names]

    age_s, lease_s, *rest = seen(scrape(broker))
    assert 0 <= age_s < lease_s == LEASE_S
    assert rest == [1, 0]
    cluster.cut_from_store(0)
    world.sleep(LEASE_S + 1)
    age_s, _, *rest = seen(scrape(broker))
    assert age_s > LEASE_S
    assert rest == [0, 1]


def test_numbers_of_upkeep():
    """Show the counts of the collectors themselves: a broker changes them rarely."""
    upkeep = UpkeepCounts(
        snapshots=2,
        bytes_compacted=3,
        extents_deleted=4,
        looked_ms=5000,
        sessions_forgotten=6,
        extents_packed=7,
        bytes_packed=8,
        space=StoredSpace(pinned_bytes=9, backlog_bytes=10),
        segments_offloaded=11,
    )
    metrics = Metrics()
    register_cluster_store(metrics, FlushCounts(), upkeep, lambda: "")
    seen = Scrape("".join(exposition(metrics.collect())))
    names = (
        "snapshots",
        "compacted_bytes",
        "extents_deleted",
        "sessions_forgotten",
        "segments_offloaded",
    )
    assert [seen(f"barnabas_cluster_{name}_total") for name in names] == [2, 3, 4, 6, 11]
    names = ("extents_packed_total", "packed_bytes_total", "pinned_bytes", "packing_backlog_bytes")
    assert [seen(f"barnabas_cluster_{name}") for name in names] == [7, 8, 9, 10]
    assert seen("barnabas_cluster_upkeep_timestamp_seconds") == 5


def test_uploads_of_large_flushes_are_counted(world):
    with led_cluster({DATA.name: [0]}, brokers=1, **SMALL_UPLOADS) as cluster:
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            assert wire.produce(DATA, batch(bytes(5000))).error_code == ErrorCode.NONE
        seen = scrape(broker)
    assert seen("barnabas_object_uploads") == 0
    assert seen("barnabas_object_requests_total", op="put", result="ok") == 1
    assert seen("barnabas_object_requests_total", op="put", result="failed") == 0
    assert seen("barnabas_object_hedges_total") == 0
    assert 5000 < seen("barnabas_object_bytes_total", op="put") < 6000
    assert seen("barnabas_object_request_seconds_count", op="put") == 1


def test_broker_that_is_cut_off_counts_no_broker_of_the_cluster(world, cluster):
    def counts(name):
        return [scrape(each)(name) for each in cluster.brokers]

    names = ("kafka_brokers", "kafka_controller_kafkacontroller_activebrokercount")
    for name in names:
        wait_until(lambda name=name: counts(name) == [2, 2])
    cluster.cut_from_store(0, expire=True)
    world.sleep(LEASE_S + 1)
    for name in names:
        assert counts(name) == [1, 1]
    cluster.mend_to_store(0)
    wait_until(lambda: counts("kafka_brokers") == [2, 2])


def test_brokers_of_a_cluster_show_its_metrics(cluster):
    def total(name):
        return sum(scrape(each)(name) for each in cluster.brokers)

    controllers = "kafka_controller_kafkacontroller_activecontrollercount"
    wait_until(lambda: total(controllers) == 1)
    broker = cluster.brokers[0]
    seen = scrape(broker)
    assert seen("barnabas_sessions_total") == 1
    assert seen("barnabas_cluster_partitions_damaged") == 0
    now_s = broker.clock.now_ms() / 1000
    assert now_s - 600 < seen("barnabas_cluster_upkeep_timestamp_seconds") <= now_s
