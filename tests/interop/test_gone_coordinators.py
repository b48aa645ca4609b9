"""Offsets of transactions are committed although the coordinator of their group has died.

librdkafka (2.16) waits forever, beyond any timeout, for an error that makes it find another
coordinator; Apache Kafka does not send that error.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from barnabas.broker.cluster.membership import membership
from barnabas.broker.coordination.shard import java_hash
from barnabas.testing import Cluster
from tests.counterparts.logins import NOBODY
from tests.history.model import Write
from tests.waiting import wait_until
from tests.workload.drivers import session_kind

pytestmark = [
    pytest.mark.timeout(300),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

TOPIC, PARTITIONS = "orders", 3
OFFSETS, STATES, SHARDS = "__consumer_offsets", "__transaction_state", 3
TRANSACTIONAL_ID = "worker"
GAP_S = 3
"""Longer than librdkafka takes to be refused three times at once."""
PATIENCE_S = 60
SENT_S = 30
"""librdkafka's timeout for offsets: less than the timeout of the test."""
SWEEP_S = 5
SWEEPS = 4
ADDED = "AddOffsetsToTxn"


def coordinator(cluster: Cluster, topic: str, key: str) -> int | None:
    """Return the broker that coordinates a group or an id, or None if no broker does."""
    return cluster.leader(topic, java_hash(key) % SHARDS)


class Group:
    """A group whose coordinator has nothing to do with the transaction."""

    def __init__(self, cluster: Cluster) -> None:
        Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": TRANSACTIONAL_ID}
        ).init_transactions(PATIENCE_S)
        self._consume(cluster, "first").close()
        cluster.wait_until_served()
        elsewhere = coordinator(cluster, STATES, TRANSACTIONAL_ID)
        self.name = next(
            name
            for name in map("group-{}".format, itertools.count())
            if coordinator(cluster, OFFSETS, name) != elsewhere
        )
        self._cluster = cluster
        self._consumer = self._consume(cluster, self.name)
        self.metadata = self._consumer.consumer_group_metadata()

    def coordinator(self) -> int | None:
        return coordinator(self._cluster, OFFSETS, self.name)

    def committed(self) -> int:
        """Return the committed offset of the first partition."""
        place = confluent_kafka.TopicPartition(TOPIC, 0)
        with suppress(KafkaException):  # While the coordinator is another one than it was.
            (place,) = self._consumer.committed([place], PATIENCE_S)
        return int(place.offset)

    @staticmethod
    def _consume(cluster: Cluster, name: str) -> Consumer:
        """Return a consumer that has asked the coordinator, so that there is one."""
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": name})
        consumer.committed([confluent_kafka.TopicPartition(TOPIC, 0)], PATIENCE_S)
        return consumer


class Worker:
    """A producer of librdkafka's, in a transaction of which it only has offsets to send."""

    def __init__(self, cluster: Cluster) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "transactional.id": TRANSACTIONAL_ID,
            }
        )
        self._producer.init_transactions(PATIENCE_S)

    def knows(self, node_id: int) -> bool:
        """Request metadata; return whether it contains a broker."""
        return node_id in self._producer.list_topics(TOPIC, PATIENCE_S).brokers

    def commits(self, offset: int, group: Any) -> bool:
        """Commit an offset of the first partition; return whether that ends at all."""
        self._producer.begin_transaction()
        places = [confluent_kafka.TopicPartition(TOPIC, 0, offset)]
        if not ends(lambda: self._producer.send_offsets_to_transaction(places, group, SENT_S)):
            return False
        self._producer.commit_transaction(PATIENCE_S)
        return True


def ends(operation: Callable[[], object]) -> bool:
    """Run something on a thread; return whether it ends in good time. Raises what it raises."""
    over = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            operation()
        except KafkaException as error:
            raised.append(error)
        finally:
            over.set()

    threading.Thread(target=run, daemon=True).start()
    is_over = over.wait(PATIENCE_S)
    if raised:
        raise raised[0]
    return is_over


def test_the_group_has_no_coordinator_for_a_while(monkeypatch):
    """librdkafka asks who that is three times, and then not before a connection comes or goes."""
    with Cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        group = Group(cluster)
        worker = Worker(cluster)
        plan = membership.plan

        def plan_later(members, led, **rules):
            members, led = list(members), list(led)
            if {each.session for each in led} - {each.session for each in members}:
                time.sleep(GAP_S)
            return plan(members, led, **rules)

        monkeypatch.setattr(membership, "plan", plan_later)
        cluster.kill(group.coordinator())
        wait_until(lambda: group.coordinator() is None)
        assert worker.commits(7, group.metadata)
        wait_until(lambda: group.committed() == 7)


def test_the_coordinator_that_is_known_is_in_no_metadata_any_more():
    """librdkafka (since 2.10) waits for a connection there, and looks when any other one ends."""
    with Cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        group = Group(cluster)
        worker = Worker(cluster)
        assert worker.commits(7, group.metadata)
        gone = group.coordinator()
        cluster.stop(gone)
        wait_until(lambda: not worker.knows(gone))
        assert worker.commits(8, group.metadata)
        wait_until(lambda: group.committed() == 8)


@pytest.mark.parametrize("library", ["kafka_python", "aiokafka", "confluent"])
def test_silent_librdkafka_is_disconnected_in_a_transaction_and_commits_it(library):
    """The connections of the other libraries stay open: they look for the coordinator by errors."""
    with Cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        group = Group(cluster)
        session = session_kind(library)(
            cluster.bootstrap_servers, TRANSACTIONAL_ID, 600_000, NOBODY
        )
        known = {
            "kafka_python": kafka.ConsumerGroupMetadata(group.name, -1, "", None),
            "aiokafka": group.name,
            "confluent": group.metadata,
        }
        sockets = cluster.brokers[coordinator(cluster, STATES, TRANSACTIONAL_ID)].server.sockets
        for offset in (7, 8):
            session.begin()
            session.send([Write(TOPIC, 0, f"record-{offset}")])
            session.send_offsets({(TOPIC, 0): offset}, known[library])
            asked = [each for each in sockets.connections if each.last_api == ADDED]
            assert asked
            if library == "confluent":

                def is_over(asked=asked):
                    cluster.clock.advance(seconds=SWEEP_S)
                    return not any(each in sockets.connections for each in asked)

                wait_until(is_over)
            else:
                for _ in range(SWEEPS):
                    cluster.clock.advance(seconds=SWEEP_S)
                assert all(each in sockets.connections for each in asked)
            session.commit()
        session.close()
        wait_until(lambda: group.committed() == 8)
