"""Requests to a cluster that name a topic which no broker has, and requests of every API."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from tests.attack.peer import Peer
from tests.attack.process import COMPLAINT
from tests.attack.scenarios.frames import PATIENCE_S, valid_frames
from tests.counterparts.broker_process import HOST
from tests.counterparts.offsets_client import CLASSIC, IMPLICIT, OffsetsClient
from tests.postgresql.brokers import Member, running
from tests.waiting import wait_until

TIMEOUT_S = 60
LIVE, DELETED = "live", "deleted"
GROUP, TRANSACTION = 0, 1
"""Kinds of keys that FindCoordinator finds a broker for."""


@pytest.fixture(scope="module")
def members(server, tmp_path_factory) -> Iterator[list[Member]]:
    """Two brokers of one cluster; no request makes them log an error."""
    directory = tmp_path_factory.mktemp("cluster")
    brokers = [Member(directory / f"broker-{number}", server.url) for number in range(2)]
    with running(brokers):
        yield brokers
        for each in brokers:
            assert errors_of(each) == []


def errors_of(member: Member) -> list[str]:
    """Return the lines of a broker's log that are errors or begin a traceback."""
    return [each for each in member.output_path.read_text().splitlines() if COMPLAINT.search(each)]


def topics_of(member: Member) -> set[str]:
    admin = AdminClient({"bootstrap.servers": member.bootstrap_servers})
    return {*admin.list_topics(timeout=TIMEOUT_S).topics}


def make(members: list[Member], *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": members[0].bootstrap_servers})
    for made in admin.create_topics([NewTopic(each, 1, 1) for each in topics]).values():
        made.result(TIMEOUT_S)
    wait_until(lambda: all({*topics} <= topics_of(each) for each in members))


def delete(members: list[Member], topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": members[0].bootstrap_servers})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    wait_until(lambda: not any(topic in topics_of(each) for each in members))


def coordinator(members: list[Member], key: str, kind: int) -> OffsetsClient:
    """Return a connection to the coordinator of a group or a transactional id."""
    with OffsetsClient(members[0]) as client:
        request = FindCoordinatorRequest(key, kind)
        found = client.patiently(
            lambda: client.ask(FIND_COORDINATOR, request, 3), lambda answer: answer.error_code
        )
    return OffsetsClient(next(each for each in members if each.port == found.port))


@pytest.fixture(scope="module")
def live(members) -> str:
    """A topic that exists."""
    make(members, LIVE)
    return LIVE


def test_librdkafka_commits_a_live_topic_beside_a_deleted_topic(members, live):
    make(members, DELETED)
    servers = ",".join(each.bootstrap_servers for each in members)
    producer = Producer({"bootstrap.servers": servers})
    for topic in (live, DELETED):
        producer.produce(topic, b"value")
    assert producer.flush(TIMEOUT_S) == 0
    settings = {"bootstrap.servers": servers, "group.id": "readers", "enable.auto.commit": False}
    with contextlib.closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0) for topic in (live, DELETED)])
        read = consumer.consume(2, TIMEOUT_S)
        assert {(each.topic(), each.error()) for each in read} == {(live, None), (DELETED, None)}
        delete(members, DELETED)
        offsets = [TopicPartition(topic, 0, 1) for topic in (live, DELETED)]
        with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
            consumer.commit(offsets=offsets, asynchronous=False)
        (found,) = consumer.committed([TopicPartition(live, 0)], TIMEOUT_S)
        assert found.offset == 1


def test_commit_with_an_unknown_topic_commits_the_others(members, live):
    with coordinator(members, "plain", GROUP) as group:
        codes = group.commit_plainly("plain", {(live, 0): 3, ("unknown", 0): 4})
        assert codes == {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert group.fetch("plain") == {(live, 0): 3}


@pytest.mark.parametrize("version", [CLASSIC, IMPLICIT])
def test_transactional_commit_with_an_unknown_topic_commits_the_others(members, live, version):
    name = f"version-{version}"
    with coordinator(members, name, TRANSACTION) as client:
        producer = client.begin_life(name)
        if version == CLASSIC:
            code = client.patiently(lambda: client.add_offsets(producer, name), int)
            assert code == ErrorCode.NONE
        with coordinator(members, name, GROUP) as group:
            codes = group.commit(producer, name, {(live, 0): 3, ("unknown", 0): 4}, version)
            assert codes == {
                (live, 0): ErrorCode.NONE,
                ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            client.ended(producer, version, commit=True)
            # The marker follows the response to EndTxn.
            wait_until(lambda: group.fetch(name, {live: [0]}) == {(live, 0): 3})


def test_transaction_is_not_extended_by_an_unknown_topic(members, live):
    with coordinator(members, "adder", TRANSACTION) as client:
        producer = client.begin_life("adder")
        topics = [AddPartitionsToTxnTopic(topic, [0]) for topic in (live, "unknown")]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        answer = client.ask(ADD_PARTITIONS_TO_TXN, request, 3)
        codes = {
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        }
        assert codes == {
            live: ErrorCode.OPERATION_NOT_ATTEMPTED,
            "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


async def send_each(port: int, frames: list[bytes]) -> None:
    """Send each request on a connection of its own, and wait until the broker closes that."""
    for each in frames:
        async with await Peer.connect(HOST, port) as peer:
            await peer.send(len(each).to_bytes(4, "big") + each)
            peer.finish()
            ended, _ = await peer.hung_up(PATIENCE_S)
            assert ended, each.hex()


def test_requests_of_every_api_and_version_are_served_without_an_error(members):
    """Cover the handlers that only a cluster has; tests/attack has single brokers."""
    make(members, "victim")
    order = random.Random(43)
    for topic in ("unknown", "victim"):
        for member in members:
            frames = valid_frames(topic)
            order.shuffle(frames)
            asyncio.run(send_each(member.port, frames))
            assert errors_of(member) == []
