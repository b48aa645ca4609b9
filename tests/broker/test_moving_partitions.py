"""Partitions move between running brokers: what clients of both receive and find.

That no acknowledged record is lost at random: ``tests/cluster/test_at_random.py``. A session that
ends under requests: ``tests/cluster/test_in_flight.py``.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.errors import Corrupt
from barnabas.storage.log import time_lookup
from barnabas.testing import Broker, Cluster
from tests.broker.committed_reader import committed_values
from tests.broker.data_plane import (
    NOW_MS,
    Named,
    Wire,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
    values,
)
from tests.broker.handlers.test_group_offsets import Client
from tests.broker.held_markers import Markers
from tests.broker.metrics.in_cluster import scrape_kafka_names
from tests.broker.moves import (
    INTERNAL_PARTITIONS,
    Held,
    assign,
    is_served,
    key_at,
    lead,
    led_cluster,
    log_of,
    named,
    partition_id,
    seize,
    served,
    state,
    stored,
)
from tests.broker.raw_producer import RawProducer
from tests.requests import codes_of, commit_request, delete_records_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
GROUP, ID = key_at(0, "g"), key_at(0, "id")
NUMBERS = itertools.count()
COMMITTED = 1
RECORDS = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.fixture(scope="module")
def cluster(world) -> Iterator[Cluster]:
    with led_cluster({"data": [0]}, brokers=2) as cluster:
        yield cluster


@pytest.fixture
def data(cluster) -> Named:
    """A new topic; the first broker leads everything."""
    name = f"data-{next(NUMBERS)}"
    cluster.create_topic(name, 3)
    lead(cluster, {name: [0, 0, 0]})
    return named(cluster.brokers[0], name)


@pytest.fixture
def brokers(cluster, data):
    return cluster.brokers


@pytest.fixture
def wires(brokers):
    with Wire(brokers[0].address) as first, Wire(brokers[1].address) as second:
        yield first, second


def is_drained(broker: Broker, topic: str, index: int) -> bool:
    """Whether a broker waits for nothing but its commits to give a partition away."""
    return state(broker, topic, index) is State.DRAINING


# ------------------------------------------------------------------------------------------- data


def test_acknowledged_records_are_served_by_the_next_leader(cluster, brokers, data, wires):
    first, second = wires
    producer = {"producer_id": 1 << 62, "producer_epoch": 0}
    assert first.produce(data, batch(b"a", base_sequence=0, **producer)).error_code == 0
    assert first.produce(data, batch(b"x"), 1).error_code == 0
    cluster.move(data.name, 0, to=1)
    again = second.produce(data, batch(b"a", base_sequence=0, **producer))
    assert (again.error_code, again.base_offset) == (0, 0), "what was sent again is known (S4)"
    assert second.produce(data, batch(b"b", base_sequence=1, **producer)).base_offset == 1
    assert second.read(data) == [b"a", b"b"]
    assert second.list_offset(data.name, NOW_MS)[2] == 0
    refused = first.produce(data, batch(b"c"), version=10)
    assert refused.error_code == NOT_LEADER
    leader = refused.current_leader.leader_id, refused.current_leader.leader_epoch
    assert leader == (1, stored(cluster, data.name, 0).leader_epoch)
    assert first.list_offset(data.name, -1)[0] == NOT_LEADER
    assert first.read(data, 1) == [b"x"], "the others stay"
    assert state(brokers[0], data.name, 1) is State.SERVED
    assert partition_id(brokers[0], data.name, 0) not in brokers[0].server.logs.logs


def test_metadata_names_the_new_leader_at_both(cluster, brokers, data, wires):
    cluster.move(data.name, 2, to=1)
    for wire in wires:
        request = MetadataRequest([MetadataRequestTopic(name=data.name)])

        def shown(wire=wire, request=request):
            (topic,) = wire.ask(METADATA, request, 12).topics
            return [(each.leader_id, each.leader_epoch) for each in topic.partitions]

        expected = [
            (leader, stored(cluster, data.name, index).leader_epoch)
            for index, leader in enumerate((0, 0, 1))
        ]
        wait_until(lambda shown=shown, expected=expected: shown() == expected)


def test_each_broker_counts_what_it_leads(cluster, brokers, data, wires):
    first, second = wires
    assert first.produce(data, batch(b"a", b"b")).error_code == 0

    def counts():
        return [
            scrape_kafka_names(each)(f"kafka_server_replicamanager_{name}")
            for each in brokers
            for name in ("leadercount", "partitioncount")
        ]

    def records():
        return [scrape_kafka_names(each)(RECORDS) for each in brokers]

    led, _, led_by_second, _ = counts()
    assert counts() == [led, led, led_by_second, led_by_second]
    assert led >= 2 * INTERNAL_PARTITIONS + 3
    before = records()
    cluster.move(data.name, 0, to=1)
    assert counts() == [led - 1, led - 1, led_by_second + 1, led_by_second + 1]
    assert records() == before, "the sum never goes back, and what is loaded is no traffic"
    assert second.produce(data, batch(b"c")).error_code == 0
    assert records() == [before[0], before[1] + 1]


@pytest.mark.parametrize("is_planned", [True, False])
def test_waiting_fetch_is_sent_to_the_new_leader(cluster, brokers, data, wires, is_planned):
    first, _ = wires
    request = fetch_request(16, (data, (0, 0), (1, 0)), max_wait_ms=50_000)
    first.send(FETCH, request, 16)
    wait_until(lambda: brokers[0].call(lambda: len(brokers[0].server.fetch_waits)) == 2)
    if is_planned:
        cluster.move(data.name, 0, to=1)
    else:
        seize(cluster, data.name, 0, 1)
    moved, stays = first.receive().responses[0].partitions
    assert moved.error_code == NOT_LEADER
    # When the former leader has let go of it, no other broker leads it yet.
    assert moved.current_leader.leader_id == (0 if is_planned else 1)
    assert stays.error_code == 0


def test_fetch_session_follows_a_partition_that_leaves_and_returns(cluster, brokers, data, wires):
    first, _ = wires
    assert first.produce(data, batch(b"a")).error_code == 0
    opened = first.fetch((data, (0, 1), (1, 0)), session=(0, 0))
    session_id = opened.session_id
    assert session_id
    nothing_new = first.fetch(session=(session_id, 1))
    assert nothing_new.responses == []
    cluster.move(data.name, 0, to=1)
    (partition,) = first.fetch(session=(session_id, 2)).responses[0].partitions
    assert (partition.partition_index, partition.error_code) == (0, NOT_LEADER)
    cluster.move(data.name, 0, to=0)
    assert first.produce(data, batch(b"b")).base_offset == 1
    (partition,) = first.fetch(session=(session_id, 3)).responses[0].partitions
    assert (partition.error_code, values(partition.records)) == (0, [b"b"])


def test_batch_on_its_way_when_its_partition_is_released_is_acknowledged(
    cluster, brokers, data, wires
):
    first, second = wires
    cluster.hold_commits(0)
    first.send(PRODUCE, produce_request(9, data, (0, batch(b"a"))), 9)
    wait_until(lambda: log_of(brokers[0], data.name, 0).next_offset == 1)
    cluster.want(data.name, 0, 1)
    wait_until(lambda: is_drained(brokers[0], data.name, 0))
    with Wire(brokers[0].address) as other:
        assert other.produce(data, batch(b"late")).error_code == NOT_LEADER
        assert other.fetch_one(data, 0).error_code == 0, "it is still read here"
    assert cluster.leader(data.name, 0) == 0
    cluster.release_commits(0)
    (result,) = first.receive().responses[0].partition_responses
    assert (result.error_code, result.base_offset) == (0, 0)
    served(cluster, data.name, 0, 1)
    assert second.read(data) == [b"a"]


def test_refusal_closes_the_logs_beside_and_they_are_loaded_again(
    cluster, brokers, data, wires, monkeypatch
):
    """Another broker leads the partition by now, and this one learns it from the refusal."""
    first, second = wires
    for index in range(3):
        assert first.produce(data, batch(b"a"), index).error_code == 0
    kept = log_of(brokers[0], data.name, 2)
    looks = Held(monkeypatch, brokers[0].server._member._membership, "poll_once")
    wait_until(lambda: looks.calls)
    seize(cluster, data.name, 0, 1)
    request = produce_request(9, data, (0, batch(b"b")), (1, batch(b"b")))
    results = first.ask(PRODUCE, request, 9).responses[0].partition_responses
    assert [each.error_code for each in results] == [NOT_LEADER] * 2
    assert log_of(brokers[0], data.name, 0) is None
    served(cluster, data.name, 1, 0)
    assert first.read(data, 1) == [b"a"]
    assert first.produce(data, batch(b"c"), 1).base_offset == 1
    assert log_of(brokers[0], data.name, 2) is kept
    assert state(brokers[0], data.name, 2) is State.SERVED
    looks.release()
    assert second.read(data) == [b"a"]


def test_batch_on_its_way_when_the_view_names_another_leader_is_refused(
    cluster, brokers, data, wires
):
    """Whether it was in time only the store can say."""
    first, second = wires
    cluster.hold_commits(0)
    first.send(PRODUCE, produce_request(9, data, (0, batch(b"a")), (1, batch(b"a"))), 9)
    wait_until(lambda: log_of(brokers[0], data.name, 1).next_offset == 1)
    seize(cluster, data.name, 0, 1)
    wait_until(lambda: log_of(brokers[0], data.name, 0) is None)
    cluster.release_commits(0)
    results = first.receive().responses[0].partition_responses
    assert [each.error_code for each in results] == [NOT_LEADER] * 2
    served(cluster, data.name, 1, 0)
    assert second.read(data) == []


# ------------------------------------------------------------------------- requests that hold a log


@pytest.mark.parametrize("is_in_time", [False, True])
def test_deleted_records_on_their_way_when_the_partition_goes(
    cluster, brokers, data, wires, is_in_time
):
    first, second = wires
    for value in (b"a", b"b"):
        assert first.produce(data, batch(value)).error_code == 0
    cluster.hold_commits(0)
    first.send(DELETE_RECORDS, delete_records_request({(data.name, 0): 1}), 2)
    log = log_of(brokers[0], data.name, 0)
    wait_until(lambda: log.journaled_start_offset == 1)
    if is_in_time:
        cluster.want(data.name, 0, 1)
        wait_until(lambda: is_drained(brokers[0], data.name, 0))
    else:
        seize(cluster, data.name, 0, 1)
    cluster.release_commits(0)
    (result,) = first.receive().topics[0].partitions
    expected = (0, 1) if is_in_time else (NOT_LEADER, -1)
    assert (result.error_code, result.low_watermark) == expected
    served(cluster, data.name, 0, 1)
    assert second.list_offset(data.name, -2)[2] == int(is_in_time)


def test_producer_that_waits_for_its_transaction_is_sent_to_the_new_leader(monkeypatch):
    """The broker looks up the transaction and the leader when it appends the batch."""
    markers = Markers(monkeypatch)
    wait = {"barnabas.transaction.wait.ms": "600000"}
    with led_cluster({"data": [0, 0]}, brokers=2, **wait) as cluster:
        first, second = cluster.brokers
        topic = named(first, "data")
        with Wire(first.address) as wire:
            producer = RawProducer(wire, ID, 12)
            assert producer.send(topic, b"a", partition=1).error_code == 0
            markers.stop()
            ended = wire.ask(END_TXN, producer.end_request(commit=True), 5)
            assert ended.error_code == 0
            producer.epoch = ended.producer_epoch
            records = producer.batch(topic, b"b", sequence=0)
            wire.send(PRODUCE, producer.request(topic, (0, records)), 12)
            transactions = first.server.transactions
            wait_until(lambda: first.call(lambda: transactions.held_bytes))
            cluster.move("data", 0, to=1)
            markers.go_on()
            (result,) = wire.receive().responses[0].partition_responses
        assert (result.error_code, result.current_leader.leader_id) == (NOT_LEADER, 1)
        assert log_of(second, "data", 0).next_offset == 0


@pytest.mark.parametrize("is_damaged", [False, True])
def test_search_by_time_in_a_log_that_goes(cluster, brokers, data, wires, monkeypatch, is_damaged):
    """Neither the record that it finds nor an unreadable file is returned."""
    first, _ = wires
    assert first.produce(data, batch(b"a")).error_code == 0
    genuine = time_lookup._record_in

    def search(header, records, *more):
        if is_damaged:
            raise Corrupt("file", 0, "it was removed")
        return genuine(header, records, *more)

    monkeypatch.setattr(time_lookup, "_record_in", search)
    searches = Held(monkeypatch, time_lookup, "_record_in")
    first.send(LIST_OFFSETS, list_offsets_request(data.name, (0, NOW_MS)), 7)
    wait_until(lambda: searches.calls)
    cluster.move(data.name, 0, to=1)
    searches.release()
    (found,) = first.receive().topics[0].partitions
    returned = found.error_code, found.timestamp, found.offset, found.leader_epoch
    assert returned == (NOT_LEADER, -1, -1, -1)
    assert not brokers[0].call(lambda: brokers[0].server.scrubber._suspected)


# --------------------------------------------------------------------------- groups, transactions


@contextlib.contextmanager
def committed_group(brokers: Sequence[Broker]) -> Iterator[tuple[Client, Client]]:
    """A client of each broker; the first one's group has committed its first offset there."""
    for each in brokers:
        each.port = each.address[1]
    with Client(brokers[0]) as first, Client(brokers[1]) as second:
        assert first.commit(GROUP, {("data", 0): 5}) == {ErrorCode.NONE}
        yield first, second


