"""Units of work of xdist's workers: files that share a Spark together, another file as a whole.

A Spark takes seconds of processor time to start, and as many again for its first query. Of files
whose tests wait for long and share nothing, each test is a unit: one worker would need as long for
such a file as all others for the rest.
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

WITHOUT_SHARING: Final = {
    "tests/attack/shapes/test_shapes.py",
    "tests/attack/test_attack.py",
    "tests/interop/test_documents.py",
    "tests/interop/test_prove.py",
}
"""Files of which each test is a unit of work."""


class SharedSparkScheduling(LoadFileScheduling):
    """The scheduling of `--dist=loadfile`, with these units of work."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in WITHOUT_SHARING else SHARED_BY_FILE.get(file, file)
