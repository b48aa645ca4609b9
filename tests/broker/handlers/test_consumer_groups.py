"""Consumer groups through sockets: what a broker adds to the machine in coordinator/groups.

The rules themselves are in tests/coordinator/groups; that they are Kafka's is shown in
tests/interop/test_consumer_groups_like_kafka.py.
"""

from __future__ import annotations

import pytest

from barnabas.broker.client.dialing import connect
from barnabas.broker.handlers.groups import consumer_groups
from barnabas.broker.handlers.groups.described_groups import GROUPS_PER_REQUEST_MAX
from barnabas.coordinator.groups.consumer import patterns
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from barnabas.testing import Broker
from tests.requests import alter_configs_request
from tests.waiting import wait_until

GROUP_RESOURCE, BROKER_RESOURCE = 32, 4
REBALANCE_MS = 300_000


class Client:
    """A connection to the embedded broker."""

    def __init__(self, broker):
        self.socket = connect(broker.address, 30)
        self.connection = ClientConnection("client")

    def ask(self, api, request, version=1):
        _, chunks = self.connection.request(api, version, request)
        self.socket.sendall(b"".join(bytes(chunk) for chunk in chunks))
        while (answer := self.connection.next_response()) is NEED_DATA:
            data = self.socket.recv(1 << 16)
            assert data, "the broker hung up"
            self.connection.receive_data(data)
        return answer[1]

    def heartbeat(self, member, epoch, **more):
        request = ConsumerGroupHeartbeatRequest("g", member, epoch, **more)
        return self.ask(CONSUMER_GROUP_HEARTBEAT, request)

    def join(self, member, **more):
        subscription = {"subscribed_topic_names": ["t"], **more}
        options = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": [], **subscription}
        return self.heartbeat(member, 0, **options)

    def describe(self, *group_ids):
        request = ConsumerGroupDescribeRequest(list(group_ids) or ["g"])
        return self.ask(CONSUMER_GROUP_DESCRIBE, request).groups

    def wait_until_empty(self):
        """Wait until the group is empty; an expiry is visible when it is on disk."""
        wait_until(lambda: not self.describe()[0].members)

    def alter(self, kind, name, key, value):
        request = alter_configs_request(kind, name, (key, 0, value))
        (result,) = self.ask(INCREMENTAL_ALTER_CONFIGS, request).responses
        assert not result.error_code, result


def client_of(broker):
    client = Client(broker)
    client.ask(FIND_COORDINATOR, FindCoordinatorRequest("g", 0, ["g"]), 6)
    return client


@pytest.fixture
def broker():
    with Broker() as broker:
        broker.create_topic("t", partitions=4)
        yield broker


@pytest.fixture
def client(broker):
    client = client_of(broker)
    yield client
    client.socket.close()


def test_group_requires_find_coordinator_first(broker):
    client = Client(broker)
    with client.socket:
        assert client.join("m").error_code == ErrorCode.NOT_COORDINATOR
        assert client.describe()[0].error_code == ErrorCode.NOT_COORDINATOR


def test_a_member_gets_everything_and_a_second_one_half(broker, client):
    joined = client.join("m")
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assert joined.heartbeat_interval_ms == 5000
    (topic,) = joined.assignment.topic_partitions
    assert topic.partitions == [0, 1, 2, 3]
    broker.clock.advance(seconds=2)
    assert client.join("n").assignment.topic_partitions == []
    assert len(client.heartbeat("m", 2).assignment.topic_partitions[0].partitions) == 2
    (group,) = client.describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert {member.client_host for member in group.members} == {"/127.0.0.1"}


def test_an_assignment_waits_for_the_interval(broker, client):
    client.join("m")
    assert client.join("n").member_epoch == 2
    assert client.describe()[0].group_state == "Assigning"
    client.alter(BROKER_RESOURCE, "", "group.consumer.assignment.interval.ms", "0")
    assert client.heartbeat("n", 2).member_epoch == 3


