"""Exactly once in a declarative pipeline of Spark, which spark-pipeline.yml names.

    jars=$(python -m barnabas.spark jars | tr , :)
    spark-pipelines --conf spark.driver.extraClassPath=$jars run --spec examples/spark-pipeline.yml

Spark chooses the checkpoint itself. Each flow needs a sink of its own with a ``sinkId`` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

dp.create_sink(
    "payments_flow",
    "barnabas",
    {
        "kafka.bootstrap.servers": "localhost:9092",
        "sinkId": "payments-flow",
        "topic": "payments-flow",
    },
)


@dp.append_flow(target="payments_flow")
def payments() -> DataFrame:
    """Return the rows of the topic."""
    records = (
        SparkSession.active()
        .readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", "payments")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.selectExpr("key", "value")
