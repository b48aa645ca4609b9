"""All rows of a table of Iceberg beside a topic: `make spark-crash`.

Iceberg 1.12 has no runtime for Spark 4.2, and that of 4.1 does not run there: `View` of Spark's
catalogs is an interface no more (IncompatibleClassChangeError). These rows run with PySpark 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.counterparts.older_spark import python_with_older_spark
from tests.spark.crash_table import AT_A_TABLE, Play, Row, kill_driver, overtake
from tests.spark.harness import ONE_PROCESS, SparkDriver
from tests.spark.job import ICEBERG_TABLES
from tests.spark.tables import iceberg_settings

pytestmark = pytest.mark.timeout(3600)

ROWS = [Row(sink, place) for sink in ICEBERG_TABLES for place in AT_A_TABLE[sink]]


def iceberg_driver(directory) -> SparkDriver:
    return SparkDriver(directory, ONE_PROCESS, python_with_older_spark(), **iceberg_settings())


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    with iceberg_driver(tmp_path_factory.mktemp("driver")) as running:
        yield running


def test_driver_that_writes_iceberg_dies(barnabas, driver, tmp_path):
    with iceberg_driver(tmp_path / "old") as old:
        kill_driver(old, driver, [Play(row, "killed", barnabas, tmp_path) for row in ROWS])


def test_driver_that_writes_iceberg_is_overtaken(barnabas, driver, tmp_path):
    with iceberg_driver(tmp_path / "old") as old:
        overtake(old, driver, [Play(row, "overtaken", barnabas, tmp_path) for row in ROWS])
