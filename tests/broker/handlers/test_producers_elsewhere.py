"""DescribeProducers of partitions that another broker leads: forwarded once, to the leader."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster.peers.interface import Failure, NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.handlers.transactions import producer_states, producers_elsewhere
from barnabas.broker.handlers.transactions.producer_states import describe_producers
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.operations import Operation
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from tests.broker.data_plane import Named, Wire
from tests.broker.raw_producer import RawProducer
from tests.broker.several import ScriptedView, node
from tests.cluster.watched import alternating, topic_id
from tests.waiting import wait_until

NONE = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
TOPIC = "t"
HERE, ELSEWHERE = 0, 1
"""Partitions of the topic: broker 0 and broker 1 lead them."""
COORDINATOR = "__transaction_state"
SETTINGS = {"default.replication.factor": "2", "transaction.state.log.num.partitions": "1"}


# -------------------------------------------------------------------------------- over the network


@pytest.fixture(scope="module")
def cluster():
    with alternating({TOPIC: 2, COORDINATOR: 1}, **SETTINGS) as running:
        yield running


@pytest.fixture
def brokers(cluster):
    return cluster.brokers


def described(broker, *places):
    """Error codes and producers of partitions of the topic, as a client of a broker gets them."""
    request = DescribeProducersRequest([TopicRequest(TOPIC, list(places))])
    with Wire(broker.address) as wire:
        (topic,) = wire.ask(DESCRIBE_PRODUCERS, request, 0).topics
    assert [each.partition_index for each in topic.partitions] == list(places)
    return [
        (
            each.error_code,
            [(row.producer_id, row.current_txn_start_offset) for row in each.active_producers],
        )
        for each in topic.partitions
    ]


@pytest.fixture
def asked(brokers, monkeypatch):
    """The brokers that were sent something, and by which."""
    found = []
    for broker in brokers:
        peers = broker.server.peers
        ask = peers.ask

        def noted(node_id, *arguments, _ask=ask, _from=broker.node_id, **named):
            found.append((_from, node_id))
            _ask(node_id, *arguments, **named)

        monkeypatch.setattr(peers, "ask", noted)
    return found


def test_replica_returns_what_the_leader_knows(brokers, asked):
    with Wire(brokers[0].address) as wire:
        producer = RawProducer(wire, "hangs")
        with Wire(brokers[1].address) as producer.wire:
            sent = producer.send(Named(TOPIC, topic_id(1)), b"v", partition=ELSEWHERE)
    assert sent.error_code == NONE
    open_one = [(producer.producer_id, 0)]
    expected = [(NONE, []), (NONE, open_one), (NONE, open_one), (UNKNOWN, [])]
    asked.clear()
    assert described(brokers[0], HERE, ELSEWHERE, ELSEWHERE, 9) == expected
    assert asked == [(0, 1)]
    assert described(brokers[1], HERE, ELSEWHERE, ELSEWHERE, 9) == expected
    assert asked == [(0, 1), (1, 0)]


def test_a_forwarded_request_is_not_forwarded_again(cluster, brokers, asked):
    """Each of two brokers takes the other one for the leader."""
    cluster.deafen(0)
    cluster.assign(TOPIC, ELSEWHERE, 0)
    wait_until(lambda: cluster.leader_seen_by(1, TOPIC, ELSEWHERE) == 0)
    assert described(brokers[0], ELSEWHERE) == [(NOT_LEADER, [])]
    assert asked == [(0, 1)]
    cluster.let_hear(0)
    cluster.alternate(TOPIC)


def test_a_broker_that_is_no_replica_forwards_nothing(brokers, asked, monkeypatch):
    """Replicas alone describe a partition; Apache Kafka does the same."""
    topic = brokers[0].server.catalogue.topics[TOPIC]
    monkeypatch.setattr(topic, "log_config", replace(topic.log_config, replication_factor=1))
    assert described(brokers[0], ELSEWHERE) == [(NOT_LEADER, [])]
    assert asked == []


# ------------------------------------------------------------------------------ leaders by a script


class Leaders:
    """The other brokers: each has a list of what it responds with, one for each request."""

    def __init__(self, **answers: list[Any]) -> None:
        """``answers`` by node, as in ``node_2``: a NoAnswer, or error and producers of each."""
        self._answers = {int(name.removeprefix("node_")): each for name, each in answers.items()}
        self.asked: list[tuple[int, list[int]]] = []
        """Nodes, and the partitions of each request to them."""

    def ask(self, node_id, purpose, api, version, request, on_answer, *, timeout_ms):
        assert (purpose, api, version) == (Purpose.PRODUCERS, DESCRIBE_PRODUCERS, 0)
        assert 0 < timeout_ms <= producers_elsewhere.LEADER_MS
        (topic,) = request.topics
        self.asked.append((node_id, topic.partition_indexes))
        answer = self._answers[node_id].pop(0)
        if not isinstance(answer, NoAnswer):
            code, *producer_ids = answer
            rows = [ProducerState(each) for each in producer_ids]
            partitions = [
                PartitionResponse(index, code, active_producers=rows)
                for index in topic.partition_indexes
            ]
            answer = DescribeProducersResponse(0, [TopicResponse(topic.name, partitions)])
        asyncio.get_running_loop().call_soon(on_answer, answer)


class Misses:
    """Looks at the cluster, which shows then what a test says."""

    def __init__(self, view: ScriptedView, **shown: int) -> None:
        self.looks = 0
        self._view = view
        self._shown = shown

    async def wait_for_poll(self):
        self.looks += 1
        for name, node_id in self._shown.items():
            self._view.led_by(int(name.removeprefix("partition_")), node_id)


class Access:
    """Permissions of a client: to read topics, or none."""

    def __init__(self, *, reads: bool = True) -> None:
        self._reads = reads

    def may_see(self, _kind, _name, operation):
        assert operation == Operation.READ
        return self._reads

    def may_either(self, *_choices):
        return self._reads


class Replica:
    """Broker 1 of 3, which leads none of the topic's partitions."""

    def __init__(self, leaders: Leaders, led_by: dict[int, int], **shown: int) -> None:
        self.view = ScriptedView(1, [node(each) for each in (1, 2, 3)], led_by)
        self.misses = Misses(self.view, **shown)
        self.clock = ManualClock()
        self._peers = leaders
        topic = SimpleNamespace(log_config=SimpleNamespace(replication_factor=3))
        self._partitions = {index: Elsewhere(topic, index) for index in led_by}

    def topic_partition(self, _name, index):
        return self._partitions.get(index)

    async def describe(self, *indexes, access=None):
        """Describe partitions; return errors and producers."""
        host = SimpleNamespace(clock=self.clock, loop=asyncio.get_running_loop())
        response = await describe_producers(
            SimpleNamespace(partition=self.topic_partition),
            self,
            self._peers,
            host,
            SimpleNamespace(access=access or Access(), connection=SimpleNamespace(link=None)),
            DescribeProducersRequest([TopicRequest(TOPIC, list(indexes))]),
        )
        return [
            (each.error_code, [row.producer_id for row in each.active_producers])
            for each in response.topics[0].partitions
        ]


