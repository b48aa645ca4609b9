"""Partitions move from one running broker to another: what clients of both are told, and find."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.topics.leadership import State
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage import time_lookup
from barnabas.storage.errors import Corrupt
from barnabas.storage.runtime.threads import new_event
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
from tests.broker.moving import MovingBroker, moving_pair
from tests.broker.raw_producer import RawProducer
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
DATA = Named("data", bytes([1] * 16))
TOPICS = {DATA.name: 3, "__consumer_offsets": 2, "__transaction_state": 2}
COMMITTED = 1
RECORDS = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.fixture
def cluster():
    """The first broker leads everything."""
    with moving_pair(TOPICS) as cluster:
        cluster.give(cluster.brokers[0], *(each for ids in cluster.ids.values() for each in ids))
        yield cluster


@pytest.fixture
def brokers(cluster):
    return cluster.brokers


@pytest.fixture
def wires(brokers):
    with Wire(brokers[0].address) as first, Wire(brokers[1].address) as second:
        yield first, second


def id_of(cluster, key, topic):
    """The partition that a group or a transactional id belongs to."""
    ids = cluster.ids[topic]
    return ids[java_hash(key) % len(ids)]


# ------------------------------------------------------------------------------------------- data


def test_what_one_broker_has_acknowledged_the_next_one_serves(cluster, brokers, wires):
    (moved, stays, _), (first, second) = cluster.ids["data"], wires
    producer = {"producer_id": 1 << 62, "producer_epoch": 0}
    assert first.produce(DATA, batch(b"a", base_sequence=0, **producer)).error_code == 0
    assert first.produce(DATA, batch(b"x"), 1).error_code == 0
    cluster.move(brokers[1], moved)
    again = second.produce(DATA, batch(b"a", base_sequence=0, **producer))
    assert (again.error_code, again.base_offset) == (0, 0), "what was sent again is known (S4)"
    assert second.produce(DATA, batch(b"b", base_sequence=1, **producer)).base_offset == 1
    assert second.read(DATA) == [b"a", b"b"]
    assert second.list_offset("data", NOW_MS)[2] == 0
    refused = first.produce(DATA, batch(b"c"), version=10)
    assert refused.error_code == NOT_LEADER
    told = refused.current_leader.leader_id, refused.current_leader.leader_epoch
    assert told == (2, cluster.store.epoch_of(moved))
    assert first.list_offset("data", -1)[0] == NOT_LEADER
    assert first.read(DATA, 1) == [b"x"], "the others stay"
    assert brokers[0].state(stays) is State.SERVED
    assert moved not in brokers[0].server.logs.logs


def test_metadata_names_the_new_leader_at_both(cluster, brokers, wires):
    cluster.move(brokers[1], cluster.ids["data"][2])
    for wire in wires:
        request = MetadataRequest([MetadataRequestTopic(name="data")])
        (topic,) = wire.ask(METADATA, request, 12).topics
        assert [each.leader_id for each in topic.partitions] == [1, 1, 2]
        assert [each.leader_epoch for each in topic.partitions] == [0, 0, 1]


def test_each_broker_counts_what_it_leads(cluster, brokers, wires):
    first, second = wires
    assert first.produce(DATA, batch(b"a", b"b")).error_code == 0
    everything = sum(TOPICS.values())

    def counts():
        return [
            scrape_kafka_names(each)(f"kafka_server_replicamanager_{name}")
            for each in brokers
            for name in ("leadercount", "partitioncount")
        ]

    def records():
        return [scrape_kafka_names(each)(RECORDS) for each in brokers]

    assert counts() == [everything, everything, 0, 0]
    before = records()
    cluster.move(brokers[1], cluster.ids["data"][0])
    assert counts() == [everything - 1, everything - 1, 1, 1]
    assert records() == before, "the sum never goes back, and what is loaded is no traffic"
    assert second.produce(DATA, batch(b"c")).error_code == 0
    assert records() == [before[0], before[1] + 1]


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_fetch_that_waits_is_sent_to_the_new_leader(cluster, brokers, wires, is_planned):
    first, _ = wires
    request = fetch_request(16, (DATA, (0, 0), (1, 0)), max_wait_ms=2_000_000)
    first.send(FETCH, request, 16)
    wait_until(lambda: brokers[0].call(lambda: len(brokers[0].server.fetch_waits)) == 2)
    (cluster.move if is_planned else cluster.give)(brokers[1], cluster.ids["data"][0])
    moved, stays = first.receive().responses[0].partitions
    # When the former leader has let go of it nobody else leads it yet.
    named = 1 if is_planned else 2
    assert (moved.error_code, moved.current_leader.leader_id) == (NOT_LEADER, named)
    assert stays.error_code == 0


def test_a_session_of_fetches_hears_that_a_partition_has_gone_and_come_back(
    cluster, brokers, wires
):
    first, _ = wires
    assert first.produce(DATA, batch(b"a")).error_code == 0
    opened = first.fetch((DATA, (0, 1), (1, 0)), session=(0, 0))
    session_id = opened.session_id
    assert session_id
    nothing_new = first.fetch(session=(session_id, 1))
    assert nothing_new.responses == []
    cluster.move(brokers[1], cluster.ids["data"][0])
    (partition,) = first.fetch(session=(session_id, 2)).responses[0].partitions
    assert (partition.partition_index, partition.error_code) == (0, NOT_LEADER)
    cluster.move(brokers[0], cluster.ids["data"][0])
    assert first.produce(DATA, batch(b"b")).base_offset == 1
    (partition,) = first.fetch(session=(session_id, 3)).responses[0].partitions
    assert (partition.error_code, values(partition.records)) == (0, [b"b"])


def test_a_batch_on_its_way_when_its_partition_is_released_is_acknowledged(cluster, brokers, wires):
    (moved, *_), (first, second) = cluster.ids["data"], wires
    brokers[0].hold()
    first.send(PRODUCE, produce_request(9, DATA, (0, batch(b"a"))), 9)
    wait_until(lambda: brokers[0].log("data", 0).next_offset == 1)
    released = []
    leadership = brokers[0].server.leadership
    brokers[0].call(lambda: leadership.release(moved, lambda: released.append(moved)))
    assert brokers[0].state(moved) is State.DRAINING
    with Wire(brokers[0].address) as other:
        assert other.produce(DATA, batch(b"late")).error_code == NOT_LEADER
        assert other.fetch_one(DATA, 0).error_code == 0, "it is still read here"
    assert released == []
    brokers[0].hold(held=False)
    (result,) = first.receive().responses[0].partition_responses
    assert (result.error_code, result.base_offset) == (0, 0)
    wait_until(lambda: released == [moved])
    cluster.give(brokers[1], moved)
    assert second.read(DATA) == [b"a"]


def test_who_is_refused_is_told_so_and_what_was_beside_it_is_loaded_again(cluster, brokers, wires):
    """Another broker leads the partition by now, and this one learns it from the refusal."""
    (moved, beside, untouched), (first, second) = cluster.ids["data"], wires
    for index in range(3):
        assert first.produce(DATA, batch(b"a"), index).error_code == 0
    kept = brokers[0].log("data", 2)
    cluster.assign(brokers[1], moved)
    request = produce_request(9, DATA, (0, batch(b"b")), (1, batch(b"b")))
    results = first.ask(PRODUCE, request, 9).responses[0].partition_responses
    assert [each.error_code for each in results] == [NOT_LEADER] * 2
    assert brokers[0].log("data", 0) is None
    cluster.served(brokers[0], beside)
    assert first.read(DATA, 1) == [b"a"]
    assert first.produce(DATA, batch(b"c"), 1).base_offset == 1
    assert brokers[0].log("data", 2) is kept
    assert brokers[0].state(untouched) is State.SERVED
    cluster.tell()
    cluster.served(brokers[1], moved)
    assert second.read(DATA) == [b"a"]


def test_a_batch_that_was_on_its_way_when_the_view_named_another_leader(cluster, brokers, wires):
    """Whether it was in time only the store can say."""
    (moved, *_), (first, second) = cluster.ids["data"], wires
    brokers[0].hold()
    first.send(PRODUCE, produce_request(9, DATA, (0, batch(b"a")), (1, batch(b"a"))), 9)
    wait_until(lambda: brokers[0].log("data", 1).next_offset == 1)
    cluster.give(brokers[1], moved)
    assert brokers[0].log("data", 0) is None
    brokers[0].hold(held=False)
    results = first.receive().responses[0].partition_responses
    assert [each.error_code for each in results] == [NOT_LEADER] * 2
    cluster.served(brokers[0], cluster.ids["data"][1])
    assert second.read(DATA) == []


def test_a_session_that_is_lost_leads_nothing(cluster, brokers, wires):
    first, second = wires
    for index in range(3):
        assert first.produce(DATA, batch(b"a"), index).error_code == 0
    cluster.store.index.fence(brokers[0].runner.session)
    assert first.produce(DATA, batch(b"b")).error_code == NOT_LEADER
    for index, partition_id in enumerate(cluster.ids["data"]):
        assert brokers[0].log("data", index) is None
        assert brokers[0].state(partition_id) is State.AWAY
        assert first.produce(DATA, batch(b"b"), index).error_code == NOT_LEADER
    assert brokers[0].server.logs.logs == {}
    cluster.give(brokers[0], *cluster.ids["data"][:2])
    cluster.give(brokers[1], cluster.ids["data"][2])
    for wire, index in zip((first, first, second), range(3), strict=True):
        assert wire.read(DATA, index) == [b"a"]


# ------------------------------------------------------------------- who holds a log and is waiting


def test_deleted_records_on_their_way_when_the_partition_goes(cluster, brokers, wires):
    (moved, *_), (first, second) = cluster.ids["data"], wires
    assert first.produce(DATA, batch(b"a")).error_code == 0
    assert first.produce(DATA, batch(b"b")).error_code == 0
    request = DeleteRecordsRequest([DeleteRecordsTopic("data", [DeleteRecordsPartition(0, 1)])])
    for is_in_time in (False, True):
        brokers[0].hold()
        first.send(DELETE_RECORDS, request, 2)
        wait_until(lambda: brokers[0].log("data", 0).journaled_start_offset == 1)
        if is_in_time:
            brokers[0].call(lambda: brokers[0].server.leadership.release(moved, lambda: None))
        else:
            cluster.give(brokers[1], moved)
        brokers[0].hold(held=False)
        (result,) = first.receive().topics[0].partitions
        if is_in_time:
            assert (result.error_code, result.low_watermark) == (0, 1)
            wait_until(lambda: brokers[0].state(moved) is State.AWAY)
            cluster.give(brokers[1], moved)
        else:
            assert (result.error_code, result.low_watermark) == (NOT_LEADER, -1)
            cluster.give(brokers[0], moved)
        assert (second if is_in_time else first).list_offset("data", -2)[2] == int(is_in_time)


def test_a_producer_that_waits_for_its_transaction_is_told_who_leads_by_then(monkeypatch):
    """What the batch would be part of is asked when it is appended, and where it goes, too."""
    markers = Markers(monkeypatch)
    with moving_pair(TOPICS, **{"barnabas.transaction.wait.ms": "600000"}) as cluster:
        first, second = cluster.brokers
        cluster.give(first, *(each for ids in cluster.ids.values() for each in ids))
        with Wire(first.address) as wire:
            producer = RawProducer(wire, "id", 12)
            assert producer.send(DATA, b"a", partition=1).error_code == 0
            markers.stop()
            ended = wire.ask(END_TXN, producer.end_request(commit=True), 5)
            assert ended.error_code == 0
            producer.epoch = ended.producer_epoch
            records = producer.batch(DATA, b"b", sequence=0)
            wire.send(PRODUCE, producer.request(DATA, (0, records)), 12)
            transactions = first.server.transactions
            wait_until(lambda: first.call(lambda: transactions.held_bytes))
            cluster.move(second, cluster.ids["data"][0])
            markers.go_on()
            first.clock.advance(seconds=5)  # For the markers to be tried again.
            (result,) = wire.receive().responses[0].partition_responses
        assert (result.error_code, result.current_leader.leader_id) == (NOT_LEADER, 2)
        assert second.log("data", 0).next_offset == 0


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_search_by_time_in_a_log_that_goes(cluster, brokers, wires, monkeypatch, is_damaged):
    """What it finds is told no more; nor that its files cannot be read."""
    (moved, *_), (first, _) = cluster.ids["data"], wires
    assert first.produce(DATA, batch(b"a")).error_code == 0
    assert first.produce(DATA, batch(b"b"), 1).error_code == 0
    searched, may_go_on = new_event(), new_event()
    genuine = time_lookup._record_in

    def held(header, records, *more):
        searched.set()
        assert may_go_on.wait(60)
        if is_damaged and header.base_offset == 0:
            raise Corrupt("file", 0, "it was removed")
        return genuine(header, records, *more)

    monkeypatch.setattr(time_lookup, "_record_in", held)
    first.send(LIST_OFFSETS, list_offsets_request("data", (0, NOW_MS)), 7)
    assert searched.wait(60)
    cluster.move(brokers[1], moved)
    may_go_on.set()
    (found,) = first.receive().topics[0].partitions
    told = found.error_code, found.timestamp, found.offset, found.leader_epoch
    assert told == (NOT_LEADER, -1, -1, -1)
    assert not brokers[0].call(lambda: brokers[0].server.scrubber._suspected)


# --------------------------------------------------------------------------- groups, transactions


@contextlib.contextmanager
def committed_group(brokers: Sequence[MovingBroker]) -> Iterator[tuple[Client, Client]]:
    """A client of each broker; the first one's group has committed its first offset there."""
    for each in brokers:
        each.port = each.address[1]
    with Client(brokers[0]) as first, Client(brokers[1]) as second:
        first.find_coordinator()
        assert first.commit("g", {("data", 0): 5}) == {ErrorCode.NONE}
        yield first, second


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_group_keeps_its_offsets_over_a_move(cluster, brokers, is_planned):
    moved = id_of(cluster, "g", "__consumer_offsets")
    with committed_group(brokers) as (first, second):
        assert second.commit("g", {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        (cluster.move if is_planned else cluster.give)(brokers[1], moved)
        wait_until(lambda: brokers[1].call(lambda: not brokers[1].server.groups.refusal("g")))
        assert second.fetch("g") == {("data", 0): 5}
        assert first.commit("g", {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        assert second.commit("g", {("data", 0): 7}) == {ErrorCode.NONE}
        cluster.move(brokers[0], moved)
        wait_until(lambda: brokers[0].call(lambda: not brokers[0].server.groups.refusal("g")))
        assert first.fetch("g") == {("data", 0): 7}


def test_who_comes_to_a_coordinator_that_reads_its_partition_is_to_come_again(cluster, brokers):
    """Clients are sent to it already; some do not ask again who has told them NOT_COORDINATOR."""
    moved = id_of(cluster, "g", "__consumer_offsets")
    with committed_group(brokers) as (first, second):
        with cluster.store.nothing_is_read():
            cluster.assign(brokers[1], moved)
            cluster.tell()
            wait_until(lambda: brokers[1].state(moved) is State.READING)
            assert second.commit("g", {("data", 0): 6}) == {LOADING}
            assert first.commit("g", {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        wait_until(lambda: brokers[1].call(lambda: not brokers[1].server.groups.refusal("g")))
        assert second.fetch("g") == {("data", 0): 5}


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_that_moves_while_it_is_open_ends_whole(
    cluster, brokers, wires, version, is_committed
):
    first, second = wires
    producer = RawProducer(first, "id", version)
    assert producer.add(DATA, 0, 1) == ErrorCode.NONE
    for partition in (0, 1):
        assert producer.send(DATA, b"a", partition=partition).error_code == 0
    ids = [*cluster.ids["data"], id_of(cluster, "id", "__transaction_state")]
    cluster.move(brokers[1], *ids)
    wait_until(lambda: brokers[1].call(lambda: not brokers[1].server.transactions.refusal("id")))
    for partition in (0, 1):
        assert second.read(DATA, partition, isolation=COMMITTED) == []
    request = EndTxnRequest("id", producer.producer_id, producer.epoch, is_committed)
    assert first.ask(END_TXN, request, 3).error_code == ErrorCode.NOT_COORDINATOR
    producer.wire = second
    assert producer.send(DATA, b"b").error_code == 0
    request = EndTxnRequest("id", producer.producer_id, producer.epoch, is_committed)
    assert second.ask(END_TXN, request, 3 if version < 12 else 5).error_code == 0
    expected = {0: [b"a", b"b"], 1: [b"a"]} if is_committed else {0: [], 1: []}
    for partition, found in expected.items():
        assert committed_values(second, DATA, partition) == found


def test_a_commit_on_its_way_when_its_group_is_released_is_answered(cluster, brokers):
    moved = id_of(cluster, "g", "__consumer_offsets")
    leadership = brokers[0].server.leadership
    for each in brokers:
        each.port = each.address[1]
    with Client(brokers[0]) as first, Client(brokers[1]) as second, Client(brokers[0]) as late:
        first.find_coordinator()
        topics = [OffsetCommitRequestTopic("data", partitions=[OffsetCommitRequestPartition(0, 5)])]
        brokers[0].hold()
        first.send(OFFSET_COMMIT, OffsetCommitRequest("g", topics=topics), 8)
        log = brokers[0].server.catalogue.topics["__consumer_offsets"].partitions
        place = next(each for each in log if each.partition_id == moved)
        wait_until(lambda: place.log.next_offset > 0)
        brokers[0].call(lambda: leadership.release(moved, lambda: None))
        assert brokers[0].state(moved) is State.DRAINING
        assert late.commit("g", {("data", 0): 6}) == {ErrorCode.NOT_COORDINATOR}
        brokers[0].hold(held=False)
        (answered,) = first.receive().topics
        assert answered.partitions[0].error_code == ErrorCode.NONE
        wait_until(lambda: brokers[0].state(moved) is State.AWAY)
        cluster.give(brokers[1], moved)
        wait_until(lambda: brokers[1].call(lambda: not brokers[1].server.groups.refusal("g")))
        assert second.fetch("g") == {("data", 0): 5}


def test_what_becomes_due_while_coordinators_are_released_is_done_by_the_next_one(
    cluster, brokers, wires
):
    """A transaction's timeout cannot be decided here any more; it is decided there."""
    first, second = wires
    producer = RawProducer(first, "id", 12)
    assert producer.send(DATA, b"a").error_code == 0
    coordinator = id_of(cluster, "id", "__transaction_state")
    ids = [*cluster.ids["data"], coordinator]
    brokers[0].hold()
    with Wire(brokers[0].address) as other:
        names = (f"beside-{number}" for number in range(100))
        beside = next(
            each for each in names if id_of(cluster, each, "__transaction_state") == coordinator
        )
        other.send(INIT_PRODUCER_ID, InitProducerIdRequest(beside, 60_000), 4)
        place = brokers[0].server.catalogue.topics["__transaction_state"].partitions
        log = next(each.log for each in place if each.partition_id == coordinator)
        wait_until(lambda: log.next_offset > log.high_watermark)
        leadership = brokers[0].server.leadership
        for each in ids:
            brokers[0].call(lambda each=each: leadership.release(each, lambda: None))
        assert brokers[0].state(coordinator) is State.DRAINING
        brokers[0].clock.advance(minutes=20)
        assert brokers[0].server.failure is None
        brokers[0].hold(held=False)
        wait_until(lambda: all(brokers[0].state(each) is State.AWAY for each in ids))
        assert other.receive().error_code == ErrorCode.NONE
    cluster.give(brokers[1], *ids)
    assert second.fetch_one(DATA, 0).last_stable_offset == 0, "it is open still"
    brokers[1].clock.advance(minutes=20)
    assert committed_values(second, DATA, 0) == []


# ----------------------------------------------------------------------------------- the catalogue


def test_topics_that_come_grow_and_go_elsewhere(cluster, brokers, wires):
    first, second = wires
    store = cluster.store
    brokers[0].create_topic("new", 2)
    brokers[1].follow()
    cluster.note_topics()
    for wire, broker in zip(wires, brokers, strict=True):
        new = Named("new", broker.server.catalogue.topics["new"].topic_id)
        assert wire.produce(new, batch(b"a")).error_code == NOT_LEADER, "nobody leads it yet"
    cluster.give(brokers[0], cluster.ids["new"][0])
    cluster.give(brokers[1], cluster.ids["new"][1])
    assert first.produce(new, batch(b"a"), 0).error_code == 0
    assert second.produce(new, batch(b"b"), 1).error_code == 0
    ids = cluster.ids["new"]
    # The view may know of a partition before the catalogue does.
    brokers[0].do(lambda: brokers[0].server.catalogue.create_partitions("new", 3))
    cluster.note_topics()
    store.assign(cluster.ids["new"][2], brokers[1].runner.session)
    cluster.tell()
    brokers[1].follow()
    cluster.served(brokers[1], cluster.ids["new"][2])
    assert second.produce(new, batch(b"c"), 2).error_code == 0
    brokers[0].do(lambda: brokers[0].server.catalogue.delete_topic(new.id))
    brokers[1].follow()
    for broker in brokers:
        assert "new" not in broker.server.catalogue.topics
        assert not {*ids} & {*broker.server.logs.logs}
        assert broker.state(ids[0]) is State.AWAY


def test_a_topic_is_not_unknown_while_it_is_being_loaded(cluster, brokers, wires):
    """Who hears that a topic is unknown would think that it was deleted (KAFKA-20734)."""
    (moved, *_), (_, second) = cluster.ids["data"], wires
    cluster.move(brokers[1], moved)
    cluster.assign(brokers[0], moved)
    with cluster.store.nothing_is_read():
        cluster.tell()
        wait_until(lambda: brokers[0].state(moved) is State.READING)
        with Wire(brokers[0].address) as wire:
            assert wire.produce(DATA, batch(b"v")).error_code == NOT_LEADER
            assert wire.list_offset("data", -1)[0] == NOT_LEADER
            assert wire.fetch_one(DATA, 0).error_code == NOT_LEADER
        cluster.assign(brokers[1], moved)
        brokers[0].learn()
        wait_until(lambda: brokers[0].state(moved) is State.AWAY)
    cluster.tell()
    cluster.served(brokers[1], moved)
    assert second.produce(DATA, batch(b"v")).error_code == 0
