"""Growth of the heap of the driver's JVM while a sink writes batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.spark_connector import Sink
from barnabas.spark_connector.pipelines.sink import SINGLE_TRANSACTION, TWO_PHASE
from tests.interop.administration import create
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

ROW_BYTES = 280
"""Size of a row as a record: key, value and framing."""
GROWTH_MAX_BYTES = 20_000_000
"""Growth that Spark itself may cause; a batch of the full load has 14 MB."""
DATA_SOURCE = "data-source"
KINDS = (SINGLE_TRANSACTION, TWO_PHASE, DATA_SOURCE)
PARTITIONS = 4
PATIENCE_S = 1800


class Load(NamedTuple):
    """Batches to write until the first and until the second measurement."""

    batch_rows: int
    batches_before: int
    batches: int


def heap_growth_bytes(
    spark: SparkSession, servers: str, kind: str, load: Load, directory: Path
) -> int:
    """Write batches with a kind of sink; return how much the live heap grew after the first few."""
    topic = f"heap-{kind}"
    create(servers, topic, partitions=PARTITIONS)
    rows = _generated(spark, load.batch_rows)
    writer = rows.writeStream.option("checkpointLocation", str(directory / "checkpoint"))
    _run_until(_to(writer, servers, kind, topic, directory).start(), load.batches_before)
    before = live_heap_bytes(spark)
    _run_until(_to(writer, servers, kind, topic, directory).start(), load.batches)
    return live_heap_bytes(spark) - before


def live_heap_bytes(spark: SparkSession) -> int:
    """Return the size of the live objects in the heap of the driver's JVM."""
    java = spark.sparkContext._jvm.java.lang
    runtime = java.Runtime.getRuntime()
    # Spark's context cleaner releases more after the first collection.
    for _ in range(3):
        java.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _generated(spark: SparkSession, batch_rows: int) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch_rows)
    rows = source.option("numPartitions", PARTITIONS).load()
    return rows.selectExpr(
        "cast(cast(value as string) as binary) key",
        f"cast(lpad(cast(value as string), {ROW_BYTES - 24}, 'barnabas-') as binary) value",
    )


def _to(
    writer: DataStreamWriter, servers: str, kind: str, topic: str, directory: Path
) -> DataStreamWriter:
    sink = Sink(sink_id=topic, topic=topic, servers=servers)
    options = sink.spark_options(str(directory / "checkpoint"))
    if kind == DATA_SOURCE:
        return writer.format("barnabas").options(**options)
    from barnabas.spark_connector.sinks import foreach_batch

    return writer.foreachBatch(getattr(foreach_batch, kind)(options))


def _run_until(query: StreamingQuery, batches: int) -> None:
    """Run a query until the batch with this number has ended, then stop the query."""

    def has_ended_them() -> bool:
        progress = query.lastProgress
        return not query.isActive or (progress is not None and progress["batchId"] >= batches)

    try:
        wait_until(has_ended_them, lambda: query.lastProgress, seconds=PATIENCE_S, pause_s=0.1)
        assert query.exception() is None, query.exception()
    finally:
        query.stop()
