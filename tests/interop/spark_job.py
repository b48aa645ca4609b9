"""A structured-streaming job over the stock Kafka source and sink, and the proof of its results.

Used by the tests with some ten thousand records and by the demonstration with a million.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming import StreamingQuery

from tests.counterparts.broker_process import BrokerProcess
from tests.interop.administration import create
from tests.interop.clients import kafka

KEYS = 50
PARTITIONS = 4
KILLS = 3
BETWEEN_KILLS_S = 0.5
PROGRESS_TIMEOUT_S = 240
FLUSH_S = 120


class Outcome(NamedTuple):
    """The output of the job, beside the expected output."""

    records: int
    """Input records sent."""
    counted: int
    """Input records that a batch read finds."""
    wrong_keys: list[str]
    """Keys whose last result is not the aggregate of all their records."""
    results: int
    """Records in the output topic."""
    duplicates: int
    """The number of results that the at-least-once sink wrote again."""


class Job:
    """Reads `input`, counts and sums by key, writes every update to `output`."""

    def __init__(
        self, spark: SparkSession, broker: BrokerProcess, directory: Path, records: int
    ) -> None:
        self._spark = spark
        self._broker = broker
        self._checkpoint = str(directory / "checkpoint")
        self._records = records
        self._servers = broker.bootstrap_servers

    def run(self, say: Callable[[str], None] = print) -> Outcome:
        """Feed, start, stop, restart from the checkpoint, kill the broker, finish, judge."""
        for topic in ("input", "output"):
            create(self._servers, topic, partitions=PARTITIONS)
        half = self._records // 2
        rest = range(half + self._records // 8, self._records)
        produce_with_confluent(self._servers, "input", range(half))
        say(f"{half:,} records produced by confluent-kafka; batch read: {self.count('input'):,}")
        query = self._start()
        self._wait_for_rows(query, self._records // 8)
        query.stop()
        # It may have read everything before it stopped: there has to be more for the next one.
        produce_with_confluent(self._servers, "input", range(half, rest.start))
        say("query stopped")
        query = self._start()
        self._wait_for_rows(query, 1)
        say("query restarted from its checkpoint")
        with ThreadPoolExecutor(1) as background:
            producing = background.submit(produce_with_kafka_python, self._servers, "input", rest)
            for _ in range(KILLS):
                time.sleep(BETWEEN_KILLS_S)
                self._broker.kill()
                self._broker.restart()
                say("broker killed with -9 and restarted")
            producing.result()
        say(f"{len(rest):,} records produced by kafka-python meanwhile")
        query.processAllAvailable()
        query.stop()
        return self._judge()

    def count(self, topic: str) -> int:
        """Return the number of records of a topic, by a batch read."""
        return self._read(topic).count()

    def _read(self, topic: str) -> DataFrame:
        source = self._spark.read.format("kafka").option("subscribe", topic)
        return source.option("kafka.bootstrap.servers", self._servers).load()

    def _start(self) -> StreamingQuery:
        source = self._spark.readStream.format("kafka").option("subscribe", "input")
        source = source.option("kafka.bootstrap.servers", self._servers)
        source = source.option("startingOffsets", "earliest")
        source = source.option("maxOffsetsPerTrigger", self._records // 10)
        results = (
            source.load()
            .select(F.col("key").cast("string"), F.col("value").cast("string").cast("long"))
            .groupBy("key")
            .agg(F.count("*").alias("count"), F.sum("value").alias("sum"))
            .select("key", F.to_json(F.struct("count", "sum")).alias("value"))
        )
        sink = results.writeStream.format("kafka").option("topic", "output").outputMode("update")
        sink = sink.option("kafka.bootstrap.servers", self._servers)
        return sink.option("checkpointLocation", self._checkpoint).start()

    def _wait_for_rows(self, query: StreamingQuery, rows: int) -> None:
        deadline = time.monotonic() + PROGRESS_TIMEOUT_S
        while sum(progress["numInputRows"] for progress in query.recentProgress) < rows:
            failure = query.exception()
            if failure is not None:
                raise failure
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {rows} rows: {query.status}")
            time.sleep(0.05)

    def _judge(self) -> Outcome:
        output = self._read("output").select(
            F.col("key").cast("string"), F.col("value").cast("string"), "partition", "offset"
        )
        rows = output.orderBy("partition", "offset").collect()
        last = {row["key"]: json.loads(row["value"]) for row in rows}
        expected = expected_results(self._records)
        written = Counter((row["key"], row["value"]) for row in rows)
        return Outcome(
            self._records,
            self.count("input"),
            [key for key in expected if last.get(key) != expected[key]],
            len(rows),
            sum(count - 1 for count in written.values()),
        )


def expected_results(records: int) -> dict[str, dict[str, int]]:
    """Return count and sum of the numbers 0 .. records - 1 by key."""
    results = {f"key-{i}": {"count": 0, "sum": 0} for i in range(min(KEYS, records))}
    for number in range(records):
        result = results[f"key-{number % KEYS}"]
        result["count"] += 1
        result["sum"] += number
    return results


def produce_with_confluent(servers: str, topic: str, numbers: range) -> None:
    """Produce numbers, by key, with librdkafka's idempotent producer."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "compression.type": "lz4"}
    )
    for number in numbers:
        while True:
            try:
                producer.produce(topic, b"%d" % number, b"key-%d" % (number % KEYS))
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(FLUSH_S):
        raise TimeoutError("confluent-kafka could not deliver everything")


def produce_with_kafka_python(servers: str, topic: str, numbers: range) -> None:
    """Produce numbers, by key, with kafka-python's idempotent producer."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers, compression_type="gzip", linger_ms=20, batch_size=100_000
    )
    try:
        last = [
            producer.send(topic, b"%d" % number, b"key-%d" % (number % KEYS)) for number in numbers
        ][-KEYS:]
        producer.flush(timeout=FLUSH_S)
        for future in last:
            future.get(timeout=FLUSH_S)
    finally:
        producer.close(timeout=10)
