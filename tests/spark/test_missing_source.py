"""A data source that Spark does not find: the command names the Python and the package."""

from __future__ import annotations

import os
import sys
import venv

import pytest

from tests.counterparts.spark import QUICK_PYTHONPATH
from tests.interop.administration import create
from tests.products import for_the_night
from tests.spark.command import start_command

pytestmark = pytest.mark.timeout(600)

PIPELINE = """
from barnabas.spark_connector import Pipeline, Sink

def rows(spark):
    return spark.readStream.format("barnabas").load()

missing = Pipeline(source=rows, sink=Sink(sink_id="missing", topic="out", kind="stock"))
"""
HEAD = "barnabas.spark: missing: Spark has not found the data source barnabas:"


def refusal(directory, servers, **environment):
    """Return the exit code and the line on standard error of a run."""
    (directory / "missing.py").write_text(PIPELINE)
    # The daemon of the tests is no package of a Python that has none.
    daemon = ("--conf", "spark.python.daemon.module=pyspark.daemon")
    with start_command(directory, "missing.py", servers, *daemon, **environment) as process:
        try:
            _, errors = process.communicate(timeout=300)
        finally:
            process.kill()
    return process.returncode, errors


@pytest.fixture(scope="module")
def servers(barnabas):
    create(barnabas.bootstrap_servers, "out", partitions=1)
    return barnabas.bootstrap_servers


@for_the_night(beside="tests/spark/test_doctor.py::test_a_data_source_that_is_unknown_everywhere")
def test_python_that_has_no_data_source_is_named(servers, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python")
    code, said = refusal(tmp_path, servers, PYSPARK_PYTHON=bare, PYTHONPATH="")
    assert code == 1
    assert said.startswith(f"{HEAD} {bare} (PYSPARK_PYTHON), the Python of its workers, has no")


@for_the_night(beside="tests/spark/test_doctor.py::test_a_broken_package_of_data_sources_is_named")
def test_package_that_hides_all_data_sources_is_named(servers, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "pyspark_broken.py").write_text("raise ValueError('no licence')\n")
    path = f"{tmp_path / 'broken'}{os.pathsep}{QUICK_PYTHONPATH}"
    code, said = refusal(tmp_path, servers, PYTHONPATH=path, PYSPARK_PYTHON=sys.executable)
    assert code == 1
    assert said.startswith(f"{HEAD} the package pyspark_broken of {sys.executable}"), said
    assert "(ValueError: no licence), which hides all data sources" in said
