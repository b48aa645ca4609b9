"""Requests for very many partitions that exist: done as a whole, with the loop free for others."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from broker.server import COLLECT_EVERY
from broker.testing import Broker
from broker.wire_client import WireClient
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.records import read_header
from tests.attack.loop_lag import loop_lag
from tests.broker.sample_requests import error_codes
from tests.crash.transaction_life import batches_of

BUSY_MS_MOST = 200
"""The rule is 50; a crowded machine that also traces coverage may take a few times as long."""
TOPICS, PARTITIONS = 4, 10_000
GROUP = "many"


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[Broker]:
    """A broker with as much journal as a daemon has, and its collector's settings."""
    config = {"barnabas.journal.file.bytes": str(64 << 20)}
    usual = gc.get_threshold()
    with Broker(storage=tmp_path_factory.mktemp("data"), config=config) as running:
        for number in range(TOPICS):
            running.create_topic(f"topic-{number}", PARTITIONS)
        gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_EVERY)
        yield running
    gc.set_threshold(*usual)
    gc.unfreeze()


def long_commit(offset: int, topics: int, partitions: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        GROUP,
        topics=[
            OffsetCommitRequestTopic(
                f"topic-{number}",
                partitions=[
                    OffsetCommitRequestPartition(index, offset, committed_metadata="")
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )


def committed(broker: Broker) -> dict[tuple[str, int], int]:
    topics = broker.server.groups.machine_of(GROUP).offsets.of_group(GROUP)
    return {
        (topic, index): each.offset
        for topic, partitions in topics.items()
        for index, each in partitions.items()
    }


def test_a_commit_of_very_many_partitions_is_one_decision_that_holds_nobody(broker):
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        groups = broker.server.groups
        for offset, shape in enumerate([(1, 2001), (1, PARTITIONS), (TOPICS, PARTITIONS)], start=1):
            assert not broker.call(lambda: groups.refusal(GROUP))
            index = groups.partition_of(GROUP)
            log = broker.server.catalogue.partition(groups.topic_name, index).log
            before = broker.call(lambda log=log: log.next_offset)
            request = long_commit(offset, *shape)
            with loop_lag(broker, f"OffsetCommit of {shape}") as lag:
                response = client.ask(OFFSET_COMMIT, request, 8)
            assert lag.busy_ms < BUSY_MS_MOST
            assert set(error_codes(response)) == {ErrorCode.NONE}
            assert [
                (topic.name, [each.partition_index for each in topic.partitions])
                for topic in response.topics
            ] == [(f"topic-{number}", [*range(shape[1])]) for number in range(shape[0])]
            batches = broker.call(lambda log=log: batches_of(log))
            headers = [read_header(memoryview(batch)) for batch in batches]
            sizes = [each.record_count for each in headers if each.base_offset >= before]
            assert sizes == [shape[0] * shape[1]], "written as one batch"
    found = broker.call(lambda: committed(broker))
    assert found == {
        (f"topic-{topic}", index): 3 for topic in range(TOPICS) for index in range(PARTITIONS)
    }


def test_a_commit_too_large_for_one_batch_is_refused_as_a_whole():
    with Broker() as small, WireClient(small.address) as client:
        small.create_topic("topic-0", PARTITIONS)
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        assert set(error_codes(client.ask(OFFSET_COMMIT, long_commit(1, 1, 10), 8))) == {0}
        request = long_commit(2, 1, PARTITIONS)
        for partition in request.topics[0].partitions:
            partition.committed_metadata = "x" * 300
        response = client.ask(OFFSET_COMMIT, request, 8)
        assert set(error_codes(response)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        found = small.call(lambda: committed(small))
        assert found == {("topic-0", index): 1 for index in range(10)}


def test_what_does_not_exist_is_answered_beside_what_is_committed(broker):
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        request = long_commit(7, 1, PARTITIONS + 500)
        gone = OffsetCommitRequestTopic("gone", partitions=request.topics[0].partitions[:1000])
        request.topics.append(gone)
        response = client.ask(OFFSET_COMMIT, request, 8)
    answered = {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answered == {
        ("topic-0", index): 0 if index < PARTITIONS else unknown
        for index in range(PARTITIONS + 500)
    } | {("gone", index): unknown for index in range(1000)}


def test_a_stranger_commits_nothing_of_very_many_partitions(broker):
    request = long_commit(9, 1, PARTITIONS)
    request.generation_id_or_member_epoch, request.member_id = 3, "stranger"
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        response = client.ask(OFFSET_COMMIT, request, 8)
    assert set(error_codes(response)) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert 9 not in broker.call(lambda: committed(broker)).values()
