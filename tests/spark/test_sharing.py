"""Effects of a Spark that stays in a worker on the test files that run after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from tests.spark.sharing import SHARED_BY_FILE


@pytest.fixture(scope="module")
def stayed() -> Iterator[object]:
    with pytest.MonkeyPatch.context() as patch:
        context = object()
        patch.setattr(SparkContext, "_active_spark_context", context)
        yield context
        assert SparkContext._active_spark_context is context


def test_test_without_spark_sees_none(stayed):
    assert SparkContext._active_spark_context is None


def test_each_file_of_a_shared_spark_is_there(pytestconfig):
    missing = [file for file in SHARED_BY_FILE if not (pytestconfig.rootpath / file).is_file()]
    assert missing == []
