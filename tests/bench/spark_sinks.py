"""Rows per second into a topic, through the stock sink and through the two of spark_connector."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.bench.spark_job import Job, Taken, Target
from tests.bench.spark_latency import POLL_S, check
from tests.counterparts.usage import cpu_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

BATCH_ROWS = 250_000
VALUE_BYTES = 100
WARM_UP_BATCHES = 2
TIMEOUT_S = 480


def generated(spark: SparkSession, partitions: int) -> DataFrame:
    """Return micro-batches of rows with a key and a value, made while they are written."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", BATCH_ROWS)
    rows = source.option("numPartitions", partitions).load()
    number = F.col("value").cast("string")
    value = F.lpad(number, VALUE_BYTES, "barnabas-").cast("binary")
    return rows.select(number.cast("binary").alias("key"), value.alias("value"))


def stock(rows: DataFrame, options: dict[str, str]) -> DataStreamWriter:
    """Write as Spark's own sink does, at least once."""
    return rows.writeStream.format("kafka").options(**options)


def single(rows: DataFrame, options: dict[str, str]) -> DataStreamWriter:
    """Write each micro-batch in one transaction of the driver."""
    from barnabas.spark_connector.foreach_batch import single_transaction

    own = {**options, "sinkId": options["topic"]}
    return rows.writeStream.foreachBatch(single_transaction(own)).options(**options)


def two_phase(rows: DataFrame, options: dict[str, str]) -> DataStreamWriter:
    """Write from the tasks, each in a transaction of its own, which the driver commits."""
    from barnabas.spark_connector.data_source import BarnabasDataSource

    rows.sparkSession.dataSource.register(BarnabasDataSource)
    own = {**options, "sinkId": options["topic"]}
    return rows.writeStream.format("barnabas").options(**own)


SINKS: dict[str, Callable[[DataFrame, dict[str, str]], DataStreamWriter]] = {
    "stock": stock,
    "single": single,
    "two-phase": two_phase,
}


def measure_sink(spark: SparkSession, job: Job, target: Target, topic: str, run: str) -> Taken:
    """Run whole micro-batches and return how long each took, from its planning to its commit."""
    options = {
        "kafka.bootstrap.servers": target.servers,
        "topic": topic,
        "checkpointLocation": str(Path(job.directory) / run),
    }
    query = SINKS[job.variant](generated(spark, job.partitions), options).start()
    deadline = time.monotonic() + TIMEOUT_S
    try:
        _wait(query, WARM_UP_BATCHES, deadline)
        before = cpu_time(target.pid).total_s
        done = len(query.recentProgress)
        batches = _wait(query, done + job.samples, deadline)[done : done + job.samples]
        cpu_s = cpu_time(target.pid).total_s - before
        _check_arrival(target.servers, topic, job.partitions, (done + job.samples) * BATCH_ROWS)
    finally:
        query.stop()
    return Taken(batches, BATCH_ROWS, cpu_s)


def _wait(query: StreamingQuery, count: int, deadline: float) -> list[float]:
    """Wait for so many micro-batches; return the seconds of each one so far."""
    while True:
        batches = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress]
        if len(batches) >= count:
            return batches
        check(query, deadline)
        time.sleep(10 * POLL_S)


def _check_arrival(servers: str, topic: str, partitions: int, rows: int) -> None:
    """Raise unless so many rows can be read: what is fast because it writes little is no sink."""
    settings = {"group.id": "bench-sinks", "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, **settings})
    places = [confluent_kafka.TopicPartition(topic, number) for number in range(partitions)]
    ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
    consumer.close()
    if sum(ends) < rows:
        raise RuntimeError(f"{sum(ends)} rows came through the sink, not {rows}")
