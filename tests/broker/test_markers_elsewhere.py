"""A transaction whose partitions two brokers lead ends at both.

The coordinator is broker 1; of each topic it leads the partitions with an even number, broker 2 the
others. Data are put straight into the logs of broker 2: it asks nobody about them.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.data_plane import Wire, batch
from tests.broker.several import pair
from tests.crash.transaction_client import Producer, persistent
from tests.crash.transaction_history import partition_history
from tests.crash.transaction_life import batches_of
from tests.waiting import wait_until

NONE = ErrorCode.NONE
HERE, THERE = ("t", 0), ("t", 1)
TOPICS = {"t": 4, "__transaction_state": 1}


@pytest.fixture
def brokers():
    with pair(TOPICS) as both:
        yield both


@pytest.fixture
def wire(brokers):
    with Wire(brokers[0].address) as opened:
        yield opened


def leader_of(brokers, place):
    return brokers[place[1] % 2]


def put(brokers, producer, place, value=b"v"):
    """Append a batch of a transaction where it is led."""
    broker = leader_of(brokers, place)
    records = batch(
        value,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=producer.sequences[place],
        transactional=True,
    )
    producer.sequences[place] += 1
    broker.call(lambda: broker.log(*place).append(records))


def begun(brokers, wire, *places, key="id"):
    producer = Producer(wire, key)
    assert persistent(producer.init) == NONE
    return opened(brokers, producer, *places)


def opened(brokers, producer, *places):
    assert persistent(lambda: producer.add(*places)) == NONE
    for place in places:
        put(brokers, producer, place)
    return producer


def markers(brokers, place):
    broker = leader_of(brokers, place)
    return broker.call(lambda: partition_history(batches_of(broker.log(*place)), place)).markers


def state(brokers, key="id"):
    return brokers[0].call(lambda: brokers[0].server.transactions.transaction(key).state)


@pytest.mark.parametrize("commit", [True, False])
def test_both_brokers_write_their_markers(brokers, wire, commit):
    places = [HERE, THERE, ("t", 3)]
    producer = begun(brokers, wire, *places)
    assert producer.end(commit=commit) == NONE
    wait_until(lambda: state(brokers).is_idle)
    for place in places:
        (marker,) = markers(brokers, place)
        assert marker.had_data
    opened(brokers, producer, *places)
    assert producer.end(commit=commit) == NONE
    wait_until(lambda: all(len(markers(brokers, place)) == 2 for place in places))
