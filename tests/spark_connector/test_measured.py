"""Durations of a batch's last steps: measured where they happen, and carried by the ledger."""

from __future__ import annotations

import json

import pytest

from barnabas.spark_connector.cluster.cluster import connected
from barnabas.spark_connector.ledger.entries import Begun, Entry, decode, encode
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.sinks import kept_decider, starting
from barnabas.storage.runtime.chance import random_bytes
from barnabas.testing import Broker
from tests.spark_connector.checkpointed import KINDS, Driver, SparkCheckpoint, options


@pytest.fixture(scope="module")
def broker():
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 2)
        yield running


@pytest.fixture
def _kept():
    yield
    for module in (kept_decider, starting):
        while module._kept:
            kept = module._kept.pop()
            (kept.decider if module is kept_decider else kept.cluster).close()


def test_durations_come_back_as_they_were_written():
    entry = Entry(7, "f", begun=Begun(8, "g"), measured=Measured(6, 12.5, 0.3))
    assert decode(encode(entry)) == entry
    assert entry.followed_by(8, "g", (), is_pinned=True, record_count=1).measured is None
    fields = json.loads(encode(entry))
    assert fields["measured"] == {"batchId": 6, "decideMs": 12.5, "commitMs": 0.3}
    del fields["measured"]  # As earlier versions wrote entries.
    assert decode(json.dumps(fields).encode()) == entry._replace(measured=None)


@pytest.mark.parametrize(
    "found",
    [
        None,
        7,
        [6, 1, 2],
        {},
        {"batchId": 6, "decideMs": "soon", "commitMs": 1},
        {"batchId": float("inf"), "decideMs": 1, "commitMs": 1},
    ],
)
def test_unreadable_durations_fail_no_query(found):
    fields = json.loads(encode(Entry(7, "f")))
    assert decode(json.dumps(fields | {"measured": found}).encode()) == Entry(7, "f")


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("kind", KINDS)
def test_each_entry_has_the_durations_of_the_batch_before(broker, tmp_path, kind):
    files = SparkCheckpoint(tmp_path / random_bytes(4).hex())
    chosen = options(broker, f"measured-{kind}", files)
    driver = Driver(kind, chosen, files)
    with connected(chosen) as cluster:
        ledger = Ledger(cluster, chosen.ledger_topic)
        for batch in range(3):
            driver.run_batch()
            entry = ledger.read(chosen.sink_id, files.query_id)
            assert entry.batch_id == batch
            if batch:
                assert entry.measured.batch_id == batch - 1
                assert entry.measured.decide_ms > 0
                assert entry.measured.commit_ms > 0
            else:
                assert entry.measured is None
    driver.close()
