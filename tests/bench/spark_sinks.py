"""Sinks as a pipeline has them, stock and exactly once: many rows in each batch, or one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from barnabas.spark_connector import Sink, read
from barnabas.spark_connector.pipelines.sink import start
from tests.bench.spark_job import Job, Taken, Target
from tests.bench.spark_latency import POLL_S, Triggers, check, stock_source
from tests.bench.spark_rows import FORMAT
from tests.counterparts.usage import TreeUsage, cpu_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

BATCH_ROWS = 250_000
VALUE_BYTES = 100
READ_ROWS = 1_000_000
"""Rows of the topic that is read, with a value of 180 bytes each."""
WARM_UP_BATCHES = 12
"""The JVM is at its speed after three to four million rows; the first cost four times as much."""
TIMEOUT_S = 480


def generated(spark: SparkSession, partitions: int) -> DataFrame:
    """Return micro-batches of rows with a key and a value, made while they are written."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", BATCH_ROWS)
    rows = source.option("numPartitions", partitions).load()
    number = F.col("value").cast("string")
    value = F.lpad(number, VALUE_BYTES, "barnabas-").cast("binary")
    return rows.select(number.cast("binary").alias("key"), value.alias("value"))


def started(rows: DataFrame, job: Job, servers: str, topic: str, run: str) -> StreamingQuery:
    """Start the sink that the job is about, as a pipeline of `barnabas.spark run` does it."""
    checkpoint = str(Path(job.directory) / run)
    if job.variant == FORMAT:
        sink = Sink(sink_id=topic, topic=topic, servers=servers)
        writer = rows.writeStream.format("barnabas").options(**sink.spark_options(checkpoint))
        return writer.start()
    sink = Sink(sink_id=topic, topic=topic, servers=servers, kind=job.variant)
    return start(rows, sink, job.variant, checkpoint, once=False)


def measure_sink(spark: SparkSession, job: Job, target: Target, topic: str, run: str) -> Taken:
    """Run whole micro-batches and return how long each took, from its planning to its commit."""
    query = started(generated(spark, job.partitions), job, target.servers, topic, run)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        usage = TreeUsage(os.getpid())
        _wait(query, WARM_UP_BATCHES, deadline, usage)
        before = cpu_time(target.pid).total_s
        spark_before_s = usage.total_s()
        done = len(query.recentProgress)
        batches = _wait(query, done + job.samples, deadline, usage)[done : done + job.samples]
        cpu_s = cpu_time(target.pid).total_s - before
        spark_cpu_s = usage.total_s() - spark_before_s
        _check_arrival(target.servers, topic, job.partitions, (done + job.samples) * BATCH_ROWS)
    finally:
        query.stop()
    return Taken(batches, BATCH_ROWS, cpu_s, spark_cpu_s)


def measure_read(spark: SparkSession, job: Job, target: Target, topic: str) -> Taken:
    """Read a whole topic with the defaults of `Source`, again and again, and drop the rows."""
    _fill(target.servers, topic, job.partitions)
    rows = read(spark, topic, servers=target.servers).select("key", "value", "timestamp")
    usage = TreeUsage(os.getpid())
    before, spark_before_s = cpu_time(target.pid).total_s, usage.total_s()
    times_s = []
    for _ in range(job.samples):
        began_s = time.monotonic()
        rows.write.format("noop").mode("overwrite").save()
        times_s.append(time.monotonic() - began_s)
    cpu_s = cpu_time(target.pid).total_s - before
    spark_cpu_s = usage.total_s() - spark_before_s
    return Taken(times_s, READ_ROWS, cpu_s, spark_cpu_s)


def _fill(servers: str, topic: str, partitions: int) -> None:
    settings = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 20}
    producer = confluent_kafka.Producer(settings)
    value = b"barnabas-" * 20
    for number in range(READ_ROWS):
        producer.produce(topic, value, b"%d" % number, partition=number % partitions)
        if number % 10_000 == 0:
            producer.flush(TIMEOUT_S)
    if producer.flush(TIMEOUT_S):
        raise RuntimeError(f"the topic {topic} could not be filled")


def measure_one_row(
    spark: SparkSession, job: Job, target: Target, topics: tuple[str, str], run: str
) -> Taken:
    """Copy one record after the other, each in a micro-batch of its own; time those."""
    triggers = Triggers(target.servers, topics, job.partitions)
    rows = stock_source(spark, target.servers, topics[0]).select("key", "value")
    return triggers.take(
        started(rows, job, target.servers, topics[1], run), target.pid, job.samples
    )


def _wait(query: StreamingQuery, count: int, deadline: float, usage: TreeUsage) -> list[float]:
    """Wait for ``count`` micro-batches; return the seconds of each one so far."""
    while True:
        usage.total_s()
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
