"""A pipeline as a user writes it: a source, a function from DataFrame to DataFrame, a sink.

    from barnabas.spark import Pipeline, Sink, Source

    pipeline = Pipeline(
        source=Source(topic="payments"),
        transform=movements,
        sink=Sink(sink_id="ledger", topic="movements"),
    )

`python -m barnabas.spark run that_file.py` runs every pipeline that a file has at its top level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark_connector.failures.raised import raising
from barnabas.spark_connector.pipelines.sink import Sink
from barnabas.spark_connector.pipelines.source import Source
from barnabas.spark_connector.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def unchanged(frame: DataFrame) -> DataFrame:
    """Return the DataFrame itself, for a pipeline that copies."""
    return frame


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One query: a source, a transformation, a sink."""

    source: Source | Callable[[SparkSession], DataFrame]
    sink: Sink
    transform: Callable[[DataFrame], DataFrame] = unchanged

    @property
    def name(self) -> str:
        """Sink ID, which is also the name of the query and of its checkpoint."""
        return self.sink.sink_id

    def frame(self, spark: SparkSession, *, once: bool = False) -> DataFrame:
        """Return the stream to write; ``once`` replaces the trigger.

        If batches follow each other without a pause, a bound prevents a first batch with the whole
        topic. A `processingTime` trigger has no bound: if more records arrive between two batches,
        the query would fall behind permanently. Real-time mode refuses a bound.
        """
        if isinstance(self.source, Source):
            with raising("Spark's Kafka source"):
                is_bounded = once or self.sink.trigger.keys() <= {"availableNow"}
                stream = self.source.load(spark, is_bounded=is_bounded)
        else:
            with raising("source"):
                stream = self.source(spark)
            if not hasattr(stream, "isStreaming"):
                raise WrongUse(f"source returned {type(stream).__name__}, not a DataFrame")
        with raising("transform"):
            return self.transform(stream)
