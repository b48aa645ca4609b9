"""The pipeline of the crash tests: numbers in, numbers and their squares out, by any sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from barnabas.spark_connector.failpoints import reach
from examples.spark_ledger import movements
from tests.spark.stateful import OPERATORS, state_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

    from barnabas.spark_connector.sinks.table import Batch, Table

STOCK, SINGLE, TWO_PHASE, DATA_SOURCE = "stock", "P1", "P2", "P2-source"
EXACT_SINKS = (SINGLE, TWO_PHASE, DATA_SOURCE)
PARQUET, DELTA = "parquet", "delta"
TABLES = {f"{sink}-{table}": (sink, table) for table in (PARQUET, DELTA) for sink in ("P1", "P2")}
"""Sinks that write a table, too, and what they are made of."""
ICEBERG = "iceberg"
ICEBERG_TABLES = {f"{sink}-{ICEBERG}": (sink, ICEBERG) for sink in ("P1", "P2")}
"""The same with Iceberg, which runs in PySpark 4.1 and not in 4.2: see full_iceberg.py."""
ALL_TABLES = TABLES | ICEBERG_TABLES
TASKS = 3
"""Tasks that write a batch; not as many as partitions on either side."""


@dataclass(frozen=True)
class Job:
    """All that makes a query; travels to the driver as JSON."""

    servers: str
    sink: str
    name: str
    """Topics are `<name>-in` and `<name>-out`, the sink's id is the name."""
    checkpoint: str
    per_trigger: int = 1000
    payments: str = ""
    """The topic with payments that is read instead, to make movements of them."""
    starting_offsets: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the sink."""
    least: int = 0
    """Numbers below are left out."""
    tasks: int = TASKS
    """Tasks of a batch."""
    operator: str = ""
    """The stateful operator of the query, one of `OPERATORS`; empty for a query without state."""
    state_format: int = 1
    """Spark's `checkpointFormatVersion` of state stores."""
    is_endless: bool = False
    """Whether it waits for more input instead of ending."""

    @property
    def input(self) -> str:
        return self.payments or f"{self.name}-in"

    @property
    def output(self) -> str:
        return f"{self.name}-out"

    @property
    def group(self) -> str:
        """The group in which Barnabas sinks commit the source's offsets."""
        return f"spark.{self.name}"

    def results_of(self, records: int) -> int:
        """Return the number of the first records that have a result after all of them were read."""
        if not self.operator:
            return records
        return records - OPERATORS[self.operator].missing(self.per_trigger)

    @property
    def table(self) -> str:
        """The path of the table."""
        return f"{self.checkpoint}-table"

    @property
    def iceberg_name(self) -> str:
        """The name of the table in a Hadoop catalog at `/`: its namespace is its directory."""
        return ".".join(["lake", *(f"`{part}`" for part in Path(self.table).parts[1:])])

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, object]) -> Self:
        return cls(**found)  # type: ignore[arg-type]

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start it on the records so far; it ends by itself unless it is endless."""
        if not self.operator:
            return self._start(spark)
        with state_settings(spark, self.operator, self.state_format):
            return self._start(spark)

    def _start(self, spark: SparkSession) -> StreamingQuery:
        writer = _written(self, _transformed(self, spark))
        writer = writer.option("checkpointLocation", self.checkpoint)
        if self.is_endless:
            return writer.queryName(self.name).start()
        return writer.trigger(availableNow=True).start()


def expected_value(number: int) -> bytes:
    """Return the pipeline's value for a number."""
    return b"%d:%d" % (number, number * number)


def _transformed(job: Job, spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("subscribe", job.input)
    source = source.option("kafka.bootstrap.servers", job.servers)
    source = source.option("kafka.isolation.level", "read_committed")
    source = source.option("startingOffsets", job.starting_offsets)
    source = source.option("maxOffsetsPerTrigger", str(job.per_trigger))
    if job.payments:
        return movements(source.load())
    numbers = source.load().selectExpr("key", "cast(cast(value as string) as long) as number")
    # At random: no task writes the same records again when a batch is run a second time.
    numbers = numbers.selectExpr("*", "rand() as chance").repartition(job.tasks, "chance")
    numbers = numbers.where(f"number >= {job.least}")
    if job.operator:
        found = OPERATORS[job.operator].apply(numbers, job.per_trigger)
        numbers = found.selectExpr("cast(number as string) key", "number", "rand() chance")
    if job.sink in ALL_TABLES:
        return numbers
    return numbers.selectExpr("key", "cast(concat(number, ':', number * number) as binary) value")


def _written(job: Job, results: DataFrame) -> DataStreamWriter:
    output_mode = OPERATORS[job.operator].output_mode if job.operator else "append"
    writer = results.writeStream.outputMode(output_mode)
    if job.sink == STOCK:
        options = {"kafka.bootstrap.servers": job.servers, "topic": job.output}
        return writer.format("kafka").options(**options)
    options = {
        "kafka.bootstrap.servers": job.servers,
        "sinkId": job.name,
        "topic": job.output,
        "checkpointLocation": job.checkpoint,
        **job.options,
    }
    if job.sink == DATA_SOURCE:
        return writer.format("barnabas").options(**options)
    from barnabas.spark_connector.sinks import foreach_batch

    make = {SINGLE: foreach_batch.single_transaction, TWO_PHASE: foreach_batch.two_phase}
    sink, table = ALL_TABLES.get(job.sink, (job.sink, ""))
    if table == ICEBERG:
        results.sparkSession.sql(
            f"CREATE TABLE IF NOT EXISTS {job.iceberg_name}"
            " (key BINARY, number BIGINT, chance DOUBLE, query STRING, batch BIGINT)"
            " USING iceberg PARTITIONED BY (query, batch)"
        )
    return writer.foreachBatch(make[sink](options, _table(job, table) if table else None))


def _table(job: Job, table: str) -> Table:
    """Return a table with random rows: no run of a batch gives the rows of another."""

    def save(rows: DataFrame, batch: Batch) -> DataFrame:
        if table == PARQUET:
            saved = batch.write_parquet(rows, job.table)
        elif table == ICEBERG:
            saved = _saved_to_iceberg(rows, batch, job.iceberg_name)
        else:
            once = {"txnAppId": f"{job.name}.{batch.query_id}", "txnVersion": str(batch.batch_id)}
            batch.marked(rows).write.format("delta").mode("append").options(**once).save(job.table)
            saved = rows.sparkSession.read.format("delta").load(job.table).where(batch.condition)
        value = "cast(concat(number, ':', number * number) as binary) value"
        return saved.selectExpr("cast(chance as string) key", value)

    return save


def _saved_to_iceberg(rows: DataFrame, batch: Batch, name: str) -> DataFrame:
    """Write a batch as a user would: an overwrite that fails if the batch came since the look."""
    spark = rows.sparkSession
    before = spark.table(f"{name}.refs").where("name = 'main'").first()
    if spark.table(name).where(batch.condition).isEmpty():
        reach("T-aside")
        once = {"isolation-level": "serializable", "distribution-mode": "none"}
        if before is not None:
            once["validate-from-snapshot-id"] = str(before.snapshot_id)
        batch.marked(rows).writeTo(name).options(**once).overwritePartitions()
    return spark.table(name).where(batch.condition)
