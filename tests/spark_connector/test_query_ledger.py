"""The ledger as an observer of one query reads it."""

from __future__ import annotations

import pytest

from barnabas.spark_connector.cluster.cluster import connected
from barnabas.spark_connector.ledger.query_ledger import QueryLedger
from barnabas.testing import Broker
from tests.spark_connector.checkpointed import Driver, SparkCheckpoint, options


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 1)
        yield running


def test_entries_of_a_query_are_found_with_any_sink_id(broker, tmp_path):
    checkpoints = [SparkCheckpoint(tmp_path / name) for name in ("one", "two")]
    drivers = [
        Driver("single", options(broker, f"sink-{files.directory.name}", files), files)
        for files in checkpoints
    ]
    chosen, query_id = drivers[0].options, checkpoints[0].query_id
    with connected(chosen) as cluster:
        ledger = QueryLedger(cluster, chosen.ledger_topic, query_id)
        assert (ledger.entries(), ledger.sink_id) == ([], None)
        for batch in range(3):
            for driver in drivers:
                driver.run_batch()
            # Also before the marker of the transaction is written.
            assert batch in [entry.batch_id for entry in ledger.entries()]
            assert ledger.sink_id == "sink-one"
        drivers[0].run(5)
        ledger.entries()  # Durations of entries that others have replaced are kept.
        assert [each.batch_id for each in ledger.measured] == [0, 1, 2, 3, 4]
        other = QueryLedger(cluster, chosen.ledger_topic, "another query")
        assert (other.entries(), other.sink_id) == ([], None)
    for driver in drivers:
        driver.close()


def test_an_observer_creates_no_ledger(broker, tmp_path):
    chosen = options(broker, "observer", SparkCheckpoint(tmp_path / "q"), ledgerTopic="absent")
    with connected(chosen) as cluster:
        assert QueryLedger(cluster, "absent", "query").entries() == []
        assert not cluster.existing(["absent"])
