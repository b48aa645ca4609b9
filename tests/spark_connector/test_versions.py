import tomllib
from pathlib import Path

from packaging.requirements import Requirement

import spark_connector

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_the_extra_admits_every_tested_version():
    (requirement,) = (each for each in map(Requirement, EXTRAS["spark"]) if each.name == "pyspark")
    for version in spark_connector.TESTED_SPARK_VERSIONS:
        assert requirement.specifier.contains(version)


def test_the_interop_tests_use_a_tested_version():
    (pyspark,) = (each for each in map(Requirement, EXTRAS["interop"]) if each.name == "pyspark")
    assert str(pyspark.specifier).removeprefix("==") in spark_connector.TESTED_SPARK_VERSIONS
