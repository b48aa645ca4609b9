"""Brokers that cannot reach the object store while others can, and all of them at once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from barnabas.broker.cluster.start.object_access import GIVEN_UP_S, ObjectAccess
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.broker.metrics.scrape import scrape
from tests.cluster.lone_objects import Reach, clusters_with_links_to_objects
from tests.cluster.torture import COMMIT_MS
from tests.cluster.watched import WatchedCluster
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload import simulated
from tests.workload.settings import PARTITIONS, TOPICS
from tests.workload.simulated import Workload
from tests.worlds import world

__all__ = ["world"]

LEASE_S = 2
CONFIG = {
    "barnabas.lease.ms": str(LEASE_S * 1000),
    "barnabas.flush.object.min.bytes": "1",
    "barnabas.flush.ms": "0",
}
TOPIC = TOPICS[0]
CORDONED = {"cordoned.log.dirs": "*"}
KINDS = tuple(
    each
    for each in simulated.KINDS
    if each.role in {"sender", "writer", "transformer", "member", "reader"}
    and each.library == "wire"
    and each.transactional_id != "duel"
)
REST_S = 2.0
"""The longest rest of a client between two operations."""
GIVEN_UP = "object store fails at this broker only, partitions given up"
WORKS = "object store works again for this broker"


@contextlib.contextmanager
def running(**config: str) -> Iterator[tuple[WatchedCluster, Reach]]:
    """Start a broker, and two others with more settings."""
    with (
        clusters_with_links_to_objects(SEED) as reach,
        WatchedCluster(1, config=CONFIG, commit_ms=COMMIT_MS, seed=SEED) as cluster,
    ):
        for _ in range(2):
            cluster.add(CONFIG | config)
        for topic in TOPICS:
            cluster.create_topic(topic, PARTITIONS)
        cluster.settle(TOPIC)
        yield cluster, reach


@contextlib.contextmanager
def clients_of(cluster: WatchedCluster) -> Iterator[Workload]:
    """Run clients in the block; afterwards each record must be there once."""
    with Workload(cluster.bootstrap_servers, SEED, REST_S, KINDS) as workload:
        workload.goes_on()
        yield workload
        cluster.wait_until_served()
        workload.goes_on()
        workload.end()
        workload.judge()


def in_service(cluster: WatchedCluster) -> list[int]:
    return sorted(each.node_id for each in cluster._picture().members)


def sessions(cluster: WatchedCluster) -> list[int]:
    return [cluster.session(each) for each in range(3)]


def wait_until_failing(cluster: WatchedCluster, *numbers: int) -> None:
    """Wait until the puts of brokers have failed for twice the time; a broker writes the guard."""

    def failing_s(number: int) -> float:
        counts = cluster.brokers[number].server._member._around.base.object_counts
        return counts.puts().failing_s or 0.0

    wait_until(
        lambda: all(failing_s(each) > 2 * GIVEN_UP_S for each in numbers), seconds=300, pause_s=0.5
    )


def led_count(cluster: WatchedCluster, number: int) -> int:
    found: int = cluster.on(number, lambda server: server._member.led_count)
    return found


def warnings_of(cluster: WatchedCluster, number: int) -> dict[str, str]:
    found: dict[str, str] = cluster.on(number, lambda server: server.cluster_warnings())
    return found


def test_lone_broker_gives_its_partitions_up_and_returns(world, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker")
    with running() as (cluster, reach), clients_of(cluster) as workload:
        began_s, before = monotonic(), sessions(cluster)
        reach.cut(cluster, 0)
        wait_until(lambda: in_service(cluster) == [1, 2])
        assert GIVEN_UP_S <= monotonic() - began_s < GIVEN_UP_S + 10
        cluster.settle(TOPIC, 1, 2)
        assert monotonic() - began_s < GIVEN_UP_S + 10 + LEASE_S
        workload.goes_on()
        assert f"{GIVEN_UP} session={before[0]} others=1,2: connection refused" in caplog.text
        wait_until(lambda: "at this broker only" in warnings_of(cluster, 0)["objects"])
        assert warnings_of(cluster, 0)["lease"] == "given up: this broker leads nothing"
        seen = scrape(cluster.brokers[0])
        assert seen("barnabas_object_store_given_up") == 1
        assert seen("barnabas_object_store_away_seconds") >= GIVEN_UP_S
        sleep(20)
        assert in_service(cluster) == [1, 2], "the store does not work for it"
        assert WORKS not in caplog.text
        reach.cut(cluster)
        wait_until(lambda: led_count(cluster, 0))
        assert sessions(cluster)[1:] == before[1:]
        assert caplog.text.count(WORKS) == 1
        wait_until(lambda: not warnings_of(cluster, 0))
        assert scrape(cluster.brokers[0])("barnabas_object_store_given_up") == 0


def test_no_broker_gives_up_while_the_store_fails_at_all(world):
    with running() as (cluster, reach), clients_of(cluster) as workload:
        before = sessions(cluster)
        with workload.held():
            reach.cut(cluster, 0, 1, 2)
            wait_until_failing(cluster, 0, 1, 2)
            assert in_service(cluster) == [0, 1, 2]
            reach.cut(cluster)
        workload.goes_on()
        assert sessions(cluster) == before


def test_two_brokers_give_up_and_the_third_serves_all(world):
    with running() as (cluster, reach), clients_of(cluster) as workload:
        reach.cut(cluster, 0, 2)
        wait_until(lambda: in_service(cluster) == [1])
        cluster.settle(TOPIC, 1)
        workload.goes_on()
        # Now it is the only one, and no other broker is well.
        session = cluster.session(1)
        with workload.held():
            reach.cut(cluster, 0, 1, 2)
            wait_until_failing(cluster, 1)
            assert in_service(cluster) == [1]
            reach.cut(cluster)
        wait_until(lambda: in_service(cluster) == [0, 1, 2])
        assert cluster.session(1) == session


def test_outages_that_end_in_time_move_nothing(world):
    with running() as (cluster, reach), clients_of(cluster) as workload:
        before = sessions(cluster)
        for _ in range(4):
            reach.cut(cluster, 0)
            sleep(GIVEN_UP_S - 5)
            reach.cut(cluster)
            sleep(5)
        workload.goes_on()
        assert sessions(cluster) == before


def test_broker_does_not_give_up_for_cordoned_ones(world):
    with running(**CORDONED) as (cluster, reach):
        before = sessions(cluster)
        reach.cut(cluster, 0)
        wait_until_failing(cluster, 0)
        assert sessions(cluster) == before
        assert in_service(cluster) == [0, 1, 2]


def test_broker_does_not_give_up_for_brokers_that_report_nothing(world, monkeypatch):
    """Brokers of an earlier release neither look at the store nor report."""
    check_once = ObjectAccess.check_once

    async def look(access: ObjectAccess) -> None:
        if access._membership.view.node_id == 0:
            await check_once(access)

    monkeypatch.setattr(ObjectAccess, "check_once", look)
    with running() as (cluster, reach):
        before = sessions(cluster)
        reach.cut(cluster, 0)
        wait_until_failing(cluster, 0)
        assert sessions(cluster) == before
        assert in_service(cluster) == [0, 1, 2]


def test_broker_that_has_given_up_stops_at_once_and_starts_again(world):
    with running() as (cluster, reach):
        reach.cut(cluster, 0)
        cluster.send(TOPIC, range(60))
        assert in_service(cluster) == [1, 2]
        began_s = monotonic()
        cluster.stop(0)
        assert monotonic() - began_s < LEASE_S
        cluster.restart(0)
        wait_until(lambda: led_count(cluster, 0))


def test_nothing_is_requested_of_the_store_in_good_times(world):
    with running() as (cluster, _):
        sleep(10)

        def requests() -> float:
            names = ("put", "get", "list", "delete")
            seen = [scrape(each) for each in cluster.brokers]
            name = "barnabas_object_requests_total"
            return sum(each(name, op=op, result="ok") for each in seen for op in names)

        before = requests()
        sleep(40)  # Less than the interval of the guard.
        assert requests() == before
