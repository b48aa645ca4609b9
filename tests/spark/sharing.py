"""Test files that share a Spark: xdist gives all of them to one worker, and others their own file.

A Spark takes seconds of processor time to start, and as many again for its first query.
"""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadFileScheduling

SESSION, DRIVER = "spark", "driver"
"""The fixtures, of session scope, of the Sparks that are shared."""
SHARED_BY_FILE: Final = {
    "tests/interop/test_spark.py": SESSION,
    "tests/spark/test_embedded_broker.py": SESSION,
    "tests/spark/test_schema_registry.py": SESSION,
    "tests/spark/test_sinks.py": SESSION,
    "tests/spark/test_begin_anew.py": DRIVER,
    "tests/spark/test_crash_table.py": DRIVER,
    "tests/spark/test_losses.py": DRIVER,
    "tests/spark/test_monitor.py": DRIVER,
    "tests/spark/test_tables.py": DRIVER,
    "tests/spark/test_object_store.py": DRIVER,
}


class SharedSparkScheduling(LoadFileScheduling):
    """The scheduling of `--dist=loadfile`, with one unit of work for files that share a Spark."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return SHARED_BY_FILE.get(file, file)
