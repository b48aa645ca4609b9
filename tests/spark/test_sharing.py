"""Effects of a Spark that stays in a worker on the test files that run after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from tests.spark.sharing import SHARED_BY_FILE, WITHOUT_SHARING, SharedSparkScheduling


@pytest.fixture(scope="module")
def stayed() -> Iterator[object]:
    with pytest.MonkeyPatch.context() as patch:
        context = object()
        patch.setattr(SparkContext, "_active_spark_context", context)
        yield context
        assert SparkContext._active_spark_context is context


def test_test_without_spark_sees_none(stayed):
    assert SparkContext._active_spark_context is None


def test_each_file_with_units_of_its_own_is_there(pytestconfig):
    named = {*SHARED_BY_FILE, *WITHOUT_SHARING}
    missing = [file for file in named if not (pytestconfig.rootpath / file).is_file()]
    assert missing == []


def test_test_is_a_unit_of_work_where_a_file_shares_nothing():
    scheduling = object.__new__(SharedSparkScheduling)
    units = {
        scheduling._split_scope(f"tests/{file}::test_{number}[a::b]")
        for file in ("interop/test_prove.py", "interop/test_groups.py", "spark/test_sinks.py")
        for number in range(2)
    }
    assert units == {
        "tests/interop/test_prove.py::test_0[a::b]",
        "tests/interop/test_prove.py::test_1[a::b]",
        "tests/interop/test_groups.py",
        SHARED_BY_FILE["tests/spark/test_sinks.py"],
    }


@pytest.mark.parametrize("file", sorted(WITHOUT_SHARING))
def test_file_whose_tests_are_units_has_no_fixture_for_several(pytestconfig, file):
    assert "scope=" not in (pytestconfig.rootpath / file).read_text()
