"""`spark.python.daemon.module` of the tests: its Python workers have their imports already.

Spark's own daemon imports little before it forks. Each worker then spends half a second of
processor time on imports, and a test of a few batches has dozens of workers.
"""

from __future__ import annotations

import importlib
from typing import Final

from pyspark.daemon import manager

IMPORTED_AHEAD: Final = (
    "encodings.idna",
    "pandas",
    "pyarrow",
    "pyspark.sql.conversion",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "spark_connector.data_source",
    "spark_connector.foreach_batch",
    "spark_connector.single",
)

if __name__ == "__main__":
    for name in IMPORTED_AHEAD:
        importlib.import_module(name)
    manager()
