"""ListTransactions and DescribeTransactions of a running broker.

What they answer in every version is compared with Apache Kafka's in tests/interop.
"""

from __future__ import annotations

import pytest

from barnabas.broker.client.dialing import is_readable
from barnabas.broker.handlers.transactions import transaction_views
from barnabas.broker.handlers.transactions.transaction_views import IDS_PER_REQUEST_MAX
from barnabas.broker.runtime import pattern_thread
from barnabas.coordinator.groups.consumer.patterns import WholeMatch
from barnabas.coordinator.transactions.state import State
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.testing import Broker
from tests.counterparts.transaction_client import TransactionClient
from tests.protocol.test_patterns import HEAVY
from tests.worlds import thread_name

NAMES = [state.kafka_name for state in State]
FOUND = {"open-1": "Ongoing", "open-2": "Ongoing", "done": "CompleteCommit", "new": "Empty"}


@pytest.fixture
def broker():
    settings = {
        "transaction.state.log.num.partitions": "3",
        "transactional.id.expiration.ms": "3600000",
    }
    with Broker(config=settings) as running:
        running.create_topic("a", 3)
        running.create_topic("b", 1)
        running.port = running.address[1]
        yield running


@pytest.fixture
def client(broker):
    with TransactionClient(broker) as connected:
        yield connected


@pytest.fixture
def filled(client):
    """Ids in several states, one transaction an hour longer than the other."""
    client.begin("done", "a", 0)
    client.end("done")
    client.init("new")
    client.begin("open-1", "a", 2, 0, timeout_ms=900_000)
    client.add("open-1", "b", 0)
    client.begin("open-2", "a", 0)
    return client


def listed(client, version=2, **filters):
    answer = client.ask(LIST_TRANSACTIONS, ListTransactionsRequest(**filters), version)
    assert answer.error_code == ErrorCode.NONE
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}


def described(client, *keys):
    request = DescribeTransactionsRequest(list(keys))
    return client.ask(DESCRIBE_TRANSACTIONS, request, 0).transaction_states


# ------------------------------------------------------------------------------------------- list


@pytest.mark.parametrize("version", range(3))
def test_everything_is_listed(filled, version):
    assert listed(filled, version) == FOUND


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"state_filters": ["Ongoing"]}, ["open-1", "open-2"]),
        ({"state_filters": ["Empty", "CompleteCommit"]}, ["done", "new"]),
        ({"state_filters": ["Dead"]}, []),
        ({"state_filters": ["nothing"]}, []),
        ({"transactional_id_pattern": "open-.*"}, ["open-1", "open-2"]),
        ({"transactional_id_pattern": "open"}, []),
        ({"transactional_id_pattern": ""}, sorted(FOUND)),
        ({"transactional_id_pattern": "(?i)NEW|done"}, ["done", "new"]),
        ({"transactional_id_pattern": "open-.", "state_filters": ["Empty"]}, []),
        ({"duration_filter": 0, "transactional_id_pattern": "new|done"}, []),
    ],
    ids=str,
)
def test_filters(filled, filters, wanted):
    assert sorted(listed(filled, **filters)) == wanted


def test_by_producer(filled):
    producer_id, _ = filled.producers["open-2"]
    assert set(listed(filled, producer_id_filters=[producer_id, 2**63 - 1])) == {"open-2"}
    assert listed(filled, producer_id_filters=[2**63 - 1]) == {}


def test_by_duration(broker, filled):
    broker.clock.advance(minutes=5)
    filled.begin("late", "b", 0)
    assert set(listed(filled, duration_filter=4 * 60_000)) >= {"open-1"}
    assert "late" not in listed(filled, duration_filter=4 * 60_000)
    # It ended by its timeout, 1 minute after its start.
    assert "open-2" not in listed(filled, duration_filter=0)
    assert set(listed(filled, duration_filter=-1)) == {*FOUND, "late"}


