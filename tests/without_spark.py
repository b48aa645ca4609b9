"""Refuses to import what the extra `interop` alone installs: `pytest -p tests.without_spark`.

Tests are collected while Spark is being installed. A test file that imports Spark would fail to be
collected on a new checkout, and on no other.
"""

import sys

for _name in ("matplotlib", "moto", "pyiceberg", "pyspark"):
    sys.modules[_name] = None  # type: ignore[assignment]  # the documented way to refuse an import
