"""The cores of the Spark sinks, without Spark, against Barnabas and Apache Kafka 4.3.0.

A crash is simulated at every step, by ending the driver there and starting another one.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from protocol.client import AdvertisedVersions
from protocol.messages import registry
from protocol.messages.end_txn import END_TXN
from protocol.messages.init_producer_id import INIT_PRODUCER_ID
from protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from protocol.messages.produce import PRODUCE
from spark_connector.cluster import connected
from spark_connector.connection import Connection, Disconnected
from spark_connector.errors import (
    BatchInDoubt,
    BrokerUnreachable,
    CheckpointMismatch,
    Fenced,
    InDoubt,
    SinkError,
    TransactionLost,
    WrongOption,
)
from spark_connector.ledger import Ledger
from spark_connector.producer import TransactionalProducer
from spark_connector.requests import Identity, end_all, take_over
from spark_connector.single import SingleTransactionSink
from spark_connector.sweep import describe
from spark_connector.two_phase import Decider
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create, wait_until
from tests.interop.spark_sink import (
    PARTITIONS,
    PLACES,
    Crash,
    Query,
    check_all_is_settled,
    crash_at,
    ends,
    expected,
    open_transactions,
    options,
    read,
    restart_after_crash,
    rows,
)

pytestmark = pytest.mark.timeout(280)

PINNING = {"transaction.two.phase.commit.enable": "true"}
CLASSIC = {"barnabas.transaction.version": "1"}
BROKERS = {"barnabas": (BarnabasProcess, PINNING), "kafka": (ApacheKafka, {})}


@pytest.fixture(scope="module", params=BROKERS)
def any_broker(request, tmp_path_factory):
    broker_class, settings = BROKERS[request.param]
    with broker_class(tmp_path_factory.mktemp(request.param), **settings) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture(scope="module")
def classic_broker(tmp_path_factory):
    """No KIP-890, no KIP-939."""
    with BarnabasProcess(tmp_path_factory.mktemp("classic"), **CLASSIC) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture
def killed_broker(tmp_path):
    with BarnabasProcess(tmp_path / "broker", **PINNING) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture
def sink(any_broker, topic):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    return options(any_broker, topic)


@pytest.fixture
def start():
    """Make queries; what is left of them at the end of a test is stopped."""
    made = []

    def start_one(*arguments):
        made.append(Query(*arguments))
        return made[-1]

    yield start_one
    for query in made:
        query.stop()


def lose_answers(monkeypatch, api, count):
    """Break the connection after the broker has done what was asked of it."""
    left = [count]
    receive = Connection.receive

    def lossy(self, asked):
        answer = receive(self, asked)
        if asked is api and left[0]:
            left[0] -= 1
            self.close()
            raise Disconnected("lost on purpose")
        return answer

    monkeypatch.setattr(Connection, "receive", lossy)
    return left


# ------------------------------------------------------------------------------ on every broker


def crash_at_every_step(broker, query, monkeypatch):
    batches = 0
    for place in PLACES[query.kind]:
        batches += 2
        query.run(batches - 2)
        if place in {"C1", "C2-middle", "P1-fenced"}:
            query.stop()  # These are passed at a start only.
        restart_after_crash(monkeypatch, query, place, batches - 1)
        query.run(batches - 1)
    check_all_is_settled(broker, query, batches)


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


def test_a_sink_goes_on_after_a_failure_by_the_classic_protocol(
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
    monkeypatch.setattr("spark_connector.ownership.IDLE_S", idle_s)
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
    old = Decider(sink, "query", query.connected(), hears_alone=True)
    assert old.recover() == -1
    new.run(1)
    messages = query.run_tasks(0)
    monkeypatch.setattr("spark_connector.ownership.IDLE_S", idle_s)
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

    for module in ("two_phase", "roll_forward"):
        monkeypatch.setattr(f"spark_connector.{module}.reach", overtake)
    try:
        first.commit(0, messages, "ends of 0", {("source", 0): 1})
    except (Fenced, TransactionLost):
        assert place in {"C3", "C4-before"}  # Not decided yet.
        first.abort(0, messages)
    check_all_is_settled(any_broker, new, 2)


def test_a_batch_that_comes_again_is_skipped(any_broker, sink, start):
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


def test_losers_and_zombies_are_not_seen_and_hold_nobody_up(any_broker, sink, start):
    query = start("two-phase", sink)
    query.run(0)
    zombie = query.participant(1, 7)
    zombie.write([rows(sink.topic, 99, 0)])
    assert zombie.prepared().record_count
    late = query.participant(1, 8)
    late.write([rows(sink.topic, 98, 1)])
    query.run(1)
    assert open_transactions(sink) == []
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
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C4-after", 0)
    abort_by_hand(query, slice(1))
    with pytest.raises(BatchInDoubt, match="acceptLostBatch to 0"):
        query.run(0)
    query.options = options(any_broker, topic, acceptLostBatch="0")
    query.run(1)
    seen = read(any_broker, topic, 1)
    kept = [value for value in expected(1) if value.startswith(b"0:1:")]
    assert seen == expected(2) - expected(1) + Counter(kept)


def abort_by_hand(query, chosen):
    """Do what an operator may do, or a timeout where transactions are not pinned."""
    with query.connected() as cluster:
        entry = Ledger(cluster, query.options.ledger_topic).read(query.options.sink_id, "query")
        identities = describe(cluster, [each.transactional_id for each in entry.transactions])
        assert len(identities) == PARTITIONS
        picked = sorted(identities)[chosen]
        end_all(cluster, {key: Identity(*identities[key]) for key in picked}, commit=False)


def test_an_abort_that_does_not_know_its_query_spares_what_is_decided(
    any_broker, sink, monkeypatch, start
):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C5-middle", 0)
    Decider(sink, None, query.connected()).abort(1, [None, None])
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_an_overtaken_driver_spares_what_the_new_one_has_open(any_broker, sink, monkeypatch, start):
    old, new = start("two-phase", sink), start("two-phase", sink)
    first, second = (Decider(sink, "query", each.connected()) for each in (old, new))
    first.recover()
    messages = old.run_tasks(0)
    later = []

    def overtake(here):
        if here == "C5-middle":
            monkeypatch.undo()
            second.recover()
            later.extend(new.run_tasks(1))

    monkeypatch.setattr("spark_connector.roll_forward.reach", overtake)
    assert first.commit(0, messages, "ends of 0", {("source", 0): 1})
    assert second.commit(1, later, "ends of 1", {("source", 0): 2})
    check_all_is_settled(any_broker, new, 2)


def test_a_sweep_that_is_overtaken_spares_what_was_decided_since(
    any_broker, sink, monkeypatch, start
):
    query = start("data-source", sink)
    messages = query.run_tasks(0)

    def overtake(cluster, transactional_ids):
        monkeypatch.undo()
        crash_at(monkeypatch, "C5-middle")
        with pytest.raises(Crash):
            Decider(sink, None, query.connected()).commit(0, messages, "ends of 0", {})
        return describe(cluster, transactional_ids)

    monkeypatch.setattr("spark_connector.sweep.describe", overtake)
    assert Decider(sink, "query", query.connected()).recover() == -1
    monkeypatch.undo()
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


def test_a_task_that_fails_holds_nobody_up(any_broker, sink, start):
    task = start("two-phase", sink).participant(0, 0)
    task.write([rows(sink.topic, 0, 0)])
    assert task.prepared().record_count
    assert len(open_transactions(sink)) == 1
    task.discard()
    assert open_transactions(sink) == []


def test_a_batch_that_fails_ahead_of_its_decision_holds_nobody_up(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    sink = options(any_broker, topic, transactionTimeoutMs="600000")  # longer than we wait
    query = start("single", sink)
    query.run(0)
    _, before = ends(sink, sink.topic, 0)

    def failing():
        # The second one lets the first go: a request has one batch of a partition.
        yield from [rows(sink.topic, 1, 0)] * 2
        raise ValueError("the rows end here")

    failed = SingleTransactionSink(sink, "query", query.connected())
    with pytest.raises(ValueError, match="end here"):
        failed.write_batch(1, failing(), "ends of 1", {})

    def is_settled():
        stable, high = ends(sink, sink.topic, 0)
        return stable == high > before

    wait_until(is_settled, "readers wait for what has failed")
    query.stop()
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


def lose_decision(monkeypatch, *, arrives):
    """Let the broker decide, or not even be asked, and nobody know."""

    def unanswered(*asked, **how):
        if arrives:
            end_all(*asked, **how)
        raise BrokerUnreachable("on purpose")

    monkeypatch.setattr("spark_connector.producer.end_all", unanswered)


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "arrived"])
@pytest.mark.parametrize("kind", ["single", "two-phase"])
def test_a_decision_without_an_answer_is_not_taken_for_one(
    any_broker, sink, monkeypatch, kind, arrives, start
):
    query = start(kind, sink)
    query.run(0)
    with monkeypatch.context() as patch:
        lose_decision(patch, arrives=arrives)
        with pytest.raises(InDoubt, match="nothing is lost or doubled"):
            query.run(1)
    query.run(1)
    check_all_is_settled(any_broker, query, 2)


@pytest.mark.parametrize("kind", ["single", "two-phase"])
def test_a_decision_without_an_answer_is_not_made_twice(any_broker, sink, monkeypatch, kind, start):
    query = start(kind, sink)
    if kind == "single":
        driver, method = SingleTransactionSink(sink, "query", query.connected()), "write_batch"
        batch = [rows(sink.topic, 0, partition) for partition in range(PARTITIONS)]
    else:
        driver, method = Decider(sink, "query", query.connected()), "commit"
        batch = query.run_tasks(0)
    decision = (0, batch, "ends of 0", {("source", 0): 1})
    with monkeypatch.context() as patch:
        lose_decision(patch, arrives=True)
        with pytest.raises(InDoubt):
            getattr(driver, method)(*decision)
    assert not getattr(driver, method)(*decision)
    check_all_is_settled(any_broker, query, 1)


def test_a_batch_that_is_lost_in_part_ahead_of_its_decision_holds_nobody_up(
    any_broker, sink, start
):
    query = start("two-phase", sink)
    decider = Decider(sink, "query", query.connected())
    decider.recover()
    messages = query.run_tasks(0)
    with query.connected() as cluster:
        end_all(cluster, {messages[0].transactional_id: messages[0].identity}, commit=False)
    with pytest.raises(TransactionLost, match="1 of its 2"):
        decider.commit(0, messages, "ends of 0", {("source", 0): 1})
    assert open_transactions(sink) == []
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_whoever_was_fenced_spares_what_the_new_one_has_open(any_broker, sink, start):
    old, new = start("two-phase", sink), start("two-phase", sink)
    first, second = (Decider(sink, "query", each.connected()) for each in (old, new))
    first.recover()
    second.recover()
    messages = new.run_tasks(0)
    for _ in range(2):
        with pytest.raises(Fenced):
            first.commit(0, [], "ends of 0", {})
    first.abort(0, [])
    assert second.commit(0, messages, "ends of 0", {("source", 0): 1})
    check_all_is_settled(any_broker, new, 1)


def test_whoever_was_fenced_spares_what_another_was_told_as_well(
    any_broker, sink, monkeypatch, start
):
    query = start("data-source", sink)
    decision = (0, query.run_tasks(0), "ends of 0", {("source", 0): 1})
    first, second = (Decider(sink, None, query.connected()) for _ in range(2))

    def overtake(here):
        if here == "C3":
            monkeypatch.undo()
            crash_at(monkeypatch, "C5-middle")
            with pytest.raises(Crash):
                second.commit(*decision)

    monkeypatch.setattr("spark_connector.two_phase.reach", overtake)
    with pytest.raises(Fenced):
        first.commit(*decision)
    query.run(0)
    check_all_is_settled(any_broker, query, 1)


def test_what_is_decided_just_ahead_of_the_fence_is_known(any_broker, sink, monkeypatch, start):
    old, new = start("single", sink), start("single", sink)
    old.run(0)
    new.finished = 0
    begin = TransactionalProducer.begin

    def overtaken(producer):
        monkeypatch.undo()
        old.run(1)
        return begin(producer)

    monkeypatch.setattr(TransactionalProducer, "begin", overtaken)
    new.run(1)
    check_all_is_settled(any_broker, new, 2)


def test_a_decided_batch_that_ends_elsewhere_is_refused(any_broker, sink, start):
    query = start("single", sink)
    query.run(0)
    again = [rows(sink.topic, 0, 0)]
    with SingleTransactionSink(sink, "query", query.connected()) as driver:
        with pytest.raises(CheckpointMismatch, match="ends at other offsets"):
            driver.write_batch(0, again, "another")
        assert not driver.write_batch(0, again, "ends of 0")
    with Decider(sink, "query", query.connected()) as decider:
        with pytest.raises(CheckpointMismatch, match="ends at other offsets"):
            decider.is_decided(0, "another")
        assert decider.is_decided(0, "ends of 0")
    check_all_is_settled(any_broker, query, 1)


def test_another_query_is_refused_and_what_was_decided_stays(
    any_broker, sink, monkeypatch, topic, start
):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C4-after", 0)
    other = start("single", sink, "another checkpoint")
    with pytest.raises(CheckpointMismatch, match="newQuery"):
        other.run(0)
    with pytest.raises(CheckpointMismatch, match="newQuery"):
        start("data-source", sink, "yet another checkpoint").run(0)
    check_all_is_settled(any_broker, query, 1)
    other.options = options(any_broker, topic, newQuery="true")
    other.run(0)
    assert read(any_broker, topic, 2) == expected(1) + expected(1)


def test_another_query_does_not_end_the_one_that_runs(any_broker, sink, start):
    query = start("two-phase", sink)
    query.run(0)
    for kind in PLACES:
        with pytest.raises(CheckpointMismatch, match="newQuery"):
            start(kind, sink, f"another checkpoint, {kind}").run(0)
    query.run(2)
    check_all_is_settled(any_broker, query, 3)


def test_one_sink_goes_on_where_the_other_stopped(any_broker, sink, monkeypatch, start):
    query = start("two-phase", sink)
    restart_after_crash(monkeypatch, query, "C4-after", 2)
    query.kind = "single"
    restart_after_crash(monkeypatch, query, "P1-after-end", 4)
    query.kind = "data-source"
    query.run(5)
    check_all_is_settled(any_broker, query, 6)


def test_whether_transactions_can_be_pinned_is_known(any_broker, sink, start):
    with Decider(sink, "query", start("two-phase", sink).connected()) as decider:
        decider.recover()
        assert decider.pins == (any_broker.overrides == PINNING)


def test_a_ledger_that_forgets_is_refused(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=1)
    chosen = options(any_broker, topic, ledgerTopic=topic)
    with pytest.raises(WrongOption, match=r"cleanup\.policy=delete"):
        start("single", chosen).run(0)


def test_a_timeout_that_is_too_long_is_refused(any_broker, topic, start):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    chosen = options(any_broker, topic, transactionTimeoutMs="900001")
    with pytest.raises(WrongOption, match=r"transaction\.max\.timeout\.ms"):
        start("single", chosen).run(0)


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
"""What Apache Kafka 2.5 speaks of what the sinks send; transactions cannot be listed there."""


@pytest.fixture
def as_kafka_2_5(monkeypatch):
    """Let the client see no more of a broker than Apache Kafka 2.5 has."""

    def introduce(self):
        real(self)
        names = {api.key: KAFKA_2_5[api.name] for api in registry.APIS if api.name in KAFKA_2_5}
        ranges = self.versions._ranges
        self.versions = AdvertisedVersions(
            {key: (ranges[key][0], min(ranges[key][1], last)) for key, last in names.items()}
        )
        self.transaction_version = 0

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
    # What the fenced driver's tasks left over would end by its timeout: nobody can list it there.
    Decider(sink, "query", new.connected()).recover()
    check_all_is_settled(any_broker, new, 8)


# ------------------------------------------------------------------------- with a broker of its own


def test_a_decided_batch_outlives_a_broker_that_is_away_for_longer_than_the_timeout(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    timeout_ms = 2000
    query = start("two-phase", options(killed_broker, topic, transactionTimeoutMs=str(timeout_ms)))
    query.run(0)
    # A busy machine may need longer than that for the tasks: then the batch is only run again.
    for _ in range(20):
        try:
            restart_after_crash(monkeypatch, query, "C4-after", 1)
            break
        except (TransactionLost, Fenced):
            continue
    undecided = query.participant(2, 9)
    undecided.write([rows(topic, 2, 0)])
    not_pinned = undecided.prepared().transactional_id
    killed_broker.kill()
    time.sleep(timeout_ms / 1000 * 1.5)
    killed_broker.restart()
    wait_until(lambda: not_pinned not in open_transactions(query.options), "timed out")
    assert len(open_transactions(query.options)) == PARTITIONS
    query.run(1)
    assert read(killed_broker, topic, 2) == expected(2)
    check_all_is_settled(killed_broker, query, 2)


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("single", ["P1-middle", "P1-before-end"]),
        ("two-phase", ["W1-middle", "C1", "C3", "C4-after"]),
    ],
    ids=["single", "two-phase"],
)
def test_a_broker_that_is_killed_in_the_middle_of_a_batch(
    killed_broker, topic, monkeypatch, kind, places, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start(kind, options(killed_broker, topic))
    for batch_id, place in enumerate(places):

        def kill(here, place=place):
            if here == place:
                monkeypatch.undo()
                killed_broker.kill()
                killed_broker.restart()

        if place in {"C1", "C2-middle", "P1-fenced"}:
            query.stop()
        for module in ("ownership", "roll_forward", "single", "two_phase"):
            monkeypatch.setattr(f"spark_connector.{module}.reach", kill)
        query.run(batch_id)
    check_all_is_settled(killed_broker, query, len(places))


def test_leftovers_of_a_crash_ahead_of_the_decision_are_swept_at_the_start(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C3", 0)
    assert len(open_transactions(query.options)) == PARTITIONS
    decider = Decider(query.options, "query", query.connected())
    assert decider.pins
    assert decider.recover() == -1
    assert open_transactions(query.options) == []
    crash_at(monkeypatch, "C1")
    with pytest.raises(Crash):
        decider.recover()
    monkeypatch.undo()
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)


def test_a_request_to_pin_that_arrives_late_loses_nothing(killed_broker, topic, monkeypatch, start):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C4-after", 0)
    with query.connected() as cluster:
        entry = Ledger(cluster, query.options.ledger_topic).read(query.options.sink_id, "query")
        take_over(cluster, [entry.transactions[1].transactional_id], 60_000)
    query.run(1)
    check_all_is_settled(killed_broker, query, 2)


def test_a_request_to_pin_that_arrives_after_the_commit_repeats_nothing(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C5-after", 0)
    with query.connected() as cluster:
        entry = Ledger(cluster, query.options.ledger_topic).read(query.options.sink_id, "query")
        take_over(cluster, [each.transactional_id for each in entry.transactions], 60_000)
    query.run(1)
    check_all_is_settled(killed_broker, query, 2)


@pytest.mark.parametrize(
    ("before", "after"), [(CLASSIC, PINNING), (PINNING, CLASSIC)], ids=["upgrade", "downgrade"]
)
def test_a_batch_is_not_repeated_when_the_transaction_version_changes(
    tmp_path, topic, monkeypatch, start, before, after
):
    with BarnabasProcess(tmp_path, **before) as broker:
        create(broker.bootstrap_servers, "source", partitions=1)
        create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
        query = start("two-phase", options(broker, topic))
        restart_after_crash(monkeypatch, query, "C5-after", 0)
        restart_with(broker, **after)
        query.run(1)
        check_all_is_settled(broker, query, 2)


def test_the_single_sink_sweeps_what_the_two_phase_sink_has_left(
    killed_broker, topic, monkeypatch, start
):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("two-phase", options(killed_broker, topic))
    restart_after_crash(monkeypatch, query, "C3", 0)
    query.kind = "single"
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)


FORGETFUL = {
    "barnabas.transactional.id.expiration.prefixes": "spark.:1",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
}


@pytest.mark.parametrize("kind", ["single", "data-source"])
def test_a_driver_goes_on_when_the_broker_has_forgotten_its_id(
    killed_broker, topic, monkeypatch, start, kind
):
    monkeypatch.setattr("spark_connector.ownership.IDLE_S", 0.0)
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start(kind, options(killed_broker, topic))
    query.run(0)
    restart_with(killed_broker, **PINNING, **FORGETFUL)
    wait_until(lambda: not transactional_ids(killed_broker), "the ids are forgotten")
    restart_with(killed_broker, **PINNING)
    query.run(1)
    check_all_is_settled(killed_broker, query, 2)


def restart_with(broker, **overrides):
    broker.kill()
    broker.overrides = overrides
    broker.restart()


def transactional_ids(broker):
    with connected(options(broker, "any")) as cluster:
        connection = cluster.any_node()
        return connection.ask(LIST_TRANSACTIONS, ListTransactionsRequest()).transaction_states


def test_transactions_that_time_out_are_never_decided(killed_broker, topic, start):
    create(killed_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    query = start("data-source", options(killed_broker, topic, transactionTimeoutMs="1000"))
    messages = query.run_tasks(0)
    wait_until(lambda: not open_transactions(query.options), "timed out")
    decider = Decider(query.options, None, query.connected())
    with pytest.raises(TransactionLost, match="transactionTimeoutMs"):
        decider.commit(0, messages)
    decider.abort(0, messages)
    query.options = options(killed_broker, topic)
    query.run(0)
    check_all_is_settled(killed_broker, query, 1)
