"""A stand-in for Spark around the cores of its sinks: batches in order, run again after a crash."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter

import confluent_kafka
import pytest

from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.records import Record, encode_batch
from barnabas.spark_connector.cluster.cluster import Cluster, connected
from barnabas.spark_connector.ledger import ownership, roll_forward
from barnabas.spark_connector.ledger.sweep import Decided, _open_transactions
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks import single, two_phase
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.two_phase import Decider, Participant
from barnabas.storage.runtime.clock import now_ns
from tests.interop.transactional import COMMITTED, TIMEOUT_S, read_with_confluent
from tests.waiting import wait_until

PARTITIONS = 2
ROWS = 6
SINGLE = ("P1-fenced", "P1-middle", "P1-before-end", "P1-after-end")
TWO_PHASE = (
    "W1-middle",
    "W1",
    "C1",
    "C2-middle",
    "C3",
    "C4-before",
    "C4-after",
    "C5-middle",
    "C5-after",
)
PLACES = {"single": SINGLE, "two-phase": TWO_PHASE, "data-source": TWO_PHASE}


class Crash(BaseException):
    """The end of the process: no cleanup after an Exception runs."""


def crash_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Raise Crash when a thread first reaches ``place``."""
    armed = [place]

    def reach(here: str) -> None:
        if armed == [here]:
            armed.clear()
            raise Crash(here)

    for module in (ownership, roll_forward, single, two_phase):
        monkeypatch.setattr(module, "reach", reach)


def rows(topic: str, batch_id: int, partition: int) -> EncodedBatch:
    now_ms = now_ns() // 1_000_000  # Retention deletes what says that it is old.
    values = [b"%d:%d:%d" % (batch_id, partition, n) for n in range(ROWS)]
    records = [Record(n, now_ms, None, value) for n, value in enumerate(values)]
    return EncodedBatch(topic, partition, ROWS, bytearray(encode_batch(records)))


def expected(batches: int) -> Counter[bytes]:
    return Counter(
        b"%d:%d:%d" % (batch_id, partition, n)
        for batch_id in range(batches)
        for partition in range(PARTITIONS)
        for n in range(ROWS)
    )


def options(broker, topic: str, **more: str) -> SinkOptions:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "sinkId": topic[:100],
        "topic": topic,
        "transactionTimeoutMs": "60000",
        "kafka.delivery.timeout.ms": "90000",
    }
    return SinkOptions.parse(given | more)


class Query:
    """One query with its checkpoint: what it has run, it runs again until that is finished."""

    def __init__(self, kind: str, chosen: SinkOptions, query_id: str = "query") -> None:
        self.kind = kind
        self.options = chosen
        self.query_id = query_id
        self.finished = -1
        """The last batch in `commits/` of the checkpoint."""
        self._driver: SingleTransactionSink | Decider | None = None
        self._clusters: list[Cluster] = []

    def run(self, last: int) -> None:
        """Run batches up to this one, starting the driver if there is none."""
        try:
            driver = self._driver or self._start()
            while self.finished < last:
                self._run_batch(driver, self.finished + 1)
                self.finished += 1
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process: its connections break, and that is all."""
        self._driver = None
        for cluster in self._clusters:
            cluster.close()
        self._clusters.clear()

    def connected(self) -> Cluster:
        cluster = connected(self.options)
        self._clusters.append(cluster)
        return cluster

    def _start(self) -> SingleTransactionSink | Decider:
        cluster = self.connected()
        if self.kind == "single":
            self._driver = SingleTransactionSink(self.options, self.query_id, cluster)
        else:
            known = self.query_id if self.kind == "two-phase" else None
            self._driver = Decider(
                self.options, known, cluster, is_sole_recipient=known is not None
            )
        if self.kind != "data-source":
            assert self._driver.recover() in {self.finished, self.finished + 1}
        return self._driver

    def _run_batch(self, driver: SingleTransactionSink | Decider, batch_id: int) -> None:
        fingerprint = f"ends of {batch_id}"
        offsets = {("source", 0): batch_id + 1, ("elsewhere", 0): 5}
        if isinstance(driver, SingleTransactionSink):
            batches = (rows(self.options.topic, batch_id, each) for each in range(PARTITIONS))
            driver.write_batch(batch_id, batches, fingerprint, offsets)
            return
        if self.kind == "two-phase" and driver.is_decided(batch_id, fingerprint):
            return
        driver.commit(batch_id, self.run_tasks(batch_id), fingerprint, offsets)

    def run_tasks(self, batch_id: int) -> list[two_phase.Prepared]:
        """Every task writes; one more has no rows."""
        tasks = [self.participant(batch_id, each) for each in range(PARTITIONS + 1)]
        for partition, task in enumerate(tasks[:PARTITIONS]):
            task.write([rows(self.options.topic, batch_id, partition)])
        return [task.prepared() for task in tasks]

    def participant(self, batch_id: int, partition: int) -> Participant:
        return Participant(
            self.options,
            batch_id=batch_id,
            query_id=self.query_id,
            partition=partition,
            task_attempt_id=partition,
            nonce=secrets.token_hex(4),
            cluster=self.connected(),
        )


def restart_after_crash(monkeypatch: pytest.MonkeyPatch, query: Query, place: str, last: int):
    """Crash at a place; what runs afterwards is a new process."""
    with monkeypatch.context() as patch:
        crash_at(patch, place)
        with pytest.raises(Crash):
            query.run(last)


def read(broker, topic: str, batches: int) -> Counter[bytes]:
    """Return the values that a `read_committed` consumer sees after the markers were written."""
    wanted = expected(batches)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        values = read_with_confluent(broker.bootstrap_servers, topic, PARTITIONS, COMMITTED)
        seen = Counter(value for each in values.values() for value in each)
        if seen.total() >= wanted.total() or time.monotonic() > deadline:
            return seen
        time.sleep(0.02)


def open_transactions(chosen: SinkOptions) -> list[str]:
    """Transactions of the sink's tasks that have not ended."""
    with connected(chosen) as cluster:
        return _open_transactions(cluster, chosen.sink_id, Decided("", -1, frozenset()))


def ends(chosen: SinkOptions, topic: str, partition: int) -> tuple[int, int]:
    """The last stable offset and the high watermark."""
    with connected(chosen) as cluster:
        found = []
        for isolation in (1, 0):
            wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp=-1)])
            answer = cluster.ask(
                "asking for an end",
                cluster.leader_of(topic, partition),
                LIST_OFFSETS,
                ListOffsetsRequest(isolation_level=isolation, topics=[wanted]),
                error_of=lambda response: response.topics[0].partitions[0].error_code,
            )
            found.append(answer.topics[0].partitions[0].offset)
    return found[0], found[1]


def check_all_is_settled(broker, query: Query, batches: int) -> None:
    """Check that each value exists once, nothing is open or blocked, and offsets fit."""
    chosen = query.options
    assert read(broker, chosen.topic, batches) == expected(batches)
    assert open_transactions(chosen) == []
    for topic, count in ((chosen.topic, PARTITIONS), (chosen.ledger_topic, 1)):
        for partition in range(count):
            # The markers of one transaction come one after the other.
            wait_until(lambda t=topic, p=partition: len({*ends(chosen, t, p)}) == 1, seconds=30)
    place = confluent_kafka.TopicPartition("source", 0)
    with contextlib.closing(
        confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": chosen.source_group_id,
                "isolation.level": "read_committed",
            }
        )
    ) as consumer:
        assert [each.offset for each in consumer.committed([place], 60)] == [batches]