class Elsewhere:
    """A partition without a log here."""

    log = None

    def __init__(self, topic, index):
        self.topic, self.index, self.partition_id = topic, index, index
        self.topic_partition = TopicPartition(TOPIC, index)

    def leader_epoch_error(self, _epoch):
        return NOT_LEADER


UNREACHABLE = NoAnswer(Failure.UNREACHABLE, "no connection could be made")


async def test_each_leader_is_asked_once_for_what_it_leads():
    leaders = Leaders(node_2=[(NONE, 7)], node_3=[(NONE, 8, 9)])
    replica = Replica(leaders, {0: 2, 1: 3, 2: 2})
    found = await replica.describe(0, 1, 2, 0, 5)
    assert found == [(NONE, [7]), (NONE, [8, 9]), (NONE, [7]), (NONE, [7]), (UNKNOWN, [])]
    assert leaders.asked == [(2, [0, 2]), (3, [1])]
    assert replica.misses.looks == 0


async def test_an_unreachable_leader_is_reported_for_its_own_partitions_only():
    leaders = Leaders(node_2=[UNREACHABLE], node_3=[(NONE, 8)])
    replica = Replica(leaders, {0: 2, 1: 3, 2: NO_NODE})
    assert await replica.describe(0, 1, 2) == [(NOT_LEADER, []), (NONE, [8]), (NOT_LEADER, [])]
    assert leaders.asked == [(2, [0]), (3, [1])]


