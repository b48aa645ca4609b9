"""The cores of the Spark sinks, without Spark, against Barnabas and Apache Kafka 4.3.0.

A crash is simulated at every step, by ending the driver there and starting another one.
"""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from barnabas.broker.client.connection import Connection
from barnabas.protocol.client import AdvertisedVersions
from barnabas.protocol.messages import registry
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.spark_connector.errors import (
    BatchInDoubt,
    CheckpointMismatch,
    Fenced,
    SinkError,
    TransactionLost,
)
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.two_phase import Decider
from tests.interop.administration import create
from tests.interop.sink_cores.faults import abort_by_hand, crash_at_every_step, lose_answers
from tests.interop.spark_sink import (
    PARTITIONS,
    PLACES,
    Crash,
    check_all_is_settled,
    crash_at,
    expected,
    open_transactions,
    options,
    read,
    restart_after_crash,
    rows,
)
from tests.spark.judge import open_transactions as unfinished
from tests.spark.judge import until

pytestmark = pytest.mark.timeout(280)


@pytest.mark.parametrize("kind", PLACES)
def test_a_crash_at_every_step(any_broker, sink, monkeypatch, kind, start):
    crash_at_every_step(any_broker, start(kind, sink), monkeypatch)


@pytest.mark.parametrize("kind", PLACES)
def test_a_crash_at_every_step_by_the_classic_protocol(
    classic_broker, topic, monkeypatch, kind, start
):
    create(classic_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start(kind, options(classic_broker, topic))
    crash_at_every_step(classic_broker, query, monkeypatch)
    for api in (END_TXN, PRODUCE):
        lose_answers(monkeypatch, api, 2)
        query.run(query.finished + 2)
    check_all_is_settled(classic_broker, query, query.finished + 1)


def test_sink_continues_after_a_failure_with_transaction_protocol_v1(
    classic_broker, topic, monkeypatch, start
):
    create(classic_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("single", options(classic_broker, topic))
    query.run(0)
    with SingleTransactionSink(query.options, "query", query.connected()) as sink:
        crash_at(monkeypatch, "P1-before-end")
        with pytest.raises(Crash):
            write(sink, query, 1)
        write(sink, query, 1)
    check_all_is_settled(classic_broker, query, 2)


def write(sink, query, batch_id):
    batches = [rows(query.options.topic, batch_id, each) for each in range(PARTITIONS)]
    assert sink.write_batch(batch_id, batches, "", {("source", 0): batch_id + 1})


def test_a_crash_while_rolling_forward(any_broker, sink, monkeypatch, start):
    query = start("two-phase", sink)
    for place in ("C4-after", "C2-middle", "C2-middle", "C1"):
        restart_after_crash(monkeypatch, query, place, 0)
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


@pytest.mark.parametrize("idle_s", [60.0, 0.0], ids=["at-once", "idle"])
@pytest.mark.parametrize("kind", PLACES)
def test_of_two_drivers_one_is_fenced(any_broker, sink, monkeypatch, kind, idle_s, start):
    monkeypatch.setattr("barnabas.spark_connector.ledger.ownership.IDLE_S", idle_s)
    old, new = start(kind, sink), start(kind, sink)
    old.run(1)
    new.finished = 1
    new.run(2)
    old.finished = 1
    with pytest.raises(Fenced, match="another driver"):
        old.run(2)
    new.run(3)
    check_all_is_settled(any_broker, new, 4)


@pytest.mark.parametrize("idle_s", [60.0, 0.0], ids=["at-once", "idle"])
def test_a_driver_that_comes_too_late_leaves_nothing_open(
    any_broker, sink, monkeypatch, idle_s, start
):
    query, new = start("two-phase", sink), start("two-phase", sink)
    old = Decider(sink, "query", query.connected(), is_sole_recipient=True)
    assert old.recover() == -1
    new.run(1)
    messages = query.run_tasks(0)
    monkeypatch.setattr("barnabas.spark_connector.ledger.ownership.IDLE_S", idle_s)
    with pytest.raises(Fenced, match="another driver"):
        old.commit(0, messages, "ends of 0", {("source", 0): 1})
    check_all_is_settled(any_broker, new, 2)


@pytest.mark.parametrize("place", ["C3", "C4-before", "C4-after", "C5-middle"])
def test_another_driver_comes_in_the_middle_of_a_commit(
    any_broker, sink, monkeypatch, place, start
):
    old, new = start("two-phase", sink), start("two-phase", sink)
    first = Decider(sink, "query", old.connected())
    first.recover()
    messages = old.run_tasks(0)

    def overtake(here):
        if here == place:
            monkeypatch.undo()
            new.run(1)

    for module in ("sinks.two_phase", "ledger.roll_forward"):
        monkeypatch.setattr(f"barnabas.spark_connector.{module}.reach", overtake)
    try:
        first.commit(0, messages, "ends of 0", {("source", 0): 1})
    except (Fenced, TransactionLost):
        assert place in {"C3", "C4-before"}  # Not decided yet.
        first.abort(0, messages)
    check_all_is_settled(any_broker, new, 2)


def test_repeated_batch_is_skipped(any_broker, sink, start):
    query = start("data-source", sink)
    messages = query.run_tasks(0)
    decider = Decider(sink, None, query.connected())
    offsets = {("source", 0): 1}
    assert decider.commit(0, messages, "f", offsets)
    assert not decider.commit(0, messages, "f", offsets)
    assert not decider.commit(0, query.run_tasks(0), "f", offsets)
    decider.abort(0, messages)
    with pytest.raises(CheckpointMismatch, match="ends at other offsets"):
        decider.commit(0, query.run_tasks(0), "another", offsets)
    decider.abort(0, [None, None])
    check_all_is_settled(any_broker, query, 1)


def test_losing_and_zombie_tasks_are_invisible_and_block_no_reader(any_broker, sink, start):
    query = start("two-phase", sink)
    query.run(0)
    zombie = query.participant(1, 7)
    zombie.write([rows(sink.topic, 99, 0)])
    assert zombie.prepared().record_count
    late = query.participant(1, 8)
    late.write([rows(sink.topic, 98, 1)])
    query.run(1)
    assert open_transactions(sink) == []
    # Kafka's partitions hear later that it was aborted; what comes in between is aborted with it.
    until(lambda: unfinished(any_broker, f"spark.{sink.sink_id}"), [], "markers")
    zombie.write([rows(sink.topic, 97, 0)])
    with pytest.raises(SinkError):
        zombie.prepared()
    zombie.discard()
    assert late.prepared().record_count
    query.run(2)
    check_all_is_settled(any_broker, query, 3)


def test_an_aborted_batch_leaves_nothing(any_broker, sink, start):
    query = start("data-source", sink)
    messages = query.run_tasks(0)
    decider = Decider(sink, None, query.connected())
    decider.abort(0, [*messages[:1], None, *messages[2:]])
    # What no message names is swept where transactions can be pinned; else the next batch does it.
    assert len(open_transactions(sink)) == (0 if decider.pins else 1)
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


@pytest.mark.parametrize("kind", ["single", "two-phase"])
@pytest.mark.parametrize("api", [END_TXN, INIT_PRODUCER_ID, PRODUCE], ids=lambda api: api.name)
def test_lost_answers_change_nothing(any_broker, sink, monkeypatch, kind, api, start):
    query = start(kind, sink)
    query.run(0)
    if api is INIT_PRODUCER_ID:
        query.stop()
    left = lose_answers(monkeypatch, api, 2)
    query.run(3)
    assert left == [0]
    check_all_is_settled(any_broker, query, 4)


def test_every_transaction_was_aborted_after_the_decision_so_the_batch_is_run_again(
    any_broker, sink, monkeypatch, start
):
    query = start("two-phase", sink)
    query.run(0)
    restart_after_crash(monkeypatch, query, "C4-after", 1)
    abort_by_hand(query, slice(None))
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


def test_a_part_that_was_aborted_after_the_decision_is_a_persons_business(
    any_broker, sink, monkeypatch, topic, start
):
    query = start("two-phase", sink, str(uuid.uuid4()))
    restart_after_crash(monkeypatch, query, "C4-after", 0)
    abort_by_hand(query, slice(1))
    for of_another in ({}, {"acceptLostBatch": f"{uuid.uuid4()}:0"}, {"acceptLostBatch": "1"}):
        query.options = options(any_broker, topic, **of_another)
        with pytest.raises(BatchInDoubt, match=f"acceptLostBatch to {query.query_id}:0 to"):
            query.run(0)
    query.options = options(any_broker, topic, acceptLostBatch=f"{query.query_id}:0")
    query.run(1)
    seen = read(any_broker, topic, 1)
    kept = [value for value in expected(1) if value.startswith(b"0:1:")]
    assert seen == expected(2) - expected(1) + Counter(kept)


KAFKA_2_5 = {
    "Produce": 8,
    "Fetch": 11,
    "ListOffsets": 5,
    "Metadata": 9,
    "FindCoordinator": 3,
    "InitProducerId": 3,
    "AddPartitionsToTxn": 1,
    "AddOffsetsToTxn": 1,
    "EndTxn": 1,
    "TxnOffsetCommit": 3,
    "CreateTopics": 5,
    "DescribeConfigs": 2,
}
"""The newest versions in Apache Kafka 2.5 of the requests that the sinks send; it cannot list
transactions."""


@pytest.fixture
def as_kafka_2_5(monkeypatch):
    """Limit the client to the APIs and versions of Apache Kafka 2.5."""

    def introduce(self):
        real(self)
        names = {api.key: KAFKA_2_5[api.name] for api in registry.APIS if api.name in KAFKA_2_5}
        ranges = self.versions._ranges
        self.versions = AdvertisedVersions(
            {key: (ranges[key][0], min(ranges[key][1], last)) for key, last in names.items()}
        )
        self.features = {}

    real = Connection._introduce
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_introduce", introduce)
        yield patch


def test_a_crash_at_every_step_as_with_apache_kafka_2_5(
    any_broker, sink, monkeypatch, as_kafka_2_5, start
):
    query = start("single", sink)
    for batch_id, place in enumerate(PLACES["single"]):
        query.stop()
        restart_after_crash(monkeypatch, query, place, batch_id)
        query.run(batch_id)
    query.stop()
    query.kind = "two-phase"
    query.run(5)
    query.stop()
    query.run(6)
    old, new = query, start("single", sink)
    new.finished = 6
    new.run(7)
    with pytest.raises(Fenced):
        old.run(7)
    as_kafka_2_5.undo()
    # Open transactions of the fenced driver's tasks would end by their timeout: no client can list
    # them there.
    Decider(sink, "query", new.connected()).recover()
    check_all_is_settled(any_broker, new, 8)
