"""The part of Barnabas that runs inside Spark, reached with ``pip install barnabas[spark]``.

Spark's stock Kafka source and sink work against Barnabas as they are; what they need is in
``CONNECTOR_JARS``, and ``python -m barnabas.spark run`` fetches it.
"""

from barnabas.spark_connector.jars import SPARK_KAFKA_JARS, TESTED_SPARK_VERSIONS
from barnabas.spark_connector.monitoring import monitor
from barnabas.spark_connector.pipeline import Pipeline
from barnabas.spark_connector.program import run
from barnabas.spark_connector.sinks import Sink
from barnabas.spark_connector.source import Source, read, read_stream
from barnabas.spark_connector.table import Batch, decided

CONNECTOR_JARS = tuple(jar.coordinates for jar in SPARK_KAFKA_JARS)
"""Maven coordinates of the tested connector, without their own dependencies."""

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