@pytest.mark.parametrize("is_planned", [True, False])
def test_group_keeps_its_offsets_over_a_move(cluster, brokers, is_planned):
    with committed_group(brokers) as (first, second):
        assert second.commit(GROUP, {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        if is_planned:
            cluster.move(GROUP_OFFSETS, 0, to=1)
        else:
            seize(cluster, GROUP_OFFSETS, 0, 1)
        wait_until(lambda: is_served(brokers[1], GROUP_OFFSETS, GROUP))
        assert second.fetch(GROUP) == {("data", 0): 5}
        assert first.commit(GROUP, {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        assert second.commit(GROUP, {("data", 0): 7}) == {ErrorCode.NONE}
        cluster.move(GROUP_OFFSETS, 0, to=0)
        wait_until(lambda: is_served(brokers[0], GROUP_OFFSETS, GROUP))
        assert first.fetch(GROUP) == {("data", 0): 7}


def test_coordinator_that_reads_its_partition_is_loading(cluster, brokers, monkeypatch):
    """Some clients do not look for the coordinator again after NOT_COORDINATOR."""
    with committed_group(brokers) as (first, second):
        reads = Held(monkeypatch, StoredLogs, "reading")
        assign(cluster, GROUP_OFFSETS, 0, 1)
        wait_until(lambda: state(brokers[1], GROUP_OFFSETS, 0) is State.READING)
        wait_until(lambda: state(brokers[0], GROUP_OFFSETS, 0) is State.AWAY)
        assert second.commit(GROUP, {("data", 0): 6}) == {LOADING}
        assert first.commit(GROUP, {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        reads.release()
        wait_until(lambda: is_served(brokers[1], GROUP_OFFSETS, GROUP))
        assert second.fetch(GROUP) == {("data", 0): 5}


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("is_committed", [True, False])
def test_transaction_that_moves_while_it_is_open_ends_whole(
    cluster, brokers, data, wires, version, is_committed
):
    first, second = wires
    producer = RawProducer(first, ID, version)
    assert producer.add(data, 0, 1) == ErrorCode.NONE
    for partition in (0, 1):
        assert producer.send(data, b"a", partition=partition).error_code == 0
    for topic, index in ((data.name, 0), (data.name, 1), (TRANSACTION_STATE, 0)):
        cluster.move(topic, index, to=1)
    wait_until(lambda: is_served(brokers[1], TRANSACTION_STATE, ID))
    for partition in (0, 1):
        assert second.read(data, partition, isolation=COMMITTED) == []
    request = EndTxnRequest(ID, producer.producer_id, producer.epoch, is_committed)
    assert first.ask(END_TXN, request, 3).error_code == ErrorCode.NOT_COORDINATOR
    producer.wire = second
    assert producer.send(data, b"b").error_code == 0
    assert second.ask(END_TXN, request, 3 if version < 12 else 5).error_code == 0
    expected = {0: [b"a", b"b"], 1: [b"a"]} if is_committed else {0: [], 1: []}
    for partition, found in expected.items():
        assert committed_values(second, data, partition) == found


def test_commit_on_its_way_when_its_group_is_released_is_answered(cluster, brokers):
    with committed_group(brokers) as (first, second), Client(brokers[0]) as late:
        log = log_of(brokers[0], GROUP_OFFSETS, 0)
        cluster.hold_commits(0)
        first.send(OFFSET_COMMIT, commit_request(GROUP, {("data", 0): 6}), 8)
        wait_until(lambda: log.next_offset > log.high_watermark)
        cluster.want(GROUP_OFFSETS, 0, 1)
        wait_until(lambda: is_drained(brokers[0], GROUP_OFFSETS, 0))
        assert late.commit(GROUP, {("data", 0): 7}) == {ErrorCode.NOT_COORDINATOR}
        cluster.release_commits(0)
        assert codes_of(first.receive()) == [ErrorCode.NONE]
        served(cluster, GROUP_OFFSETS, 0, 1)
        assert second.fetch(GROUP) == {("data", 0): 6}


def test_timeout_that_is_due_while_its_coordinator_is_released_is_kept_by_the_next_one(
    cluster, brokers, data, wires
):
    first, second = wires
    producer = RawProducer(first, ID, 12)
    assert producer.send(data, b"a").error_code == 0
    cluster.move(data.name, 0, to=1)
    log = log_of(brokers[0], TRANSACTION_STATE, 0)
    with Wire(brokers[0].address) as other:
        cluster.hold_commits(0)
        other.send(INIT_PRODUCER_ID, InitProducerIdRequest(key_at(0, "beside"), 60_000), 4)
        wait_until(lambda: log.next_offset > log.high_watermark)
        cluster.want(TRANSACTION_STATE, 0, 1)
        wait_until(lambda: is_drained(brokers[0], TRANSACTION_STATE, 0))
        brokers[0].clock.advance(minutes=20)
        assert brokers[0].server.failure is None
        cluster.release_commits(0)
        assert other.receive().error_code == ErrorCode.NONE
    served(cluster, TRANSACTION_STATE, 0, 1)
    assert second.fetch_one(data, 0).last_stable_offset == 0, "it is open still"
    brokers[1].clock.advance(minutes=20)
    assert committed_values(second, data, 0) == []


# ----------------------------------------------------------------------------------- the catalogue


def test_topics_that_come_grow_and_go_elsewhere(cluster, brokers, wires):
    cluster.create_topic("new", 2)
    lead(cluster, {"new": [0, 1]})
    new = named(brokers[0], "new")
    for index, wire in enumerate(wires):
        assert wire.produce(new, batch(b"a"), index).error_code == 0
        assert wire.produce(new, batch(b"a"), 1 - index).error_code == NOT_LEADER
    catalogue = brokers[0].server.catalogue
    brokers[0]._do(catalogue.create_partitions("new", 3))
    cluster.wait_until_served()
    lead(cluster, {"new": [0, 1, 1]})
    assert wires[1].produce(new, batch(b"c"), 2).error_code == 0
    ids = {partition_id(brokers[0], "new", index) for index in range(3)}
    brokers[0]._do(catalogue.delete_topic(new.id))
    for broker in brokers:
        wait_until(lambda broker=broker: "new" not in broker.server.catalogue.topics)
        assert not ids & {*broker.server.logs.logs}


def test_topic_is_not_unknown_while_it_is_loaded(cluster, brokers, data, wires, monkeypatch):
    """A client that hears UNKNOWN_TOPIC takes the topic for deleted (KAFKA-20734)."""
    reads = Held(monkeypatch, StoredLogs, "reading")
    assign(cluster, data.name, 0, 1)
    wait_until(lambda: state(brokers[1], data.name, 0) is State.READING)
    _, second = wires
    assert second.produce(data, batch(b"v")).error_code == NOT_LEADER
    assert second.list_offset(data.name, -1)[0] == NOT_LEADER
    assert second.fetch_one(data, 0).error_code == NOT_LEADER
    reads.release()
    served(cluster, data.name, 0, 1)
    assert second.produce(data, batch(b"v")).error_code == 0