@pytest.mark.parametrize("first", [UNREACHABLE, (NOT_LEADER,)])
async def test_a_partition_that_has_moved_is_described_by_its_new_leader(first):
    leaders = Leaders(node_2=[first], node_3=[(NONE, 8)])
    replica = Replica(leaders, {0: 2}, partition_0=3)
    assert await replica.describe(0) == [(NONE, [8])]
    assert leaders.asked == [(2, [0]), (3, [0])]


async def test_a_partition_that_moves_on_and_on_is_followed_once():
    leaders = Leaders(node_2=[(NOT_LEADER,)], node_3=[(NOT_LEADER,)])
    replica = Replica(leaders, {0: 2}, partition_0=3)
    assert await replica.describe(0) == [(NOT_LEADER, [])]
    assert (replica.misses.looks, len(leaders.asked)) == (1, 2)


async def test_a_partition_that_has_moved_here_is_forwarded_to_no_broker():
    leaders = Leaders(node_2=[(NOT_LEADER,)])
    replica = Replica(leaders, {0: 2}, partition_0=1)
    assert await replica.describe(0) == [(NOT_LEADER, [])]
    assert len(leaders.asked) == 1


async def test_no_leader_is_asked_once_the_time_is_up():
    leaders = Leaders(node_2=[(NONE, 7)])
    replica = Replica(leaders, {0: 2, 1: 3})
    ask = leaders.ask

    def ask_slowly(*arguments, **named):
        replica.clock.advance(milliseconds=producers_elsewhere.TOTAL_MS)
        ask(*arguments, **named)

    leaders.ask = ask_slowly
    assert await replica.describe(0, 1) == [(NONE, [7]), (NOT_LEADER, [])]
    assert leaders.asked == [(2, [0])]


async def test_an_unknown_partition_at_the_leader_is_passed_on():
    """Kafka's clients send that again."""
    leaders = Leaders(node_2=[(UNKNOWN,)])
    assert await Replica(leaders, {0: 2}).describe(0) == [(UNKNOWN, [])]


async def test_partitions_of_a_topic_without_read_permission_are_not_forwarded():
    leaders = Leaders()
    found = await Replica(leaders, {0: 2}).describe(0, access=Access(reads=False))
    assert found == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])]
    assert leaders.asked == []


async def test_a_leader_that_denies_the_broker_is_no_denial_of_the_client():
    """A leader of an earlier release does not know that brokers forward."""
    leaders = Leaders(node_2=[(ErrorCode.TOPIC_AUTHORIZATION_FAILED,)])
    assert await Replica(leaders, {0: 2}).describe(0) == [(NOT_LEADER, [])]


async def test_no_leader_is_asked_once_the_response_is_full(monkeypatch):
    monkeypatch.setattr(producer_states, "PRODUCERS_PER_ANSWER_MAX", 2)
    leaders = Leaders(node_2=[(NONE, 7, 8)])
    found = await Replica(leaders, {0: 2, 1: 3}).describe(0, 1)
    assert found == [(NONE, [7, 8]), (ErrorCode.INVALID_REQUEST, [])]
    assert leaders.asked == [(2, [0])]


async def test_many_partitions_are_forwarded_in_several_requests(monkeypatch):
    monkeypatch.setattr(producers_elsewhere, "PARTITIONS_AT_ONCE", 2)
    leaders = Leaders(node_2=[(NONE, 7), (NONE, 8)])
    found = await Replica(leaders, dict.fromkeys(range(3), 2)).describe(0, 1, 2)
    assert found == [(NONE, [7]), (NONE, [7]), (NONE, [8])]
    assert leaders.asked == [(2, [0, 1]), (2, [2])]
