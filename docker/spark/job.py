# ruff: noqa: INP001 - a script, not part of a package
"""Counts the records of one topic by key and writes every new count to another, until stopped.

BOOTSTRAP_SERVERS, INPUT, OUTPUT and STATE, the directory of the checkpoint, are variables of the
environment.
"""

import os
import signal
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

SERVERS = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")
INPUT = os.environ.get("INPUT", "input")
OUTPUT = os.environ.get("OUTPUT", "output")
STATE = os.environ.get("STATE", "/var/lib/spark/state")


def main() -> None:
    """Run the query; SIGTERM ends it, and the next start continues from the checkpoint."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    spark = (
        SparkSession.builder.appName("counts")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", INPUT)
        .option("startingOffsets", "earliest")
        .load()
    )
    counts = records.groupBy("key").agg(F.count("*").cast("string").alias("value"))
    query = (
        counts.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("topic", OUTPUT)
        .option("checkpointLocation", STATE)
        .outputMode("update")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
