"""Clients whose batches, commits and transactions were refused when they should become durable.

The broker is a whole one; only what makes its groups durable is replaced for a while, by what
refuses the next group as a cluster would.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from barnabas.broker.api.waiting import Durability
from barnabas.broker.handlers.records.produce_shortcut import ShortProduce
from barnabas.broker.handlers.transactions import transaction_markers, transaction_views
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.storage.journal.refusal import Refusal
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.requests import codes_of, commit_request, delete_records_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
VERSIONS = (7, 8, 9, 12, 13)


class Refuses:
    """A runner that has every group refused with something in it that has to be durable."""

    def __init__(self, logs):
        self.logs = logs
        self.is_slow = False
        self.held = []
        """Groups that wait to be refused, where that is slow."""

    @property
    def waiting(self):
        """Number of waiters of the held commit groups."""
        return sum(len(group.answers) + len(group.waiters) for group in self.held)

    def refuse_held(self):
        count = len(self.held)
        self.held.clear()
        self.logs.refused(count, set())

    def submit(self, group):
        if self.is_slow:
            self.held.append(group)
            return
        if group.entry_count:
            self.logs.refused(1, set())
            return
        for operation in group.operations:
            operation()
        self.logs.durable(1)
        self.logs.written(1)

    def commit_inline(self, group, meanwhile):
        del group, meanwhile
        return False


@contextmanager
def refusing(broker):
    """Refuse the commit groups that the broker places in the journal during the block."""
    logs = broker.server.logs
    wait_until(lambda: broker.call(lambda: nothing_is_under_way(logs.journal)))
    genuine = logs._runner, logs.files

    def replace(runner, files):
        logs._runner, logs.files = runner, files

    runner = Refuses(logs)
    broker.call(lambda: replace(runner, None))
    try:
        yield runner
    finally:
        wait_until(lambda: broker.call(lambda: nothing_is_under_way(logs.journal)))
        broker.call(lambda: replace(*genuine))


def nothing_is_under_way(journal):
    """Return whether all is durable and in segment files; concurrent writers count groups."""
    return journal.newest_group() is None and not journal._unwritten


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker):
    broker.create_topic("t", 3)
    return Named("t", broker.server.catalogue.topics["t"].topic_id)


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as wire:
        yield wire


@pytest.mark.parametrize("version", VERSIONS)
def test_a_produce_is_refused_for_exactly_the_partitions_concerned(broker, topic, wire, version):
    """P7: what was durable before is said to be."""
    known = {"producer_id": 1 << 62, "producer_epoch": 0, "base_sequence": 0}
    again = batch(b"old", **known)
    assert wire.produce(topic, again, version=version).error_code == 0
    request = produce_request(version, topic, (0, again), (1, batch(b"new")), (2, batch(b"new")))
    with refusing(broker):
        (answer,) = wire.ask(PRODUCE, request, version).responses
        results = answer.partition_responses
        assert [(each.index, each.error_code, each.base_offset) for each in results] == [
            (0, 0, 0),
            (1, NOT_LEADER, -1),
            (2, NOT_LEADER, -1),
        ]
        assert wire.produce(topic, again, version=version).error_code == 0
        assert wire.produce(topic, batch(b"v"), 1, version=version).error_code == NOT_LEADER
        assert wire.fetch_one(topic, 0).high_watermark == 1
        assert wire.fetch_one(topic, 0, 1).error_code == NOT_LEADER


@pytest.mark.parametrize("version", VERSIONS)
def test_the_common_produce_is_refused_as_the_ordinary_one_is(
    broker, topic, wire, version, monkeypatch
):
    taken_back = []
    refused = ShortProduce.refused

    def noted(pending, refusal):
        taken_back.append(pending.requests)
        refused(pending, refusal)

    monkeypatch.setattr(ShortProduce, "refused", noted)
    for offset in range(3):
        assert wire.produce(topic, batch(b"v"), 2, version=version).base_offset == offset
    request = produce_request(version, topic, (2, batch(b"v")))
    frames = b"".join(wire.encode(PRODUCE, request, version, answered=True) for _ in range(3))
    with refusing(broker):
        wire.socket.sendall(frames)
        for _ in range(3):
            (answer,) = wire.receive().responses
            (result,) = answer.partition_responses
            assert (result.index, result.error_code, result.base_offset) == (2, NOT_LEADER, -1)
            assert (result.log_append_time_ms, result.log_start_offset) == (-1, -1)
    assert sum(taken_back) >= 1


def test_deleted_records_are_there_if_that_was_refused(broker, topic, wire):
    assert wire.produce(topic, batch(b"v")).error_code == 0
    request = delete_records_request({("t", 0): 1, ("t", 1): 0})
    with refusing(broker):
        (answer,) = wire.ask(DELETE_RECORDS, request, 2).topics
    found = [(each.error_code, each.low_watermark) for each in answer.partitions]
    assert found == [(NOT_LEADER, -1), (0, 0)]


def test_a_commit_that_was_refused_is_not_shown(broker, topic, wire):
    request = commit_request("g", {("t", 0): 5})

    def commit():
        (code,) = codes_of(wire.ask(OFFSET_COMMIT, request, 8))
        return code

    assert wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g", 0), 3).error_code == 0
    wait_until(lambda: commit() == 0)
    with refusing(broker):
        assert commit() == ErrorCode.NOT_COORDINATOR
        assert commit() == ErrorCode.NOT_COORDINATOR, "the log is closed"


def test_a_transaction_that_was_refused_is_not_answered_for(broker, topic, wire):
    request = InitProducerIdRequest("id", 60_000)
    assert wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("id", 1), 3).error_code == 0
    wait_until(lambda: wire.ask(INIT_PRODUCER_ID, request, 4).error_code == 0)
    with refusing(broker):
        answer = wire.ask(INIT_PRODUCER_ID, request, 4)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_transaction_state_waits_for_the_journal(broker, topic, wire):
    """C14: if the journal refuses it, another broker may have a newer state."""
    request = InitProducerIdRequest("id", 60_000)
    assert wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("id", 1), 3).error_code == 0
    wait_until(lambda: wire.ask(INIT_PRODUCER_ID, request, 4).error_code == 0)
    frames = b"".join(
        wire.encode(*asked)
        for asked in (
            (PRODUCE, produce_request(9, topic, (0, batch(b"v"))), 9),
            (DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(["id"]), 0),
        )
    )
    with refusing(broker) as runner, Wire(broker.address) as other:
        runner.is_slow = True
        wire.socket.sendall(frames)
        wait_until(lambda: broker.call(lambda: runner.waiting) == 2)
        other.socket.sendall(other.encode(LIST_TRANSACTIONS, ListTransactionsRequest(), 0))
        wait_until(lambda: broker.call(lambda: runner.waiting) == 3)
        runner.is_slow = False
        broker.call(runner.refuse_held)
        (produced,) = wire.receive().responses
        assert produced.partition_responses[0].error_code == NOT_LEADER
        (described,) = wire.receive().transaction_states
        assert described.error_code == ErrorCode.NOT_COORDINATOR
        assert other.receive().error_code == ErrorCode.NOT_COORDINATOR


def test_a_marker_that_was_refused_while_others_were_written_is_not_answered_for(
    broker, topic, wire, monkeypatch
):
    """The journal may have no group to wait for when other tasks have run."""
    monkeypatch.setattr(transaction_markers, "MARKERS_PER_TURN", 1)
    unknown = [*range(1000, 1050)]
    asked = WritableTxnMarkerTopic("t", [0, *unknown])
    request = WriteTxnMarkersRequest([WritableTxnMarker(1 << 40, 0, False, [asked])])
    log = broker.server.catalogue.partition("t", 0).log
    with refusing(broker):
        (result,) = wire.ask(WRITE_TXN_MARKERS, request, 1).markers
    assert log.closed, "the marker was refused"
    told = {each.partition_index: each.error_code for each in result.topics[0].partitions}
    assert told[0] == ErrorCode.NOT_COORDINATOR


def test_list_of_refused_transactions_is_not_returned(broker, topic, wire, monkeypatch):
    request = InitProducerIdRequest("id", 60_000)
    assert wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("id", 1), 3).error_code == 0
    wait_until(lambda: wire.ask(INIT_PRODUCER_ID, request, 4).error_code == 0)
    monkeypatch.setattr(transaction_views, "IDS_PER_TURN", 1)
    with refusing(broker) as runner:
        runner.is_slow = True

        async def refused_now():
            runner.is_slow = False
            runner.refuse_held()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        monkeypatch.setattr(transaction_views, "Turn", refused_now)
        frames = (
            (PRODUCE, produce_request(9, topic, (0, batch(b"v"))), 9),
            (LIST_TRANSACTIONS, ListTransactionsRequest(), 0),
        )
        with Wire(broker.address) as other:
            other.send(*frames[0])
            wait_until(lambda: broker.call(lambda: len(runner.held)) == 1)
            assert wire.ask(*frames[1]).error_code == ErrorCode.NOT_COORDINATOR
            (produced,) = other.receive().responses
            assert produced.partition_responses[0].error_code == NOT_LEADER


async def test_waiter_of_a_commit_group_is_notified_once():
    loop = asyncio.get_running_loop()
    durable, refused, given_up = (loop.create_future() for _ in range(3))
    Durability(durable, ErrorCode.NOT_COORDINATOR).durable()
    assert await durable is None
    Durability(refused, ErrorCode.NOT_COORDINATOR).refused(Refusal([]))
    with pytest.raises(KafkaError) as raised:
        await refused
    assert raised.value.code == ErrorCode.NOT_COORDINATOR
    given_up.cancel()
    Durability(given_up, ErrorCode.NOT_COORDINATOR).refused(Refusal([]))
    Durability(given_up, ErrorCode.NOT_COORDINATOR).durable()
    assert given_up.cancelled()
