"""Packages that Spark fetches are used beside the connector's jars, which the command fetches."""

from __future__ import annotations

import json

import pytest

from barnabas.spark_connector.session.cache import cache_directory
from examples import spark_data
from tests.products import for_the_night
from tests.spark.command import PATIENT_VIEW, start_command
from tests.spark.packages import avro_numbers, package

RECORDS = 200
PATIENCE_S = 300
AVRO = """
from barnabas.spark_connector import Pipeline, Sink, Source

def in_avro(payments):
    from pyspark.sql.avro.functions import to_avro
    number = "cast(get_json_object(cast(value as string), '$.id') as int) as number"
    return payments.selectExpr(number).select(to_avro("number", '"int"').alias("value"))

pipeline = Pipeline(
    source=Source(topic="numbers"),
    transform=in_avro,
    sink=Sink(sink_id="avro", topic="in-avro"),
)
"""
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def run(barnabas, tmp_path_factory):
    """Return a function that runs the pipeline and returns exit code, lines, errors."""
    directory = tmp_path_factory.mktemp("packages")
    servers = barnabas.bootstrap_servers
    spark_data.create_topics(servers, ["numbers", "in-avro"], 1)
    numbers = (each._replace(topic="numbers") for each in spark_data.payments(RECORDS))
    spark_data.send(servers, numbers)
    (directory / "avro.py").write_text(PATIENT_VIEW + AVRO)

    def start(*arguments):
        with start_command(directory, "avro.py", servers, "--once", *arguments) as process:
            try:
                output, errors = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
        return process.returncode, output.splitlines(), errors.splitlines()

    return start


@for_the_night(
    beside="tests/spark/test_schema_registry.py::test_records_of_two_schemas_and_tombstones_are_decoded"
)
def test_a_pipeline_that_writes_avro(run, barnabas):
    # Where the next run finds them, too.
    cache = f"spark.jars.ivy={cache_directory() / 'ivy'}"
    code, lines, errors = run("--packages", package("spark-avro"), "--conf", cache)
    assert (code, errors) == (0, [])
    assert sum(json.loads(line)["rows"] for line in lines) == RECORDS
    found = avro_numbers(barnabas.bootstrap_servers, "in-avro", 1, RECORDS)
    assert found == list(range(RECORDS))


@for_the_night(
    beside="tests/spark/test_schema_registry.py::test_records_of_two_schemas_and_tombstones_are_decoded"
)
def test_missing_package_is_named(run):
    code, lines, errors = run()
    assert (code, lines) == (1, [])
    (line,) = errors
    assert line.startswith(
        "barnabas.spark: avro: Spark's functions for Avro are not there: add them with --packages"
        " org.apache.spark:spark-avro_2.13:VERSION"
    )


@for_the_night(
    beside="tests/spark/test_schema_registry.py::test_records_of_two_schemas_and_tombstones_are_decoded"
)
def test_a_package_that_there_is_not(run):
    code, lines, errors = run("--packages", package("spark-no-such-thing"))
    assert (code, lines) == (1, [])
    (line,) = errors
    name = package("spark-no-such-thing").rpartition(":")[0]
    assert line.startswith(
        f"barnabas.spark: avro: Spark's Java process did not start: there is no package {name} of"
        " that version where Spark looks for it"
    )
