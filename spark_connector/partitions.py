"""Reading the rows of a DataFrame in the driver, one partition at a time.

`DataFrame.toLocalIterator` is made for this, but in PySpark 4.2.0 the JVM keeps every byte that it
has handed out: a driver with a heap of 1 GB ended within 60 batches of 14 MB. One job for each
partition, as `SparkContext.runJob` starts it, keeps nothing.

The end of the socket from the JVM means nothing: it ends as well where the JVM or its serving
thread has died, even within a row, and PySpark then returns what has come. So the tasks must mark
the end of each partition, and the caller must look for that mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def partitions_of(frame: DataFrame) -> Iterator[Iterator[Row]]:
    """Yield the rows of each partition, which is computed when it is yielded.

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
        with _open(_load_from_socket(served, rdd._jrdd_deserializer)) as rows:  # noqa: SLF001
            yield rows


def _open(loaded: Any) -> AbstractContextManager[Iterator[Row]]:  # noqa: ANN401
    """Return the rows in a context that closes their socket; PySpark 4.1 returns the rows alone."""
    return loaded if hasattr(loaded, "__enter__") else nullcontext(loaded)
