"""Exactly-once pipelines with Spark: the extra ``spark``; see docs/spark.md."""

from barnabas.spark_connector import (
    CONNECTOR_JARS,
    TESTED_SPARK_VERSIONS,
    Batch,
    Pipeline,
    Sink,
    Source,
    decided,
    monitor,
    read,
    read_stream,
    run,
)

__all__ = [
    "CONNECTOR_JARS",
    "TESTED_SPARK_VERSIONS",
    "Batch",
    "Pipeline",
    "Sink",
    "Source",
    "decided",
    "monitor",
    "read",
    "read_stream",
    "run",
]
