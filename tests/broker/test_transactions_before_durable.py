"""Responses of the transaction coordinator while a flush with its last decisions is held.

The store takes the flush, or refuses it, or refuses only a later one that has nothing of the
transactional id's partition.
"""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Wire, batch, produce_request
from tests.broker.moves import assign, key_at, lead, led_cluster, log_of, named
from tests.broker.raw_producer import RawProducer
from tests.requests import add_partitions_request, added_codes
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE, GONE = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
LEADERS = {"t": [0], "other": [0]}


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster(LEADERS, brokers=2) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster):
    lead(cluster, LEADERS)
    yield cluster.brokers[0]
    cluster.release_commits(0)


@pytest.fixture
def wires(broker):
    with (
        Wire(broker.address) as first,
        Wire(broker.address) as second,
        Wire(broker.address) as data,
    ):
        yield first, second, data


def send_add(wire, producer):
    """Add a partition; the response to a repetition has no record of its own."""
    identity = producer.producer_id, producer.epoch
    request = add_partitions_request(producer.name, identity, ("t", 0))
    wire.send(ADD_PARTITIONS_TO_TXN, request, 3)


def added(wire):
    (code,) = added_codes(wire.receive())
    return code


def until_placed(broker, topic, index=0):
    log = log_of(broker, topic, index)
    wait_until(lambda: broker.call(lambda: log.next_offset > log.high_watermark))


def test_response_waits_for_no_flush_after_the_one_with_its_decision(cluster, broker, wires):
    first, second, data = wires
    producer = RawProducer(first, key_at(0, "later"), version=9)
    cluster.hold_commits(0)
    send_add(first, producer)
    until_placed(broker, TRANSACTION_STATE)
    data.send(PRODUCE, produce_request(9, named(broker, "other"), (0, batch())), 9)
    until_placed(broker, "other")
    checks = []
    check = broker.server.transactions.leadership_check
    broker.call(lambda: setattr(check, "check", lambda _, then: checks.append(then)))
    send_add(second, producer)
    wait_until(lambda: checks)
    broker.call(lambda: (delattr(check, "check"), checks.pop()(True)))
    assign(cluster, "other", 0, 1)
    cluster.release_commits(0)
    refused = data.receive().responses[0].partition_responses[0].error_code
    assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (added(first), added(second)) == (NONE, NONE)


def test_response_is_an_error_if_its_flush_is_refused_during_the_check(cluster, broker, wires):
    first, second, _ = wires
    producer = RawProducer(first, key_at(1, "checked"), version=9)
    cluster.hold_commits(0)
    send_add(first, producer)
    until_placed(broker, TRANSACTION_STATE, 1)
    checks = []
    check = broker.server.transactions.leadership_check
    broker.call(lambda: setattr(check, "check", lambda _, then: checks.append(then)))
    send_add(second, producer)
    wait_until(lambda: checks)
    assign(cluster, TRANSACTION_STATE, 1, 1)
    cluster.release_commits(0)
    assert added(first) == GONE
    broker.call(lambda: (checks.pop()(True), broker.server.flush_answers()))
    broker.call(lambda: delattr(check, "check"))
    assert added(second) == GONE
