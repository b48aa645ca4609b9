"""Reader of a DataFrame's binary values in the driver, one partition at a time.

`DataFrame.toLocalIterator` has this purpose, but in PySpark 4.2.0 the JVM keeps all bytes that it
has delivered: a driver with a heap of 1 GB ended within 60 batches of 14 MB. One job for each
partition, as `SparkContext.runJob` starts it, keeps no bytes.

The end of the socket from the JVM proves no completeness. It also ends after the JVM or its serving
thread has died, even within a value, and PySpark then returns the received part. So the tasks must
mark the end of each partition, and the caller must check the mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def partitions_of(frame: DataFrame) -> Iterator[Iterator[bytes]]:
    """Yield the values of each partition, which is computed when it is yielded.

    ``frame`` has one binary column, which the JVM delivers unchanged: `DataFrame.rdd` would
    pickle each value as text in Latin-1. The driver's JVM holds one partition at a time, this
    process one value.
    """
    # Without `SparkContext.runJob`, which would send every value through one more Python worker.
    from pyspark.serializers import NoOpSerializer
    from pyspark.util import _load_from_socket

    context: Any = frame.sparkSession.sparkContext
    java, spark = context._jvm, context._jsc.sc()  # noqa: SLF001
    as_bytes = getattr(frame._jdf, "as")  # noqa: SLF001
    values = as_bytes(java.org.apache.spark.sql.Encoders.BINARY()).toJavaRDD()
    for partition in range(values.getNumPartitions()):
        served = java.PythonRDD.runJob(spark, values, [partition])
        with _open(_load_from_socket(served, NoOpSerializer())) as found:
            yield found


def _open(loaded: Any) -> AbstractContextManager[Iterator[bytes]]:  # noqa: ANN401
    """Return the values in a context that closes their socket, which PySpark 4.1 does not give."""
    return loaded if hasattr(loaded, "__enter__") else nullcontext(loaded)
