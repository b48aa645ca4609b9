"""A broker of a cluster that stops cleanly, or joins: clients continue, and hardly notice."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from barnabas.testing import Broker
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore")

TOPIC = "orders"
PARTITIONS = 6
PAUSE_S = 0.002
PATIENCE_S = 60


class Writing:
    """Client that writes values in order, in a loop, until ``stop``."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self.brokers = brokers
        self.servers = ",".join(each.bootstrap_servers for each in brokers)
        self.count = 0
        self.errors: list[object] = []
        self.acknowledged_s: defaultdict[int, list[float]] = defaultdict(list)
        """When, by partition."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.begin()
            while not self._is_over.wait(PAUSE_S):
                self.write(b"%d" % self.count, self.count % PARTITIONS)
                self.count += 1
            self.finish()
        except Exception as error:  # noqa: BLE001  Told by the test.
            self.errors.append(error)

    def begin(self) -> None:
        raise NotImplementedError

    def write(self, value: bytes, partition: int) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def note(self, partition: int, error: object) -> None:
        if error is not None:
            self.errors.append(error)
        self.acknowledged_s[partition].append(time.monotonic())

    def longest_gap_ms(self, since_s: float) -> float:
        """Return the longest time without an acknowledgement, of any one partition."""
        gaps = [
            after - before
            for times in self.acknowledged_s.values()
            for before, after in pairwise(times)
            if after > since_s
        ]
        return 1000 * max(gaps)

    def has_written(self, more: int) -> None:
        """Wait until so many more are acknowledged."""
        before = self._acknowledged
        wait_until(lambda: self._acknowledged >= before + more or self.errors)

    @property
    def _acknowledged(self) -> int:
        return sum(map(len, [*self.acknowledged_s.values()]))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error) -> None:
        self._is_over.set()
        self._thread.join()


class ConfluentKafka(Writing):
    def begin(self) -> None:
        settings = {"bootstrap.servers": self.servers, "enable.idempotence": True, "linger.ms": 0}
        self._producer = Producer({**settings, "retry.backoff.ms": 10})

    def write(self, value: bytes, partition: int) -> None:
        def delivered(error, _message) -> None:
            self.note(partition, error)

        self._producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0


class KafkaPython(Writing):
    def begin(self) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=self.servers, enable_idempotence=True, retry_backoff_ms=10
        )

    def write(self, value: bytes, partition: int) -> None:
        sent = self._producer.send(TOPIC, value, partition=partition)
        sent.add_callback(lambda _metadata: self.note(partition, None))
        sent.add_errback(lambda error: self.note(partition, error))

    def finish(self) -> None:
        self._producer.flush(PATIENCE_S)
        self._producer.close()


class Transactional(Writing):
    """All partitions in each transaction."""

    def begin(self) -> None:
        settings = {"bootstrap.servers": self.servers, "transactional.id": "id", "linger.ms": 0}
        self._producer = Producer({**settings, "retry.backoff.ms": 10})
        self._producer.init_transactions(PATIENCE_S)

    def write(self, value: bytes, partition: int) -> None:
        if partition == 0:
            self._producer.begin_transaction()
        self._producer.produce(TOPIC, value, partition=partition)
        if partition == PARTITIONS - 1:
            self._producer.commit_transaction(PATIENCE_S)
            for each in range(PARTITIONS):
                self.note(each, None)

    def finish(self) -> None:
        if self.count % PARTITIONS:
            self._producer.commit_transaction(PATIENCE_S)


CLIENTS = (ConfluentKafka, KafkaPython, Transactional)


class Reading:
    """A member of a group that commits what it has read."""

    def __init__(self, servers: str) -> None:
        self.values: list[int] = []
        self.errors: list[object] = []
        self._servers = servers
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([TOPIC])
        try:
            while not self._is_over.is_set():
                message = consumer.poll(0.05)
                if message is None:
                    continue
                if message.error():
                    self.errors.append(message.error())
                    continue
                self.values.append(int(message.value()))
                if len(self.values) % 50 == 0:
                    consumer.commit(asynchronous=False)
        except Exception as error:  # noqa: BLE001  Told by the test.
            self.errors.append(error)
        finally:
            consumer.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error) -> None:
        self._is_over.set()
        self._thread.join()


@pytest.fixture
def cluster():
    # The leases outlast all pauses of a busy machine.
    with WatchedCluster(config={"barnabas.lease.ms": "60000"}) as running:
        running.create_topic(TOPIC, PARTITIONS)
        running.settle(TOPIC)
        yield running


@pytest.mark.parametrize("client", CLIENTS)
def test_a_broker_that_ends_gives_up_what_it_leads_first(cluster, client, capsys, caplog):
    caplog.set_level(logging.INFO)
    with client(cluster.brokers) as writing, Reading(writing.servers) as reading:
        writing.has_written(300)
        wait_until(lambda: reading.values or reading.errors)
        begun_s = time.monotonic()
        cluster.stop(0)
        took_s = time.monotonic() - begun_s
        cluster.settle(TOPIC)
        writing.has_written(300)
    (said,) = [each for each in caplog.messages if each.startswith("partitions given up")]
    assert said.endswith("led_here=0")
    gap_ms = writing.longest_gap_ms(begun_s)
    with capsys.disabled():
        print(
            f"\n{client.__name__}: {said}, ended in {took_s * 1000:.0f} ms, "
            f"at most {gap_ms:.0f} ms without an answer"
        )
    assert writing.errors == []
    assert [each for each in reading.errors if not each.retriable()] == []
    assert sorted(cluster.values(TOPIC)) == list(range(writing.count)), "each once"
    led_by = {row.leader_session for row in cluster.index.rows.values()}
    assert led_by == {cluster.session(each) for each in (1, 2)}


def test_all_brokers_may_end_at_once(cluster):
    """A stopping broker does not wait for another stopping one."""
    with contextlib.ExitStack() as stack:
        for number in range(3):
            thread = threading.Thread(target=cluster.stop, args=[number])
            stack.callback(thread.join)
            thread.start()
    assert cluster.running == []


def test_a_broker_that_joins_comes_to_lead_its_share(cluster):
    with ConfluentKafka(cluster.brokers) as writing:
        writing.has_written(100)
        joined = cluster.add().result
        wait_until(lambda: cluster.leads(joined, TOPIC))
        cluster.settle(TOPIC)
        writing.has_written(300)
        cluster.stop(joined)
        writing.has_written(300)
    assert writing.errors == []
    assert sorted(cluster.values(TOPIC)) == list(range(writing.count))
