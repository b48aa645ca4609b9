"""Latency of one record in a query with the stock source and sink: triggers, real-time mode."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.bench.spark_job import Taken
from tests.counterparts.usage import cpu_time

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

TIMEOUT_S = 60
POLL_S = 0.01
IDLE_S = 0.1
"""Pause between two records, so that the query waits for its next record."""
GAP_S = 0.01
"""Pause between two records in real-time mode."""
REAL_TIME_BATCH = "5 seconds"
KEYS = 10
HEADER = "sent-at"
WARM_UP_SHARE = 3
"""Divisor of the samples: the share at the start of a round that is not counted."""


class Triggers:
    """A query that is idle until one record comes, and writes one: how long its trigger takes."""

    def __init__(self, servers: str, topics: tuple[str, str], partitions: int) -> None:
        self._servers = servers
        self._topics = topics
        self._partitions = partitions
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._sent = 0
        self._last_batch = -1

    def start(self, spark: SparkSession, checkpoint: Path, *, stateful: bool) -> StreamingQuery:
        """Start a query with the stock sink: a count by key, or every value in capitals."""
        source = stock_source(spark, self._servers, self._topics[0])
        if stateful:
            counts = source.groupBy("key").count()
            results = counts.select("key", F.col("count").cast("string").alias("value"))
        else:
            results = source.select("key", F.upper(F.col("value").cast("string")).alias("value"))
        return stock_sink(results, self._servers, self._topics[1], checkpoint).start()

    def take(self, query: StreamingQuery, pid: int, samples: int) -> Taken:
        """Warm up a query, time some triggers, and stop it."""
        try:
            for _ in range(max(self._partitions, samples // WARM_UP_SHARE)):
                self.one(query)
            before = cpu_time(pid).total_s
            times = [self.one(query) for _ in range(samples)]
            return Taken(times, 1, cpu_time(pid).total_s - before)
        finally:
            query.stop()

    def one(self, query: StreamingQuery) -> float:
        """Send a record and return the seconds of the trigger that took it."""
        time.sleep(IDLE_S)
        key = b"key-%d" % (self._sent % KEYS)
        send(self._producer, self._topics[0], key, partition=self._sent % self._partitions)
        self._sent += 1
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            progress: Any = query.lastProgress
            if progress and progress["batchId"] > self._last_batch and progress["numInputRows"]:
                self._last_batch = progress["batchId"]
                return progress["durationMs"]["triggerExecution"] / 1000
            check(query, deadline)
            time.sleep(POLL_S)


class RealTime:
    """A stateless query in real-time mode: from the sending of a record to the reader's hands."""

    def __init__(self, spark: SparkSession, servers: str, topics: tuple[str, str]) -> None:
        self._spark = spark
        self._servers = servers
        self._topics = topics
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._stopping = threading.Event()
        self._arrived: list[float] = []

    def start(self, checkpoint: Path) -> StreamingQuery:
        """Start the query and the reader, and return when records come through."""
        source = stock_source(self._spark, self._servers, self._topics[0], includeHeaders="true")
        value = F.upper(F.col("value").cast("string")).alias("value")
        results = source.select("key", value, "headers")
        sink = stock_sink(results, self._servers, self._topics[1], checkpoint)
        query = sink.option("includeHeaders", "true").trigger(realTime=REAL_TIME_BATCH).start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return query

    def take(self, query: StreamingQuery, count: int) -> list[float]:
        """Send records, one after the other has had its time; return how long each one took."""
        expected = len(self._arrived) + count
        for _ in range(count):
            send(self._producer, self._topics[0], b"key", {HEADER: b"%d" % time.time_ns()})
            time.sleep(GAP_S)
        deadline = time.monotonic() + TIMEOUT_S
        while len(self._arrived) < expected:
            check(query, deadline)
            time.sleep(POLL_S)
        return self._arrived[expected - count : expected]

    def stop(self) -> None:
        """Stop the reader."""
        self._stopping.set()
        self._reader.join(TIMEOUT_S)

    def _read(self) -> None:
        # Assigned by hand, nothing to commit: a commit would wait for a group coordinator.
        settings = {"group.id": "bench-real-time", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._servers, **settings})
        consumer.assign([confluent_kafka.TopicPartition(self._topics[1], 0, 0)])
        while not self._stopping.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                sent_ns = int(dict(message.headers())[HEADER])
                self._arrived.append((time.time_ns() - sent_ns) / 1e9)
        consumer.close()


def stock_source(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    """Return the stream of all records of a topic."""
    source = spark.readStream.format("kafka").option("subscribe", topic)
    source = source.option("kafka.bootstrap.servers", servers)
    return source.option("startingOffsets", "earliest").options(**options).load()


def stock_sink(results: DataFrame, servers: str, topic: str, checkpoint: Path) -> DataStreamWriter:
    """Return the stock sink to a topic, not started."""
    sink = results.writeStream.format("kafka").option("topic", topic).outputMode("update")
    sink = sink.option("kafka.bootstrap.servers", servers)
    return sink.option("checkpointLocation", str(checkpoint))


def send(
    producer: confluent_kafka.Producer,
    topic: str,
    key: bytes,
    headers: dict[str, bytes] | None = None,
    partition: int = 0,
) -> None:
    """Send one record and wait until the broker has it."""
    producer.produce(topic, b"value", key, partition=partition, headers=headers or {})
    if producer.flush(TIMEOUT_S):
        raise TimeoutError(f"a record for {topic} could not be sent")


def check(query: StreamingQuery, deadline: float) -> None:
    """Raise what has happened to a query, or that it has taken too long."""
    failure = query.exception()
    if failure is not None:
        raise failure
    if time.monotonic() > deadline:
        raise TimeoutError(f"the query does not get on: {query.status}")