def test_unknown_states_are_returned_as_unknown_filters(filled):
    request = ListTransactionsRequest(["Ongoing", "Unheard", "ongoing"])
    answer = filled.ask(LIST_TRANSACTIONS, request, 0)
    assert answer.unknown_state_filters == ["Unheard", "ongoing"]
    assert {each.transactional_id for each in answer.transaction_states} == {"open-1", "open-2"}
    assert filled.ask(
        LIST_TRANSACTIONS, ListTransactionsRequest(NAMES), 0
    ).unknown_state_filters == []  # fmt: skip


@pytest.mark.parametrize("pattern", ["(", "a{1,99999}", "(?=x)", "x" * 8193])
def test_no_pattern(filled, pattern):
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    answer = filled.ask(LIST_TRANSACTIONS, request, 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []


def test_pattern_with_exponential_backtracking_is_bounded(client):
    client.init("a" * 5000 + "b")
    assert listed(client, transactional_id_pattern="(a*)*" * 20 + "c") == {}


@pytest.mark.parametrize("pattern", HEAVY)
def test_heavy_pattern_is_compared_with_long_ids_beside_the_loop(client, monkeypatch, pattern):
    threads = set()

    class Noting(WholeMatch):
        def __call__(self, text):
            threads.add((thread_name().partition("_")[0], len(text)))
            return super().__call__(text)

    monkeypatch.setattr(pattern_thread, "WholeMatch", Noting)
    for each in ("x", "a" * 20_000, "b" * 200):
        client.init(each)
    found = listed(client, transactional_id_pattern=f"{pattern}b*")
    assert found.keys() == {"b" * 200, *(["x"] if "x" in pattern else [])}
    beside = {length for name, length in threads if name == "barnabas-patterns"}
    assert 20_000 in beside
    assert 1 not in beside


def test_nothing_is_there(client):
    assert listed(client) == {}


def test_more_than_one_turn(filled, monkeypatch):
    monkeypatch.setattr(transaction_views, "IDS_PER_TURN", 1)
    assert listed(filled) == FOUND


def test_more_than_one_answer_can_hold(filled, monkeypatch):
    monkeypatch.setattr(transaction_views, "LISTED_MAX", 3)
    answer = filled.ask(LIST_TRANSACTIONS, ListTransactionsRequest(), 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.transaction_states == []
    assert len(listed(filled, state_filters=["Ongoing"])) == 2


# --------------------------------------------------------------------------------------- describe


def test_describe(broker, filled):
    ongoing, done, new = described(filled, "open-1", "done", "new")
    assert (ongoing.error_code, ongoing.transactional_id) == (ErrorCode.NONE, "open-1")
    assert ongoing.transaction_state == "Ongoing"
    assert ongoing.transaction_timeout_ms == 900_000
    assert 0 < ongoing.transaction_start_time_ms <= broker.clock.now_ms()
    assert (ongoing.producer_id, ongoing.producer_epoch) == filled.producers["open-1"]
    assert {each.topic: each.partitions for each in ongoing.topics} == {"a": [0, 2], "b": [0]}
    assert done.transaction_state == "CompleteCommit"
    assert done.topics == []
    assert (new.transaction_state, new.transaction_start_time_ms) == ("Empty", -1)
    assert {each.client_id for each in (ongoing, done, new)} == {"wire-client"}
    assert {each.client_host for each in (ongoing, done, new)} == {"/127.0.0.1"}


def test_missing_ids_get_errors(filled):
    codes = [each.error_code for each in described(filled, "", "nobody", "new", "nobody")]
    missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert codes == [ErrorCode.INVALID_REQUEST, missing, ErrorCode.NONE, missing]


def test_without_the_internal_topic(client):
    assert [each.error_code for each in described(client, "a")] == [ErrorCode.NOT_COORDINATOR]


def test_limits_of_an_answer(filled, monkeypatch):
    request = DescribeTransactionsRequest(["new"] * (IDS_PER_REQUEST_MAX + 1))
    answer = filled.ask(DESCRIBE_TRANSACTIONS, request, 0)
    assert {each.error_code for each in answer.transaction_states} == {ErrorCode.INVALID_REQUEST}
    monkeypatch.setattr(transaction_views, "PARTITIONS_PER_ANSWER_MAX", 4)
    first, second, third = described(filled, "open-1", "open-1", "open-1")
    assert [len(each.topics) for each in (first, second, third)] == [2, 2, 0]
    assert third.error_code == ErrorCode.INVALID_REQUEST


def test_while_the_state_is_read(broker, filled):
    def load(done):
        for shard in broker.server.transactions.log.shards:
            shard.is_loaded = done

    broker.call(lambda: load(False))
    answer = filled.ask(LIST_TRANSACTIONS, ListTransactionsRequest(), 2)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    (one,) = described(filled, "new")
    assert one.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.call(lambda: load(True))
    assert listed(filled) == FOUND


def test_listed_states_are_durable_c14(broker, filled):
    """The broker dies after its response; a later query returns the same states."""
    before = listed(filled)
    states = {each.transactional_id: each for each in described(filled, *before)}
    filled.close()
    broker.crash()
    broker.restart()
    with TransactionClient(broker) as again:
        assert listed(again) == before
        for each in described(again, *before):
            known = states[each.transactional_id]
            assert (each.producer_id, each.producer_epoch) == (
                known.producer_id, known.producer_epoch
            )  # fmt: skip
            assert each.transaction_start_time_ms == known.transaction_start_time_ms
            # The journal does not store the client's host.
            assert each.client_host is None


@pytest.mark.parametrize("api", [LIST_TRANSACTIONS, DESCRIBE_TRANSACTIONS], ids=["list", "one"])
def test_an_answer_waits_for_the_disk_c14(broker, filled, api):
    """A state in the journal is visible only when it is durable."""
    waiting = []
    log = broker.server.transactions.log
    when_all_durable = log.when_all_durable
    broker.call(lambda: setattr(log, "when_all_durable", waiting.append))
    request = (
        ListTransactionsRequest()
        if api is LIST_TRANSACTIONS
        else DescribeTransactionsRequest(["new"])
    )
    filled.send(api, request, 0)
    assert not is_readable(filled._socket, 0.2)
    broker.call(lambda: setattr(log, "when_all_durable", when_all_durable))
    (waiter,) = waiting
    broker.call(lambda: (waiter.durable(), broker.server.flush_answers()))
    assert len(filled.receive().transaction_states) == (4 if api is LIST_TRANSACTIONS else 1)


# ---------------------------------------------------------------------------------- who used it


def test_the_client_of_an_id_is_the_last_one_that_was_right(broker, filled):
    with TransactionClient(broker, "other") as other:
        other.producers["open-1"] = filled.producers["open-1"]
        other.add("open-1", "a", 1)
        (found,) = described(filled, "open-1")
        assert found.client_id == "other"
        # A producer of old is not its user any more.
        filled.init("open-1")
        other.producers["open-1"] = (other.producers["open-1"][0], 0)
        with pytest.raises(AssertionError):
            other.add("open-1", "a", 1)
    (found,) = described(filled, "open-1")
    assert found.client_id == "wire-client"


def test_expired_ids_are_removed(broker, filled):
    transactions = broker.server.transactions
    assert len(transactions.clients._clients) == len(FOUND)
    broker.clock.advance(hours=2)
    filled.init("late")
    broker.call(transactions.expire_ids)
    assert listed(filled) == {"late": "Empty"}
    assert set(transactions.clients._clients) == {"late"}
    request = DeleteTopicsRequest(topic_names=["__transaction_state"], timeout_ms=1000)
    filled.ask(DELETE_TOPICS, request, 5)
    assert listed(filled) == {}
    assert len(transactions.clients._clients) == 0
