"""Two-phase commit over the wire: a transaction is kept, pinned and ended by others (KIP-939)."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch
from tests.requests import add_partitions_request, added_codes
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

SETTINGS = {"transaction.two.phase.commit.enable": "true"}
KEY = "sink"
LONG_HOURS = 1
ENOUGH_MS = 60_000
GENERATIONS = [(4, 0), (5, 1)]
"""Versions of EndTxn, and what each adds to the epoch."""


@pytest.fixture
def broker():
    with Broker(config=SETTINGS) as running:
        running.create_topic("t", 1)
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        yield opened


def init(wire, *, enable=False, keep=False, timeout_ms=ENOUGH_MS, expected=(-1, -1), version=6):
    request = InitProducerIdRequest(KEY, timeout_ms, *expected, enable, keep)
    return wire.ask(INIT_PRODUCER_ID, request, version)


def add(wire, producer):
    request = add_partitions_request(KEY, producer, ("t", 0))
    return added_codes(wire.ask(ADD_PARTITIONS_TO_TXN, request, 3))[0]


def end(wire, producer, *, commit=True, version=4):
    return wire.ask(END_TXN, EndTxnRequest(KEY, *producer, commit), version)


def produce(wire, producer, value=b"v", sequence=0, version=11):
    records = batch(
        value,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=True,
    )
    return wire.produce(Named("t"), records, version=version, transactional_id=KEY).error_code


def open_transaction(wire, **settings):
    """A transaction with one record in it; answers its producer."""
    begun = init(wire, **settings)
    producer = begun.producer_id, begun.producer_epoch
    assert add(wire, producer) == ErrorCode.NONE
    assert produce(wire, producer) == ErrorCode.NONE
    return producer


def pin(wire, **settings):
    answer = init(wire, enable=True, keep=True, **settings)
    assert answer.error_code == ErrorCode.NONE
    ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
    return (answer.producer_id, answer.producer_epoch), ongoing


def visible(broker):
    log = broker.call(lambda: broker.server.catalogue.partition("t", 0).log)
    return broker.call(lambda: log.last_stable_offset)


def wait_until_visible(broker, offset):
    """Wait until `read_committed` consumers get to ``offset``: a timeout ends without a request."""
    wait_until(lambda: visible(broker) == offset, lambda: f"{visible(broker)} becomes {offset}")


@pytest.mark.parametrize(("version", "bump"), GENERATIONS)
@pytest.mark.parametrize("commit", [True, False])
def test_pinned_transaction_is_ended_by_its_pinning_owner(broker, wire, version, bump, commit):
    writer = open_transaction(wire)
    owner, ongoing = pin(wire)
    assert ongoing == writer
    assert owner == (writer[0], writer[1] + 1)
    broker.clock.advance(hours=LONG_HOURS)
    assert visible(broker) == 0
    with Wire(broker.address) as another:
        for _ in range(2):  # Its answer may be lost: asked again it has happened.
            answer = end(another, owner, commit=commit, version=version)
            assert answer.error_code == ErrorCode.NONE
            if version >= 5:
                assert (answer.producer_id, answer.producer_epoch) == (owner[0], owner[1] + bump)
    assert visible(broker) == 2


def test_the_writer_of_a_kept_transaction_is_fenced(wire):
    writer = open_transaction(wire)
    owner, _ = pin(wire)
    assert end(wire, writer).error_code == ErrorCode.PRODUCER_FENCED
    assert add(wire, writer) == ErrorCode.PRODUCER_FENCED
    assert add(wire, owner) == ErrorCode.INVALID_TXN_STATE
    assert end(wire, owner).error_code == ErrorCode.NONE
    assert produce(wire, writer, sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_second_pin_fences_the_first_owner(wire):
    writer = open_transaction(wire)
    first, _ = pin(wire)
    second, ongoing = pin(wire)
    assert ongoing == writer
    assert second == (writer[0], first[1] + 1)
    assert end(wire, first).error_code == ErrorCode.PRODUCER_FENCED
    assert end(wire, second).error_code == ErrorCode.NONE


def test_a_description_names_the_present_owner(wire):
    writer = open_transaction(wire)
    for _ in range(2):
        owner, _ = pin(wire)
        answer = wire.ask(DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest([KEY]), 0)
        (described,) = answer.transaction_states
        assert described.transaction_state == "Ongoing"
        assert (described.producer_id, described.producer_epoch) == owner != writer


def test_a_transaction_that_is_only_kept_still_times_out(broker, wire):
    open_transaction(wire)
    answer = init(wire, keep=True)
    assert answer.error_code == ErrorCode.NONE
    broker.clock.advance(hours=LONG_HOURS)
    wait_until_visible(broker, 2)
    owner = answer.producer_id, answer.producer_epoch
    assert end(wire, owner).error_code == ErrorCode.PRODUCER_FENCED


def test_without_keep_an_open_transaction_is_aborted(broker, wire):
    writer = open_transaction(wire, enable=True)
    broker.clock.advance(hours=LONG_HOURS)
    assert visible(broker) == 0  # Nothing but a decision ends it.
    begun = init(wire, enable=True)
    assert begun.error_code == ErrorCode.NONE
    assert begun.ongoing_txn_producer_id == -1
    assert visible(broker) == 2
    assert end(wire, writer).error_code == ErrorCode.PRODUCER_FENCED


def test_keep_without_an_open_transaction_is_an_ordinary_beginning(wire):
    first = init(wire, enable=True, keep=True)
    second = init(wire, enable=True, keep=True)
    assert (first.error_code, second.error_code) == (0, 0)
    assert second.producer_epoch == first.producer_epoch + 1
    assert second.ongoing_txn_producer_id == -1


def test_a_pinned_transaction_survives_a_crash(broker, wire):
    writer = open_transaction(wire)
    owner, _ = pin(wire)
    broker.crash()
    broker.restart()
    broker.clock.advance(hours=LONG_HOURS)
    with Wire(broker.address) as again:
        assert visible(broker) == 0
        assert end(again, writer).error_code == ErrorCode.PRODUCER_FENCED
        assert end(again, owner).error_code == ErrorCode.NONE
        assert visible(broker) == 2
        broker.crash()
        broker.restart()
    with Wire(broker.address) as again:
        assert end(again, owner).error_code == ErrorCode.NONE


def test_zombies_may_not_keep_or_abort(wire):
    open_transaction(wire)
    owner, _ = pin(wire)
    wrong = (owner[0], owner[1] + 5)
    for keep in (True, False):
        answer = init(wire, keep=keep, expected=wrong)
        assert answer.error_code == ErrorCode.PRODUCER_FENCED
    assert end(wire, owner).error_code == ErrorCode.NONE


def test_where_it_is_off_the_version_is_not_served():
    with Broker() as broker, Wire(broker.address) as wire:
        answer = wire.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 3)
        versions = {each.api_key: each.max_version for each in answer.api_keys}
        assert versions[INIT_PRODUCER_ID.key] == 5
