"""Three brokers get an object store one after the other, and lose it again."""

import contextlib
import logging

import pytest

from barnabas.broker.testing.store.base import MemoryBase
from barnabas.storage.errors import StoreUnusable
from tests.broker.cli.inline import run_inline
from tests.broker.metrics.scrape import scrape
from tests.cluster.watched import WatchedCluster
from tests.storage.scripted_objects import clusters_with_objects
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

TOPIC = "orders"
PARTITIONS = 6
CONFIG = {
    "barnabas.flush.object.min.bytes": "1",
    "barnabas.lease.ms": "2000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
WAITS = "object store not used until these brokers have the same barnabas.storage, too nodes={} "
REFUSED = r"records in the object store memory://objects, and barnabas\.storage of broker {} is {}:"


@contextlib.contextmanager
def without_store():
    """Yield three brokers without an object store, its objects, and what opens them."""
    with clusters_with_objects() as stores, WatchedCluster(0, config=CONFIG) as cluster:
        open_objects, cluster._store.open_objects = cluster._store.open_objects, None
        for _ in range(3):
            cluster.add()
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        yield cluster, stores[0].bodies, open_objects


def give(cluster, open_objects, *numbers):
    """Restart brokers with an object store, or without one."""
    for number in numbers:
        cluster._store.open_objects = open_objects
        cluster.restart(number)
        cluster.settle(TOPIC)


def damaged(cluster):
    return [
        name
        for number in cluster.running
        for name in cluster.on(number, lambda server: server.leadership.damaged())
    ]


def test_store_is_used_once_all_brokers_have_it(world, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker")
    with without_store() as (cluster, bodies, open_objects):
        give(cluster, open_objects, 0, 1)
        assert WAITS.format("1,2") in caplog.text
        assert WAITS.format("2") in caplog.text
        cluster.send(TOPIC, range(60))
        assert not bodies, "broker 2 could not read them"
        # The only broker without the store leads all, then another one does.
        for number in (1, 0):
            cluster.kill(number)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60, 90))
        for number in (0, 1):
            cluster.restart(number)
        give(cluster, open_objects, 2)
        wait_until(lambda: "object store in use address=memory://objects" in caplog.text)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(90, 150))
        assert bodies
        for number in (0, 2):
            cluster.kill(number)
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == list(range(150))
        assert damaged(cluster) == []


def shown(cluster, monkeypatch):
    """Return the metric of broker 0, and the output of the command line."""
    broker = cluster.brokers[0]
    words = ("cluster", "describe", "-b", "{}:{}".format(*broker.address))
    found = run_inline(monkeypatch, [*words, "--format", "json"]).json["lacks_object_store"]
    text = next((each for each in run_inline(monkeypatch, words).lines if "object" in each), "")
    return scrape(broker)("barnabas_object_store_lacking_brokers"), found, text


def test_brokers_that_lack_the_store_are_shown(world, monkeypatch):
    with without_store() as (cluster, _, open_objects):
        give(cluster, open_objects, 0)
        waits = "object store not used until these brokers have it: 1, 2"
        assert shown(cluster, monkeypatch) == (2, [1, 2], waits)
        give(cluster, open_objects, 1, 2)
        wait_until(lambda: shown(cluster, monkeypatch) == (0, [], "object store in use"))


def test_broker_without_the_store_in_use_does_not_start(world):
    with without_store() as (cluster, bodies, open_objects):
        give(cluster, open_objects, 0, 1, 2)
        cluster.send(TOPIC, range(60))
        assert bodies
        cluster.kill(1)
        cluster._store.open_objects = None
        with pytest.raises(StoreUnusable, match=REFUSED.format(1, "not set")):
            cluster.restart(1)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60, 120))
        give(cluster, open_objects, 1)
        assert sorted(cluster.values(TOPIC)) == list(range(120))
        assert damaged(cluster) == []


def test_broker_without_the_store_ends_if_the_others_use_it(world):
    """The session of the broker has expired before it registers again."""
    with without_store() as (cluster, bodies, open_objects):
        give(cluster, open_objects, 0, 1)
        cluster.cut_from_store(2, expire=True)
        cluster.settle(TOPIC, 0, 1)
        cluster.send(TOPIC, range(60))
        assert bodies
        lone = cluster.brokers[2]
        cluster.mend_to_store(2)
        wait_until(lambda: lone.failure is not None)
        assert isinstance(lone.failure, StoreUnusable)
        cluster.kill(2)
        assert damaged(cluster) == []
        assert {*cluster.values(TOPIC)} == set(range(60))


def test_store_that_no_record_needs_can_be_left(world):
    with without_store() as (cluster, bodies, open_objects):
        give(cluster, open_objects, 0, 1, 2)
        for number in range(3):
            cluster.kill(number)
        cluster._store.open_objects = None
        for number in range(3):
            cluster.restart(number)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60))
        assert not bodies
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_cluster_whose_records_are_in_the_store_learns_how_to_leave_it(world):
    with without_store() as (cluster, bodies, open_objects):
        give(cluster, open_objects, 0, 1, 2)
        cluster.send(TOPIC, range(60))
        assert bodies
        for number in range(3):
            cluster.kill(number)
        cluster._store.open_objects = None
        with pytest.raises(
            StoreUnusable, match=r"is not set: set it\. .*'barnabas cluster export'"
        ):
            cluster.restart(0)
        cluster._store.open_objects = open_objects
        for number in range(3):
            cluster.restart(number)
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_another_address_of_the_store_is_refused(world, monkeypatch):
    with without_store() as (cluster, _, open_objects):
        give(cluster, open_objects, 0, 1, 2)
        cluster.kill(2)
        init = MemoryBase.__init__

        def elsewhere(base, *arguments):
            init(base, *arguments)
            base.object_use.address = "memory://other"

        monkeypatch.setattr(MemoryBase, "__init__", elsewhere)
        with pytest.raises(StoreUnusable, match=REFUSED.format(2, "memory://other")):
            cluster.restart(2)
