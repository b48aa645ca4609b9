"""Transactions whose coordinator is one broker, and their partitions another's, over the wire."""

from __future__ import annotations

import pytest

from barnabas.broker.coordination.guards import Guards
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.transaction_marker import TransactionMarker
from tests.broker.data_plane import Named, Wire
from tests.broker.held_peers import HeldPeers
from tests.broker.raw_producer import RawProducer
from tests.broker.several import FIRST_EPOCH, pair, topic_id

TOPIC = Named("t", topic_id(1))
PARTITIONS = {TOPIC.name: 4, TRANSACTION_STATE: 4, GROUP_OFFSETS: 4}
NONE = ErrorCode.NONE
VERSIONS = [3, 8, 10, 11, 12, 13]
CLASSIC = [3, 10, 11]
IMPLICIT = [12, 13]


class Remote(RawProducer):
    """A producer whose coordinator is the second broker, and whose data go to the first."""

    def __init__(self, data: Wire, coordinator: Wire, name: str, version: int) -> None:
        self.data = data
        super().__init__(coordinator, name, version)

    def send(self, *given, **more):
        coordinator, self.wire = self.wire, self.data
        try:
            return super().send(*given, **more)
        finally:
            self.wire = coordinator

    def ask(self, *given, **more):
        coordinator, self.wire = self.wire, self.data
        try:
            return super().ask(*given, **more)
        finally:
            self.wire = coordinator


def id_at(broker, name):
    """A transactional id like this one that a broker of a pair coordinates."""
    found = (f"{name}-{number}" for number in range(100))
    return next(each for each in found if java_hash(each) % 4 % 2 == broker - 1)


@pytest.fixture(scope="module")
def brokers():
    with pair(PARTITIONS) as (first, second):
        yield first, second


@pytest.fixture
def producer(brokers, request, version):
    with Wire(brokers[0].address) as data, Wire(brokers[1].address) as coordinator:
        yield Remote(data, coordinator, id_at(2, request.node.name), version)


def transaction(brokers, producer):
    coordinator = brokers[1]
    return coordinator.call(lambda: coordinator.server.transactions.transaction(producer.name))


def is_open(brokers, producer, partition):
    log = brokers[0].log(TOPIC.name, partition)
    return brokers[0].call(lambda: log.producers.has_open_transaction(producer.producer_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_batch_is_verified_or_added_elsewhere(brokers, producer):
    assert producer.add(TOPIC, 0, 2) == NONE
    for number in range(3):
        assert producer.send(TOPIC, b"%d" % number).error_code == NONE
    assert producer.ask((TOPIC, (2, producer.batch(TOPIC, partition=2)))) == [NONE]
    assert transaction(brokers, producer).partitions == {(TOPIC.name, 0), (TOPIC.name, 2)}
    assert is_open(brokers, producer, 0)
    assert is_open(brokers, producer, 2)


# ------------------------------------------------------------- between the answer and the append


@pytest.fixture
def held(brokers):
    peers = HeldPeers(brokers[0])
    yield peers
    peers.let_go()
    peers.leave()


def a_marker_comes_in_between(brokers, producer, held, topic, partition, send):
    """Hold the coordinator's answer until a marker is placed; return the client's answer."""
    first = brokers[0]
    held.holds = True
    send()
    held.wait_for_one()
    marker = TransactionMarker(
        producer.producer_id,
        producer.epoch + (not producer.is_classic),
        commit=False,
        coordinator_epoch=FIRST_EPOCH,
        transaction_version=0 if producer.is_classic else 2,
    )
    assert first.call(lambda: first.server.markers.write(topic, partition, marker)) == NONE
    held.let_go()
    return producer.data.receive()


def first_batch(producer):
    request = producer.request(TOPIC, (0, producer.batch(TOPIC)))
    producer.data.send(PRODUCE, request, producer.version)


def produced(answer):
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition.error_code


@pytest.mark.parametrize("version", VERSIONS)
def test_no_batch_is_appended_behind_a_marker_that_came_after_the_question(brokers, producer, held):
    """P6, R7: it would hang there, for its transaction has ended. From version 12 on the epoch of
    the marker is enough.
    """
    assert producer.add(TOPIC, 0) == NONE
    answer = a_marker_comes_in_between(
        brokers, producer, held, TOPIC.name, 0, lambda: first_batch(producer)
    )
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert produced(answer) == (ErrorCode.NOT_ENOUGH_REPLICAS if producer.is_classic else fenced)
    assert not is_open(brokers, producer, 0)
    assert guards_of(brokers[0], producer) == 0


@pytest.mark.parametrize("version", [11])
@pytest.mark.parametrize("mutant", ["no marker drops a guard", "guards are not looked at"])
def test_a_broker_without_guards_is_found_out(brokers, producer, held, monkeypatch, mutant):
    if mutant == "no marker drops a guard":
        monkeypatch.setattr(Guards, "end", lambda *_given: None)
    else:
        monkeypatch.setattr(Guards, "take", lambda *_given: True)
    assert producer.add(TOPIC, 0) == NONE
    answer = a_marker_comes_in_between(
        brokers, producer, held, TOPIC.name, 0, lambda: first_batch(producer)
    )
    assert produced(answer) == NONE
    assert is_open(brokers, producer, 0)


def guards_of(broker, producer):
    """How many logs of a broker have a guard for a producer, or know its transaction."""
    guards = broker.server.elsewhere.guards
    return broker.call(
        lambda: sum(producer.producer_id in known for known in guards._by_log.values())
    )
