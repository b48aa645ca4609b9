"""`spark.python.daemon.module` of the tests: its Python workers have their imports already.

Spark's own daemon imports little before it forks. Each worker then spends most of a second of
processor time before its first row, and a test of a few batches has dozens of workers.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Final

from pyspark.daemon import manager

IMPORTED_AHEAD: Final = (
    "encodings.idna",
    "pandas",
    "pyarrow",
    "pyspark.sql.conversion",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "barnabas.spark_connector.sinks.data_source",
    "barnabas.spark_connector.sinks.stream_writer",
    "barnabas.spark_connector.sinks.foreach_batch",
    "barnabas.spark_connector.sinks.single",
)

if __name__ == "__main__":
    for name in IMPORTED_AHEAD:
        importlib.import_module(name)
    # Each worker forgets at first what is in an archive, and would read its directory 16 times.
    sys.path_importer_cache.clear()
    # Each worker collects garbage after each task, and would copy all pages of what is imported.
    gc.freeze()
    manager()
