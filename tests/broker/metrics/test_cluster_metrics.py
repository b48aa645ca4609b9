"""What the numbers of brokers in a cluster say after things have happened to them."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.topics.leadership import State
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.metrics.in_cluster import CALM, scrape_in_cluster, scrape_kafka_names
from tests.broker.metrics.scrape import scrape
from tests.broker.moving import moving_pair
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

LEASE_S = 10
"""Default of barnabas.lease.ms, in seconds."""

DATA = Named("data", bytes([1] * 16))


@pytest.fixture
def cluster():
    """The first broker leads two partitions of three."""
    with moving_pair({DATA.name: 3}) as cluster:
        cluster.give(cluster.brokers[0], *cluster.ids[DATA.name][:2])
        yield cluster


def states(broker):
    seen = scrape_in_cluster(broker)
    names = ("reading", "opened", "served", "draining")
    return [seen("barnabas_cluster_partitions", state=name) for name in names]


def counted(broker):
    """Partitions that came, logs that were closed, flushes that were refused."""
    seen = scrape_in_cluster(broker)
    return [
        seen(f"barnabas_{name}")
        for name in (
            "cluster_takeover_seconds_count",
            "cluster_logs_closed_total",
            "flushes_refused_total",
        )
    ]


def test_what_each_broker_leads(cluster):
    first, second = cluster.brokers
    assert [states(each) for each in cluster.brokers] == [[0, 0, 2, 0], [0, 0, 0, 0]]
    with cluster.store.nothing_is_read():
        cluster.assign(second, cluster.ids[DATA.name][2])
        cluster.tell()
        assert states(second) == [1, 0, 0, 0]
    cluster.served(second, cluster.ids[DATA.name][2])
    cluster.move(second, cluster.ids[DATA.name][0])
    assert [states(each) for each in cluster.brokers] == [[0, 0, 1, 0], [0, 0, 2, 0]]
    assert [counted(each) for each in cluster.brokers] == [[2, 0, 0], [2, 0, 0]]
    assert scrape_in_cluster(second)("barnabas_cluster_takeover_seconds_sum") > 0
    assert first.server.leadership.states()[State.AWAY] == 2


def test_a_partition_that_is_given_up_once_what_was_placed_is_durable(cluster):
    broker, partition_id = cluster.brokers[0], cluster.ids[DATA.name][0]
    broker.hold()
    with Wire(broker.address) as wire:
        wire.send(PRODUCE, produce_request(9, DATA, (0, batch(b"a"))), 9)
        wait_until(lambda: broker.log(DATA.name, 0).next_offset == 1)
        broker.call(lambda: broker.server.leadership.release(partition_id, lambda: None))
        assert states(broker) == [0, 0, 1, 1]
        broker.hold(held=False)
        assert wire.receive().responses[0].partition_responses[0].error_code == ErrorCode.NONE
    wait_until(lambda: states(broker) == [0, 0, 1, 0])


def test_a_refusal(cluster):
    first, second = cluster.brokers
    cluster.assign(second, cluster.ids[DATA.name][0])
    with Wire(first.address) as wire:
        answer = wire.produce(DATA, batch(b"a")).error_code
    assert answer == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert counted(first) == [2, 1, 1]


def test_a_session_that_is_over(cluster):
    first = cluster.brokers[0]
    first.lose_session()
    wait_until(lambda: states(first) == [0, 0, 0, 0])
    assert counted(first) == [2, 2, 0], "nothing was refused: nothing was asked for"
    assert scrape_in_cluster(first)("barnabas_sessions_total") == 2


def test_who_there_is_and_what_nobody_leads(cluster):
    first, second = cluster.brokers
    cluster.tell()

    def kafka(broker, name):
        return scrape_kafka_names(broker)(f"kafka_controller_kafkacontroller_{name}")

    assert [kafka(each, "activebrokercount") for each in cluster.brokers] == [2, 2]
    assert [kafka(each, "activecontrollercount") for each in cluster.brokers] == [1, 0]
    assert [kafka(each, "offlinepartitionscount") for each in cluster.brokers] == [1, 1]
    cluster.give(second, cluster.ids[DATA.name][2])
    assert [kafka(each, "offlinepartitionscount") for each in cluster.brokers] == [0, 0]
    first.view.controller_id = NO_NODE
    assert kafka(first, "activecontrollercount") == 0


def test_the_lease_and_the_store(cluster):
    def seen(standing, trouble=""):
        scraped = scrape_in_cluster(cluster.brokers[0], standing, trouble)
        names = ("lease_age_seconds", "lease_seconds", "may_serve", "store_away")
        return [scraped(f"barnabas_cluster_{name}") for name in names]

    assert seen(CALM) == [1.5, 10, 1, 0]
    away = CALM._replace(lease_age_s=lambda: 7, may_serve=lambda: False)
    assert seen(away, "connection refused") == [7, 10, 0, 1]


def test_upkeep(cluster):
    seen = scrape_in_cluster(cluster.brokers[0])
    counted = ("snapshots", "compacted_bytes", "extents_deleted", "sessions_forgotten")
    assert [seen(f"barnabas_cluster_{name}_total") for name in counted] == [2, 3, 4, 6]
    assert seen("barnabas_cluster_upkeep_timestamp_seconds") == 5


def test_who_is_cut_off_is_no_broker_of_the_cluster_by_its_own_count_either():
    with WatchedCluster(2) as cluster:

        def counts(name):
            return [scrape(each)(name) for each in cluster.brokers]

        names = ("kafka_brokers", "kafka_controller_kafkacontroller_activebrokercount")
        for name in names:
            wait_until(lambda name=name: counts(name) == [2, 2])
        cluster.cut_from_store(0)
        for name in names:
            wait_until(lambda name=name: counts(name) == [1, 1])
        cluster.mend_to_store(0)
        wait_until(lambda: counts("kafka_brokers") == [2, 2])


def test_brokers_of_a_cluster_show_them():
    with WatchedCluster(2) as cluster:
        cluster.create_topic("t", 2)

        def total(name, **labels):
            return sum(scrape(each)(name, **labels) for each in cluster.brokers)

        wait_until(lambda: total("kafka_brokers") == 4)
        controllers = "kafka_controller_kafkacontroller_activecontrollercount"
        wait_until(lambda: total(controllers) == 1)
        wait_until(lambda: total("barnabas_cluster_partitions", state="served") == 2)
        seen = scrape(cluster.brokers[0])
        assert seen("barnabas_cluster_lease_seconds") == LEASE_S
        assert 0 <= seen("barnabas_cluster_lease_age_seconds") < LEASE_S
        assert seen("barnabas_cluster_may_serve") == 1
        assert seen("barnabas_cluster_store_away") == 0
        assert seen("barnabas_sessions_total") == 1
        assert seen("barnabas_cluster_partitions_damaged") == 0
        now_s = cluster.brokers[0].clock.now_ms() / 1000
        assert now_s - 600 < seen("barnabas_cluster_upkeep_timestamp_seconds") <= now_s