def test_a_silent_member_is_put_out(broker, client):
    client.join("m")
    broker.clock.advance(seconds=44)
    assert client.describe()[0].members
    broker.clock.advance(seconds=2)
    assert client.heartbeat("m", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert client.describe()[0].group_state == "Empty"


def test_a_group_has_times_of_its_own(broker, client):
    client.alter(GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "60000")
    client.alter(GROUP_RESOURCE, "g", "consumer.heartbeat.interval.ms", "7000")
    assert client.join("m").heartbeat_interval_ms == 7000
    broker.clock.advance(seconds=59)
    assert client.describe()[0].members
    broker.clock.advance(seconds=2)
    client.wait_until_empty()


def test_a_regular_expression_is_resolved_after_the_answer(broker, client):
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": "t|u.*"}
    assert client.join("m", **names).member_epoch == 1
    broker.clock.advance(seconds=1)
    found = client.heartbeat("m", 1)
    assert found.member_epoch == 2
    assert len(found.assignment.topic_partitions[0].partitions) == 4
    broker.create_topic("ux", partitions=1)
    client.heartbeat("m", 2)
    broker.clock.advance(seconds=11)
    assert len(client.heartbeat("m", 2).assignment.topic_partitions) == 2


def test_expression_that_costs_too_much_is_refused(client):
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": "x{0,1000}" * 80}
    refused = client.join("m", **names)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert client.join("m").error_code == 0


def test_expression_resolved_in_steps_changes_the_group_as_a_whole(broker, client, monkeypatch):
    """Commands of the group wait meanwhile: heartbeats again, a member that leaves."""
    monkeypatch.setattr(patterns, "WORK_PER_STEP", 1)
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": "t|u.*"}
    for number in range(50):
        broker.create_topic(f"u{number}", partitions=1)
    assert client.join("m", **names).member_epoch == 1
    broker.clock.advance(seconds=1)
    assert len(client.heartbeat("m", 1).assignment.topic_partitions) == 51
    assert client.heartbeat("m", 2).error_code == 0
    broker.create_topic("ux", partitions=1)
    client.heartbeat("m", 2)
    broker.clock.advance(seconds=11)
    assert client.heartbeat("m", -1).error_code == 0
    assert client.heartbeat("m", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert client.join("m", **names).error_code == 0
    broker.clock.advance(seconds=11)
    assert len(client.join("m", **names).assignment.topic_partitions) == 52


def test_a_group_is_there_after_a_crash(broker, client):
    client.join("m")
    broker.clock.advance(seconds=2)
    client.join("n")
    client.heartbeat("m", 2)
    before = client.describe()
    broker.crash()
    broker.restart()
    again = client_of(broker)
    with again.socket:
        assert again.describe() == before
        assert again.heartbeat("n", 3).error_code == 0
        # No heartbeat could arrive during the restart, so sessions start again.
        broker.clock.advance(seconds=44)
        assert len(again.describe()[0].members) == 2
        broker.clock.advance(seconds=2)
        again.wait_until_empty()


def test_describe_reports_found_missing_and_invalid_groups(client):
    client.join("m")
    found, missing, empty = client.describe("g", "nowhere", "")
    assert found.error_code == 0
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "nowhere" in missing.error_message
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    groups = client.describe(*["g"] * (GROUPS_PER_REQUEST_MAX + 1))
    assert {group.error_code for group in groups} == {ErrorCode.INVALID_REQUEST}


def test_describe_beyond_the_partitions_of_a_response_gets_an_error(monkeypatch, client):
    client.join("m")
    monkeypatch.setattr(consumer_groups, "ELEMENTS_PER_RESPONSE_MAX", 2)
    groups = client.describe(*["g"] * 3)
    assert [len(each.members) for each in groups] == [1, 0, 0]
    assert [each.error_code for each in groups] == [0, *[ErrorCode.INVALID_REQUEST] * 2]
    assert "describe fewer groups" in groups[-1].error_message


def test_an_unnamed_member_of_version_0_gets_an_id(client):
    request = ConsumerGroupHeartbeatRequest(
        "g", "", 0, None, None, REBALANCE_MS, ["t"], None, None, []
    )
    first, second = (client.ask(CONSUMER_GROUP_HEARTBEAT, request, 0) for _ in range(2))
    assert len(first.member_id) == len(second.member_id) == 22
    assert first.member_id != second.member_id
