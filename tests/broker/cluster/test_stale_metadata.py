"""Topics created at one broker can be administered at once at another one."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.api.dispatch import Deferred, Routes
from barnabas.broker.api.refusals import refusal
from barnabas.broker.cluster.serving.stale_metadata import poll_before_refusing
from barnabas.broker.metadata.resources import ResourceType
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.network.large import LONG_ELEMENTS
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.storage.runtime.clock import sleep
from tests.broker.data_plane import Wire
from tests.cluster.watched import WatchedCluster
from tests.requests import (
    add_partitions_request,
    added_codes,
    alter_configs,
    codes_of,
    commit_in_transaction_request,
    create_topic,
    delete_records_request,
)


def test_new_topic_is_administered_at_once_at_other_broker(monkeypatch):
    monkeypatch.setattr("barnabas.broker.cluster.membership.membership.LOOK_EVERY_S", 3600)
    monkeypatch.setattr("barnabas.broker.cluster.metadata_refresh.PATIENCE_S", 60)
    unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
    with WatchedCluster(2) as cluster:
        maker, other = cluster.brokers
        # It hears of nothing by itself: only when it has a reason to look.
        other.server._member._membership._polling.wait = lambda _since, s: sleep(2 * s)
        with Wire(maker.address) as made, Wire(other.address) as asked:
            create_topic(made, "grown")
            grown = CreatePartitionsRequest([CreatePartitionsTopic("grown", 2, None)], 60_000)
            (result,) = asked.ask(CREATE_PARTITIONS, grown, 3).results
            assert result.error_code == ErrorCode.NONE
            create_topic(made, "set")
            alter_configs(asked, ResourceType.TOPIC, "set", ("retention.ms", 0, "1000"))
            create_topic(made, "shown")
            shown = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, "shown")])
            (result,) = asked.ask(DESCRIBE_CONFIGS, shown, 4).results
            assert result.error_code == ErrorCode.NONE
            create_topic(made, "cut")
            cut = asked.ask(DELETE_RECORDS, delete_records_request({("cut", 0): 0}), 2)
            assert not unknown & set(codes_of(cut))
            create_topic(made, "moved")
            moved = ReassignableTopic("moved", [ReassignablePartition(0, [other.node_id])])
            request = AlterPartitionReassignmentsRequest(topics=[moved])
            (result,) = asked.ask(ALTER_PARTITION_REASSIGNMENTS, request, 1).responses
            assert result.partitions[0].error_code not in unknown
            create_topic(made, "deleted")
            for doomed in (
                DeleteTopicState("deleted"),
                DeleteTopicState(None, create_topic(made, "by-id")),
            ):
                request = DeleteTopicsRequest([doomed], timeout_ms=60_000)
                (result,) = asked.ask(DELETE_TOPICS, request, 6).responses
                assert result.error_code == ErrorCode.NONE
            again = create_topic(made, "again")
            request = DeleteTopicsRequest([DeleteTopicState("again")], timeout_ms=60_000)
            shown = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, "again")])
            asked.ask(DESCRIBE_CONFIGS, shown, 4)
            made.ask(DELETE_TOPICS, request, 6)
            assert create_topic(asked, "again") != again


GROUP, TRANSACTION = 0, 1
"""Kinds of keys that coordinators are found for."""


@pytest.fixture
def unheard(monkeypatch):
    """Yield a broker that creates topics, and one that polls for requests only.

    Also the IDs of a group and of a transaction whose coordinator is the second broker.
    """
    monkeypatch.setattr("barnabas.broker.cluster.membership.membership.LOOK_EVERY_S", 3600)
    monkeypatch.setattr("barnabas.broker.cluster.metadata_refresh.PATIENCE_S", 60)
    with WatchedCluster(2) as cluster, Wire(cluster.brokers[1].address) as asked:
        maker, other = cluster.brokers
        keys = [f"key-{number}" for number in range(20)]
        for kind in (GROUP, TRANSACTION):
            asked.ask(FIND_COORDINATOR, FindCoordinatorRequest("", kind, keys), 4)
        for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
            cluster.settle(topic)
        found = []
        for kind in (GROUP, TRANSACTION):
            request = FindCoordinatorRequest("", kind, keys)
            coordinators = asked.ask(FIND_COORDINATOR, request, 4).coordinators
            found.append(next(c.key for c in coordinators if c.node_id == other.node_id))
        other.server._member._membership._polling.wait = lambda _since, s: sleep(2 * s)
        with Wire(maker.address) as made:
            yield made, asked, *found


def commit(wire, group, topic, version, partitions=(0,)):
    by_id = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    offsets = [OffsetCommitRequestPartition(each, 1) for each in partitions]
    topics = [OffsetCommitRequestTopic(partitions=offsets, **by_id)]
    request = OffsetCommitRequest(group, topics=topics)
    (answered,) = wire.ask(OFFSET_COMMIT, request, version).topics
    return {each.error_code for each in answered.partitions}


def test_offsets_of_new_topic_are_committed_at_once(unheard):
    made, asked, group, _ = unheard
    create_topic(made, "by-name")
    assert commit(asked, group, "by-name", 9) == {ErrorCode.NONE}
    assert commit(asked, group, create_topic(made, "by-id"), 10) == {ErrorCode.NONE}
    create_topic(made, "large")
    assert commit(asked, group, "large", 9, [0] * 2 * LONG_ELEMENTS) == {ErrorCode.NONE}
    assert commit(asked, group, "nobody-has-made-it", 9) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert commit(asked, group, "by-name", 9, [0, 1]) == {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_new_topic_is_added_to_transaction_at_once(unheard):
    made, asked, group, key = unheard
    begun = asked.ask(INIT_PRODUCER_ID, InitProducerIdRequest(key, 60_000, -1, -1), 4)
    producer = begun.producer_id, begun.producer_epoch

    def add(topic):
        request = add_partitions_request(key, producer, (topic, 0))
        (code,) = added_codes(asked.ask(ADD_PARTITIONS_TO_TXN, request, 3))
        return code

    def commit_in_transaction(topic):
        request = commit_in_transaction_request(key, group, producer, {(topic, 0): 1})
        (code,) = codes_of(asked.ask(TXN_OFFSET_COMMIT, request, 5))
        return code

    for ask in (add, commit_in_transaction):
        create_topic(made, ask.__name__)
        assert ask(ask.__name__) == ErrorCode.NONE
        assert ask("nobody-has-made-it") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Asked:
    """A route of OffsetCommit whose topic is not shown, and what its connection receives."""

    def __init__(self, handler):
        self.answers, self.told, self.looks = [], [], 0
        routes = Routes()
        routes.serves(OFFSET_COMMIT, versions=(2, 10))(handler)
        catalogue = type("Catalogue", (), {"topics": {}, "topics_by_id": {}})
        poll_before_refusing(routes, catalogue, self)
        self.route = routes.get(OFFSET_COMMIT.key)
        self.answer = Deferred()

    async def wait_for_poll(self):
        self.looks += 1

    async def ask(self):
        self.send()
        for _ in "the look, its end, the handler":
            await asyncio.sleep(0)

    def send(self):
        topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0)])]
        access = type("Access", (), {"may_see": lambda *_: True})
        context = type("Context", (), {"access": access})
        request = OffsetCommitRequest("g", topics=topics)
        run = self.route.handler(context, request)
        assert run.is_parked, "what follows does not overtake it"
        self.answer.connection, self.answer.route, self.answer.run = self, self.route, run
        run.start(self, self.answer, request, set())

    def answered(self, deferred):
        self.answers.append(deferred.response)

    def refused(self, route, request, error):
        return refusal(route, request, error)

    def bug(self, name, error):
        self.told.append((name, error))

    def close(self, reason):
        self.told.append(reason)


async def test_response_of_handler_after_poll_is_sent():
    response, inner = OffsetCommitResponse(), Deferred()
    at_once = Asked(lambda _context, _request: response)
    await at_once.ask()
    assert (at_once.looks, at_once.answers) == (1, [response])
    later = Asked(lambda _context, _request: inner)
    await later.ask()
    assert later.answers == []
    inner.complete(response)
    assert later.answers == [response]


async def test_handler_error_after_poll_does_not_stop_broker():
    def raising(error):
        def handler(_context, _request):
            raise error

        return Asked(handler)

    refused = raising(KafkaError(ErrorCode.NOT_COORDINATOR))
    await refused.ask()
    (answer,) = refused.answers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    bug = RuntimeError("a bug")
    failed = raising(bug)
    await failed.ask()
    assert failed.told == [("OffsetCommit", bug)]


async def test_handler_is_not_called_for_disconnected_client():
    asked = []
    gone = Asked(lambda _context, request: asked.append(request))
    gone.send()
    gone.answer.abandoned()  # As by ``Pipeline.abandon``.
    for _ in "the look, its end, the handler":
        await asyncio.sleep(0)
    assert asked == gone.answers == gone.told == []


async def test_answer_after_a_look_is_dropped_when_the_client_leaves():
    inner = Deferred()
    asked = Asked(lambda _context, _request: inner)
    await asked.ask()
    asked.answer.abandoned()
    assert inner.connection is None
    inner.complete(OffsetCommitResponse())
    assert asked.answers == asked.told == []
