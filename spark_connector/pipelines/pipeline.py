"""What a user writes: where to read, a function from DataFrame to DataFrame, where to write.

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
    """Return what comes in: a pipeline that copies."""
    return frame


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One query: a source, a transformation, a sink."""

    source: Source | Callable[[SparkSession], DataFrame]
    sink: Sink
    transform: Callable[[DataFrame], DataFrame] = unchanged

    @property
    def name(self) -> str:
        """The sink's id: what the query and its checkpoint are called."""
        return self.sink.sink_id

    def frame(self, spark: SparkSession, *, once: bool = False) -> DataFrame:
        """Return the stream of what is to be written; ``once`` takes the place of the trigger.

        A bound keeps the first batch from being the whole topic where the next batch follows at
        once. A `processingTime` trigger has none: more records than the bound may arrive between
        two batches, and the query would fall behind permanently. Real-time mode refuses one.
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
