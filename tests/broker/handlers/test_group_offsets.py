"""OffsetCommit, OffsetFetch and OffsetDelete of a running broker.

What they answer in every version is compared with Apache Kafka's in tests/interop.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.handlers.groups.group_offsets import GROUPS_PER_REQUEST_MAX
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import OFFSET_DELETE, OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from barnabas.testing import Broker
from tests.counterparts.wire_client import WireClient
from tests.requests import codes_of, commit_request, fetch_offsets_request
from tests.waiting import wait_until

NOT_HERE = ErrorCode.NOT_COORDINATOR
Found = dict[tuple[str, int], int]


class Client(WireClient):
    """Asks about offsets in few words."""

    def find_coordinator(self) -> None:
        found = self.ask(FIND_COORDINATOR, FindCoordinatorRequest("any"), 3)
        assert found.error_code == ErrorCode.NONE

    def commit(self, group: str, offsets: Found, metadata: str = "") -> set[int]:
        request = commit_request(group, offsets, metadata=metadata)
        return set(codes_of(self.ask(OFFSET_COMMIT, request, 9)))

    def fetch(self, group: str) -> Found:
        (answer,) = self.ask(OFFSET_FETCH, fetch_offsets_request(group), 9).groups
        assert answer.error_code == ErrorCode.NONE
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
        }


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {
        "offsets.topic.num.partitions": "3",
        "offsets.retention.minutes": "10",
        "offsets.retention.check.interval.ms": "60000",
    }
    with Broker(config=settings) as running:
        running.create_topic("topic", 4)
        running.create_topic("other", 1)
        running.port = running.address[1]
        yield running


@pytest.fixture
def client(broker) -> Iterator[Client]:
    with Client(broker) as connected:
        yield connected


def records_of(broker: Broker) -> list[bytes]:
    return [record.key for record in broker.records("__consumer_offsets").result]


def test_group_offsets_require_find_coordinator_first(client):
    assert client.commit("group", {("topic", 0): 1}) == {NOT_HERE}
    fetch = OffsetFetchRequest(
        "group",
        [OffsetFetchRequestTopic("topic", [0])],
        [OffsetFetchRequestGroup("group", topics=None)],
    )
    (answer,) = client.ask(OFFSET_FETCH, fetch, 9).groups
    assert (answer.error_code, answer.topics) == (NOT_HERE, [])
    for version in (7, 1):  # Version 1 has no place for the group's error.
        response = client.ask(OFFSET_FETCH, fetch, version)
        assert response.error_code == (NOT_HERE if version == 7 else ErrorCode.NONE)
        (topic,) = response.topics
        (partition,) = topic.partitions
        assert (partition.error_code, partition.committed_offset) == (NOT_HERE, -1)
    assert client.ask(OFFSET_DELETE, OffsetDeleteRequest("group"), 0).error_code == NOT_HERE
    client.find_coordinator()
    assert client.commit("group", {("topic", 0): 1}) == {ErrorCode.NONE}


def test_offsets_outlive_a_crash_and_a_restart(broker, client):
    client.find_coordinator()
    offsets = {("topic", 0): 5, ("topic", 3): 2**62, ("other", 0): 0}
    assert client.commit("group", offsets) == {ErrorCode.NONE}
    assert client.commit("", {("topic", 1): 7}) == {ErrorCode.NONE}
    for again in (broker.crash, broker.restart):
        again()
        if again == broker.crash:
            broker.restart()
        with Client(broker) as anew:
            assert anew.fetch("group") == offsets
            assert anew.fetch("") == {("topic", 1): 7}


def test_a_deleted_group_stays_deleted(broker, client):
    client.find_coordinator()
    client.commit("group", {("topic", 0): 5, ("other", 0): 6})
    client.commit("kept", {("topic", 0): 7})
    deleted = client.ask(DELETE_GROUPS, DeleteGroupsRequest(["group", "missing"]), 2)
    codes = {each.group_id: each.error_code for each in deleted.results}
    assert codes == {"group": ErrorCode.NONE, "missing": ErrorCode.GROUP_ID_NOT_FOUND}
    for _ in range(2):
        with Client(broker) as anew:
            assert (anew.fetch("group"), anew.fetch("kept")) == ({}, {("topic", 0): 7})
        broker.crash()
        broker.restart()


def test_offsets_go_with_their_topic_and_do_not_come_back_with_its_name(broker, client):
    client.find_coordinator()
    for number in range(200):  # More than one turn's worth of groups.
        client.commit(f"group-{number}", {("topic", 0): 5, ("other", 0): 6})
    before = len(records_of(broker))
    request = DeleteTopicsRequest(topic_names=["topic"], timeout_ms=1000)
    client.ask(DELETE_TOPICS, request, 5)
    assert client.fetch("group-7") == {("other", 0): 6}
    wait_until(lambda: len(records_of(broker)) == before + 200)
    broker.create_topic("topic", 4)
    assert client.fetch("group-8") == {("other", 0): 6}
    assert client.commit("group-8", {("topic", 1): 9}) == {ErrorCode.NONE}
    broker.crash()
    broker.restart()
    with Client(broker) as anew:
        assert anew.fetch("group-7") == {("other", 0): 6}
        assert anew.fetch("group-8") == {("other", 0): 6, ("topic", 1): 9}


def group_ids(broker: Broker) -> set[str]:
    machines = broker.call(lambda: broker.server.groups.machines)
    assert all(isinstance(machine, GroupShard) for machine in machines)
    return {key for machine in machines for key in broker.call(machine.keys)}


def test_offsets_of_a_deleted_topic_vanish_after_a_crash(broker, client):
    client.find_coordinator()
    client.commit("group", {("topic", 0): 5})
    # As if the broker had died between the deletion and the tombstones.
    broker.call(lambda: setattr(broker.server.groups, "forget_topic", lambda _name: None))
    request = DeleteTopicsRequest(topic_names=["topic"], timeout_ms=1000)
    client.ask(DELETE_TOPICS, request, 5)
    broker.crash()
    broker.restart()
    broker.create_topic("topic", 4)
    with Client(broker) as anew:
        assert anew.fetch("group") == {}
        assert group_ids(broker) == {"group"}
        broker.clock.advance(minutes=1)
        wait_until(lambda: group_ids(broker) == set())
        assert anew.fetch("group") == {}


def test_unused_offsets_expire(broker, client):
    client.find_coordinator()
    client.commit("old", {("topic", 0): 5, ("other", 0): 5})
    broker.clock.advance(minutes=7)
    client.commit("old", {("other", 0): 6})
    client.commit("young", {("topic", 0): 7})
    broker.clock.advance(minutes=4)
    with Client(broker) as anew:
        wait_until(lambda: anew.fetch("old") == {("other", 0): 6})
        assert anew.fetch("young") == {("topic", 0): 7}
        broker.clock.advance(minutes=8)
        wait_until(lambda: group_ids(broker) == set())
        broker.crash()
        broker.restart()
    with Client(broker) as anew:
        assert (anew.fetch("old"), anew.fetch("young")) == ({}, {})


def test_a_group_id_that_no_record_can_hold_is_refused(broker, client, caplog):
    client.find_coordinator()
    long = "é" * 20_000
    assert client.commit(long, {("topic", 0): 5}) == {ErrorCode.INVALID_GROUP_ID}
    assert client.commit("x" * 32_767, {("topic", 0): 5}) == {ErrorCode.NONE}
    assert "Traceback" not in caplog.text


def test_more_groups_than_one_request_may_name(broker, client):
    client.find_coordinator()
    groups = [f"group-{number}" for number in range(GROUPS_PER_REQUEST_MAX + 1)]
    refused = client.ask(OFFSET_FETCH, fetch_offsets_request(*groups, of=[]), 8)
    assert {each.error_code for each in refused.groups} == {ErrorCode.INVALID_REQUEST}
    assert len(refused.groups) == len(groups)
    answered = client.ask(OFFSET_FETCH, fetch_offsets_request(*groups[1:], of=[]), 8)
    assert {each.error_code for each in answered.groups} == {ErrorCode.NONE}


def test_a_group_named_twice_is_answered_once(broker, client):
    client.find_coordinator()
    client.commit("group", {("topic", 0): 5})
    twice = fetch_offsets_request("group", "group", of=[("topic", 0)])
    first, second = client.ask(OFFSET_FETCH, twice, 8).groups
    assert (first.error_code, first.topics[0].partitions[0].committed_offset) == (0, 5)
    assert (second.error_code, second.topics) == (ErrorCode.INVALID_REQUEST, [])


def test_a_commit_too_large_for_the_journal_is_refused_as_a_whole(broker, client, caplog):
    client.find_coordinator()
    # The embedded broker's journal files have 4 MiB.
    again = [OffsetCommitRequestPartition(0, number, -1, "m" * 4000) for number in range(1000)]
    topic = OffsetCommitRequestTopic("topic", partitions=again)
    response = client.ask(OFFSET_COMMIT, OffsetCommitRequest("group", topics=[topic]), 9)
    assert set(codes_of(response)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert client.fetch("group") == {}
    assert "decision too large" in caplog.text


def test_commits_in_a_pipeline_take_effect_in_order(client):
    client.find_coordinator()
    client.commit("group", {("topic", 0): 0})
    for number in range(1, 200):
        client.send(OFFSET_COMMIT, commit_request("group", {("topic", 0): number}), 9)
    client.send(OFFSET_FETCH, fetch_offsets_request("group", stable=True), 9)
    for _ in range(1, 200):
        client.receive()
    # The response comes after all earlier ones, which were pending when the request arrived.
    (group,) = client.receive().groups
    assert group.topics[0].partitions[0].committed_offset == 199
