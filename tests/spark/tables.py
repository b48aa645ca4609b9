"""The tables of pipelines that write a topic, too: read without Spark, and judged."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import kafka
from confluent_kafka import IsolationLevel

from barnabas.spark import decided
from tests.counterparts.jars import delta_jars, spark_kafka_jars
from tests.counterparts.older_spark import iceberg_jars, older_spark_kafka_jars
from tests.spark.job import ALL_TABLES, ICEBERG, PARQUET, Job, expected_value
from tests.spark.judge import PARTITIONS, PATIENCE_S, log_ends

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset


class Row(NamedTuple):
    query: str
    batch: int
    number: int
    chance: float


def delta_settings() -> dict[str, str]:
    """Return the settings of a Spark that knows Delta, in one process."""
    return {
        # Not before the driver's class path, which would no longer match the archive of classes.
        "spark.jars": ",".join(map(str, [*spark_kafka_jars(), *delta_jars()])),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Its 50 tasks for a log of a few entries are meant for a cluster.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def iceberg_settings() -> dict[str, str]:
    """Return the settings of a Spark 4.1 that knows Iceberg, in one process."""
    return {
        "spark.jars": ",".join(map(str, [*older_spark_kafka_jars(), *iceberg_jars()])),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "file:///",
        # Otherwise a table is for half a minute as it was: another driver may have written it.
        "spark.sql.catalog.lake.cache-enabled": "false",
    }


def rows_of(job: Job) -> list[Row]:
    """Return all that a reader of the table finds."""
    _sink, table = ALL_TABLES[job.sink]
    if table == ICEBERG:
        return rows_of_iceberg(Path(job.table))
    files = job.table if table == PARQUET else files_of_delta(Path(job.table))
    if not files or not Path(job.table).exists():
        return []
    found = parquet(files)
    return [Row(*each.values()) for each in found.to_table(columns=list(Row._fields)).to_pylist()]


def parquet(files: str | list[str]) -> Dataset:
    """Return files of Parquet as one table.

    The import takes half a second, also of each process that only collects tests of Spark.
    """
    from pyarrow.dataset import dataset

    return dataset(files, format="parquet", partitioning="hive")


def rows_of_iceberg(table: Path) -> list[Row]:
    """Return all that Iceberg's own client in Python finds."""
    from pyiceberg.table import StaticTable

    metadata = table / "metadata"
    version = (metadata / "version-hint.text").read_text().strip()
    static = StaticTable.from_metadata(f"file://{metadata}/v{version}.metadata.json")
    found = static.scan(selected_fields=Row._fields).to_arrow().select(list(Row._fields))
    return [Row(*each.values()) for each in found.to_pylist()]


def files_of_delta(table: Path) -> list[str]:
    """Return the files that the table consists of, by its log."""
    files: dict[str, None] = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[action["add"]["path"]] = None
            if "remove" in action:
                del files[action["remove"]["path"]]
    return [str(table / name) for name in files]


def decided_rows(job: Job) -> list[Row]:
    """Return the rows of the table that are decided, as SQL finds them."""
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE found ({', '.join(Row._fields)})")
    database.executemany("INSERT INTO found VALUES (?, ?, ?, ?)", rows_of(job))
    condition = decided(job.name, servers=job.servers)
    return [Row(*each) for each in database.execute(f"SELECT * FROM found WHERE {condition}")]


def judge_table(job: Job, records: int) -> None:
    """Demand that the table has every result once, and the very rows that the topic has."""
    assert Counter(row.number for row in decided_rows(job)) == Counter(
        range(job.results_of(records))
    )
    assert in_table(job) == in_topic(job)


def in_table(job: Job) -> Counter[tuple[bytes, float]]:
    """Return the decided rows of the table, as the topic has them."""
    return Counter((expected_value(row.number), row.chance) for row in decided_rows(job))


def in_topic(job: Job) -> Counter[tuple[bytes, float]]:
    """Return the values, and their random numbers, that `read_committed` consumers find."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=job.servers, isolation_level="read_committed", fetch_max_wait_ms=20
    )
    places = [kafka.TopicPartition(job.output, each) for each in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = log_ends(job.servers, places, IsolationLevel.READ_UNCOMMITTED)
    found: Counter[tuple[bytes, float]] = Counter()
    deadline = time.monotonic() + PATIENCE_S
    while any(consumer.position(place) < ends[place] for place in places):
        assert time.monotonic() < deadline, ends
        for records in consumer.poll(timeout_ms=100).values():
            found.update((record.value, float(record.key)) for record in records)
    consumer.close()
    return found
