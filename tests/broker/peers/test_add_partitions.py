"""AddPartitionsToTxn from a broker, at the transaction's coordinator."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.peers.interface import Purpose
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.broker.data_plane import Named, Wire
from tests.broker.held_markers import Markers
from tests.broker.raw_producer import RawProducer
from tests.cluster.watched import alternating, topic_id
from tests.waiting import wait_until

TOPIC = Named("t", topic_id(1))
THERE = ("t", 1)
"""A partition of the broker that asks."""
ALWAYS_MS = 600_000
NONE = ErrorCode.NONE


class Asking:
    """The first broker coordinates all ids, the second asks it."""

    def __init__(self, brokers) -> None:
        self.coordinator, self.broker = brokers
        self.told = []
        self.client = Wire(self.coordinator.address)
        self.transactions = self.coordinator.server.transactions

    def producer(self, name, version=12) -> RawProducer:
        return RawProducer(self.client, name, version)

    def send(self, *transactions) -> None:
        """Send a request; its response is appended to ``told``."""
        request = AddPartitionsToTxnRequest(transactions=list(transactions))
        peers = self.broker.server.peers
        self.broker.call(
            lambda: peers.ask(
                0,
                Purpose.VERIFICATION,
                ADD_PARTITIONS_TO_TXN,
                5,
                request,
                self.told.append,
                timeout_ms=60_000,
            )
        )

    def ask(self, *transactions):
        """Send a request; return the errors by transactional ID, topic and partition."""
        before = len(self.told)
        self.send(*transactions)
        wait_until(lambda: len(self.told) > before)
        return errors_of(self.told[-1])

    def transaction(self, name):
        return self.coordinator.call(lambda: self.transactions.transaction(name))


def errors_of(response):
    assert response.error_code == NONE
    return {
        (result.transactional_id, topic.name, each.partition_index): each.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def question(producer, *places, verify=False):
    return AddPartitionsToTxnTransaction(
        producer.name,
        producer.producer_id,
        producer.epoch,
        verify,
        [AddPartitionsToTxnTopic(topic, [index]) for topic, index in places],
    )


@pytest.fixture
def asking():
    settings = {"barnabas.transaction.wait.ms": str(ALWAYS_MS)}
    with alternating({TOPIC.name: 3, TRANSACTION_STATE: 1}, **settings) as cluster:
        made = Asking(cluster.brokers)
        yield made
        made.client.socket.close()


def test_several_transactions_are_added_to_and_verified(asking):
    one, two = asking.producer("one"), asking.producer("two", 11)
    two.add(TOPIC, 1)
    assert asking.ask(
        question(one, THERE, ("t", 0)), question(two, THERE, ("t", 2), verify=True)
    ) == {
        ("one", "t", 1): NONE,
        ("one", "t", 0): NONE,
        ("two", "t", 1): NONE,
        ("two", "t", 2): ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert asking.transaction("one").partitions == {THERE, ("t", 0)}
    # What a leader adds was written by a client that leaves it to the leader.
    assert asking.transaction("one").transaction_version == TRANSACTIONS_V2
    assert asking.transaction("two").transaction_version == CLASSIC


def test_a_broker_is_not_taken_for_the_client_of_an_id(asking):
    producer = asking.producer("id")
    clients = asking.transactions.clients
    before = clients.of("id")
    assert before is not None
    asking.ask(question(producer, THERE))
    asking.ask(question(producer, THERE, verify=True))
    assert clients.of("id") is before


@pytest.mark.parametrize("verify", [False, True], ids=["add", "verify"])
def test_a_broker_never_waits_for_a_transaction_that_is_ending(asking, monkeypatch, verify):
    """The broker retries, since other responses would wait after its request. A client waits."""
    markers = Markers(monkeypatch)
    producer, other = asking.producer("id"), asking.producer("other")
    producer.begin(TOPIC)
    markers.stop()
    producer.end()
    answer = asking.ask(question(producer, THERE, verify=verify), question(other, THERE))
    ends = ErrorCode.CONCURRENT_TRANSACTIONS
    assert answer == {("id", "t", 1): ends, ("other", "t", 1): NONE}
    assert asking.coordinator.call(lambda: asking.transactions.requests_waiting) == 0
    markers.go_on()
    wait_until(lambda: not asking.transaction("id").state.is_decided)
    assert asking.ask(question(producer, THERE)) == {("id", "t", 1): NONE}


@pytest.mark.parametrize("verify", [False, True], ids=["add", "verify"])
def test_verification_response_waits_for_durability_r9(asking, verify):
    producer = asking.producer("id", 11 if verify else 12)
    producer.add(TOPIC, 1)
    waiting = []
    log = asking.transactions.log
    when_durable, hold = log.when_durable, lambda _shard, waiter: waiting.append(waiter)
    asking.coordinator.call(lambda: setattr(log, "when_durable", hold))
    asking.send(question(producer, THERE, verify=verify))
    wait_until(lambda: waiting)
    asking.coordinator.call(lambda: setattr(log, "when_durable", when_durable))
    assert asking.told == []
    (waiter,) = waiting
    asking.coordinator.call(lambda: (waiter.durable(), asking.coordinator.server.flush_answers()))
    wait_until(lambda: asking.told)
    assert errors_of(asking.told[0]) == {("id", "t", 1): NONE}


def test_refused_addition_is_not_confirmed_r9(asking):
    """The journal refuses what was placed: another broker has the coordinator's partition."""
    producer = asking.producer("id")
    waiting = []
    log = asking.transactions.log
    when_durable, hold = log.when_durable, lambda _shard, waiter: waiting.append(waiter)
    asking.coordinator.call(lambda: setattr(log, "when_durable", hold))
    asking.send(question(producer, THERE))
    wait_until(lambda: waiting)
    asking.coordinator.call(lambda: setattr(log, "when_durable", when_durable))
    (waiter,) = waiting
    asking.coordinator.call(
        lambda: (waiter.refused(None), asking.coordinator.server.flush_answers())
    )
    wait_until(lambda: asking.told)
    assert errors_of(asking.told[0]) == {("id", "t", 1): ErrorCode.NOT_COORDINATOR}


def test_a_partition_that_is_not_known_is_not_known_yet(asking):
    """The sender leads the partition, so it exists. A client gets an error."""
    producer = asking.producer("id")
    missing = ("new", 0)
    not_yet = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asking.ask(question(producer, THERE, missing)) == {
        ("id", "t", 1): not_yet,
        ("id", "new", 0): not_yet,
    }
    assert not asking.transaction("id").partitions
    request = AddPartitionsToTxnRequest(transactions=[question(producer, THERE, missing)])
    assert errors_of(asking.client.ask(ADD_PARTITIONS_TO_TXN, request, 5)) == {
        ("id", "t", 1): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("id", "new", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_ids_that_are_not_served_here(asking):
    producer = asking.producer("id")
    unknown = AddPartitionsToTxnTransaction(
        "unknown", 1, 0, False, question(producer, THERE).topics
    )
    assert asking.ask(unknown) == {("unknown", "t", 1): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    asking.coordinator.call(lambda: asking.transactions.lose(0))
    assert asking.ask(question(producer, THERE)) == {("id", "t", 1): ErrorCode.NOT_COORDINATOR}
