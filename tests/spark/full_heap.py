"""The heap of the driver over 100 batches of 14 MB, for each kind of sink: `make spark-crash`.

Its name keeps it out of the ordinary tests; test_sinks.py has the same with less to write.
"""

from __future__ import annotations

import pytest

from tests.counterparts.spark import spark_session
from tests.spark.heap import GROWTH_MAX_BYTES, KINDS, Load, heap_growth_bytes

pytestmark = [pytest.mark.timeout(3600), pytest.mark.filterwarnings("ignore")]

LOAD = Load(batch_rows=50_000, batches_before=10, batches=100)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    session = spark_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_driver_heap_stays_flat(kind, spark, barnabas, say, tmp_path):
    growth = heap_growth_bytes(spark, barnabas.bootstrap_servers, kind, LOAD, tmp_path)
    say(f"{kind}: {growth / 1e6:+.1f} MB from batch 10 to batch 100")
    assert growth < GROWTH_MAX_BYTES
