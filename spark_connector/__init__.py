"""The part of Barnabas that runs inside Spark, installed with its extra ``spark``.

Spark's stock Kafka source and sink work against Barnabas as they are; what they need is in
``CONNECTOR_JARS``, and ``python -m barnabas.spark run`` fetches it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.spark_connector.monitoring.monitoring import monitor
    from barnabas.spark_connector.pipelines.pipeline import Pipeline
    from barnabas.spark_connector.pipelines.sink import Sink
    from barnabas.spark_connector.pipelines.source import Source, read, read_stream
    from barnabas.spark_connector.running.program import run
    from barnabas.spark_connector.session.jars import CONNECTOR_JARS, TESTED_SPARK_VERSIONS
    from barnabas.spark_connector.sinks.table import Batch, decided

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

_MODULES: Final = {
    "CONNECTOR_JARS": "session.jars",
    "TESTED_SPARK_VERSIONS": "session.jars",
    "Batch": "sinks.table",
    "Pipeline": "pipelines.pipeline",
    "Sink": "pipelines.sink",
    "Source": "pipelines.source",
    "decided": "sinks.table",
    "monitor": "monitoring.monitoring",
    "read": "pipelines.source",
    "read_stream": "pipelines.source",
    "run": "running.program",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used.

    Spark imports this package in every session that uses any Python data source, so importing it
    must be quick and must not need NumPy or PyArrow.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
