"""Stateful queries of the crash tables: a result needs state that an earlier batch has left.

Each number comes twice: in its own batch, and once more in the batch after it. Aggregation, join
and `transformWithState` have a result for a number when they see it again, `dropDuplicates` when
they see it first. So state that was lost shows as losses, and there as duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AGGREGATION: Final = "aggregation"
AGGREGATION_APPEND: Final = "aggregation-append"
DROP_DUPLICATES: Final = "dropDuplicates"
JOIN: Final = "join"
TRANSFORM_WITH_STATE: Final = "transformWithState"
STATE_FORMATS: Final = (1, 2)
WITH_ROCKSDB: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
ALLOWED_DELAY_S: Final = 100
"""Delay of the watermark beyond the numbers of one batch, which are seconds of event time."""
BEGINNING_S: Final = 1_000_000
"""Event time of the number 0. Spark's watermark begins at 0, and drops what is not later."""


@dataclass(frozen=True)
class Operator:
    """A stateful operator from numbers to numbers."""

    apply: Callable[[DataFrame, int], DataFrame]
    """A function of a stream with the column `number`, and the count of numbers in a batch."""
    missing: Callable[[int], int] = lambda batch_size: batch_size
    """Count of the last numbers without a result at the end of the input, by batch size."""
    output_mode: str = "append"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark that its queries need."""


def _twice(numbers: DataFrame, batch_size: int) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    pairs = F.explode(F.array("number", F.col("number") - batch_size))
    return numbers.select(pairs.alias("number")).where("number >= 0")


def _with_event_time(numbers: DataFrame, batch_size: int) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    at = F.timestamp_seconds(F.col("number") + BEGINNING_S)
    twice = _twice(numbers, batch_size).withColumn("at", at)
    return twice.withWatermark("at", f"{batch_size + ALLOWED_DELAY_S} seconds")


def _aggregation(numbers: DataFrame, batch_size: int) -> DataFrame:
    counted = _twice(numbers, batch_size).groupBy("number").count()
    return counted.where("count = 2").select("number")


def _aggregation_with_watermark(numbers: DataFrame, batch_size: int) -> DataFrame:
    counted = _with_event_time(numbers, batch_size).groupBy("at", "number").count()
    return counted.where("count = 2").select("number")


def _drop_duplicates(numbers: DataFrame, batch_size: int) -> DataFrame:
    return _with_event_time(numbers, batch_size).dropDuplicates(["number", "at"]).select("number")


def _join(numbers: DataFrame, batch_size: int) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    again = numbers.select((F.col("number") - batch_size).alias("earlier"))
    return numbers.select("number").join(again, F.expr("number = earlier")).select("number")


def _transform_with_state(numbers: DataFrame, batch_size: int) -> DataFrame:
    from tests.spark.second_occurrence import SecondOccurrence

    by_number = _twice(numbers, batch_size).groupBy("number")
    return by_number.transformWithState(SecondOccurrence(), "number long", "append", "none")


OPERATORS: Final = {
    AGGREGATION: Operator(_aggregation, output_mode="update"),
    # Spark has no update mode for a data source in Python.
    AGGREGATION_APPEND: Operator(
        _aggregation_with_watermark, missing=lambda batch_size: batch_size + ALLOWED_DELAY_S
    ),
    DROP_DUPLICATES: Operator(
        _drop_duplicates,
        missing=lambda _batch_size: 0,
        # A batch that only moves the watermark lists no transactions for C2 to commit again.
        settings={"spark.sql.streaming.noDataMicroBatches.enabled": "false"},
    ),
    JOIN: Operator(_join),
    TRANSFORM_WITH_STATE: Operator(_transform_with_state, settings=WITH_ROCKSDB),
}


@contextmanager
def state_settings(spark: SparkSession, operator: str, state_format: int) -> Iterator[None]:
    """Give queries that start inside the state format 1 or 2 of Spark.

    A query takes the settings of its session when it starts. They are those of the only session,
    since Spark looks for data sources in the active one.
    """
    settings = {
        "spark.sql.streaming.stateStore.checkpointFormatVersion": str(state_format),
        **OPERATORS[operator].settings,
        **(WITH_ROCKSDB if state_format == 2 else {}),
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)
