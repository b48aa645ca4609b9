"""Reading the rows of a DataFrame in the driver, one partition at a time.

`DataFrame.toLocalIterator` is made for this, but in PySpark 4.2.0 the JVM keeps every byte that it
has handed out: a driver with a heap of 1 GB ended within 60 batches of 14 MB. One job for each
partition, as `SparkContext.runJob` starts it, keeps nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def rows_by_partition(frame: DataFrame) -> Generator[Row, None, None]:
    """Yield all rows; a partition is computed when the rows of the one before it are consumed.

    The driver's JVM holds one partition at a time, this process a few rows of it.
    """
    # Without `SparkContext.runJob` around it, which would send every row through one more Python
    # worker.
    from pyspark.util import _load_from_socket

    rdd = frame.rdd
    context: Any = rdd.context
    python_rdd, spark = context._jvm.PythonRDD, context._jsc.sc()  # noqa: SLF001
    for partition in range(rdd.getNumPartitions()):
        served = python_rdd.runJob(spark, rdd._jrdd, [partition])  # noqa: SLF001
        with _load_from_socket(served, rdd._jrdd_deserializer) as rows:  # noqa: SLF001
            yield from rows
