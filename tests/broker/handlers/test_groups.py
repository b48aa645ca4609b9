"""Classic groups through sockets: what waits, what wakes it, what a restart leaves.

The rules themselves are in tests/coordinator/groups; that they are Kafka's is shown in
tests/interop/test_classic_groups_like_kafka.py.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from barnabas.broker.client.dialing import connect
from barnabas.broker.handlers.groups import described_groups, group_administration, groups
from barnabas.broker.handlers.groups.group_administration import (
    delete_groups,
    describe_groups,
    list_groups,
)
from barnabas.broker.handlers.groups.groups import heartbeat, join_group, leave_group, sync_group
from barnabas.broker.security.acls.access import OPEN
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Broker

SESSION_MS = 60_000
BUSY_S = 15
"""More seconds than a busy machine takes between two lines while the clock advances."""
REBALANCE_MS = 120_000


class Member:
    """A connection that asks for one member."""

    def __init__(self, broker, group="g", instance=None):
        self.group = group
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.socket = connect(broker.address, 30)
        self.connection = ClientConnection("client")

    def send(self, api, request, version):
        _, chunks = self.connection.request(api, version, request)
        self.socket.sendall(b"".join(bytes(chunk) for chunk in chunks))

    def receive(self):
        while (answer := self.connection.next_response()) is NEED_DATA:
            data = self.socket.recv(1 << 16)
            assert data, "the broker hung up"
            self.connection.receive_data(data)
        return answer[1]

    def ask(self, api, request, version):
        self.send(api, request, version)
        return self.receive()

    def send_join(self, version=9):
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(
            self.group, SESSION_MS, REBALANCE_MS, self.id, self.instance, "connect", protocols
        )
        self.send(JOIN_GROUP, request, version)

    def joined(self):
        response = self.receive()
        assert response.error_code == ErrorCode.NONE
        self.id = response.member_id
        self.generation = response.generation_id
        return response

    def join(self, version=3):
        self.send_join(version)
        return self.joined()

    def send_sync(self, assignments=(), version=5):
        given = [SyncGroupRequestAssignment(*each) for each in assignments]
        request = SyncGroupRequest(
            self.group, self.generation, self.id, self.instance, "connect", "range", given
        )
        self.send(SYNC_GROUP, request, version)

    def sync(self, assignments=()):
        self.send_sync(assignments)
        return self.receive()

    def heartbeat(self):
        request = HeartbeatRequest(self.group, self.generation, self.id, self.instance)
        return self.ask(HEARTBEAT, request, 4).error_code

    def describe(self, version=6):
        return self.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([self.group]), version).groups[0]


@pytest.fixture
def broker():
    with Broker() as broker:
        asker = Member(broker)
        asker.ask(FIND_COORDINATOR, FindCoordinatorRequest("g", 0, ["g"]), 6)
        asker.socket.close()
        yield broker


@pytest.fixture
def member(broker):
    members = []

    def connect(**options):
        members.append(Member(broker, **options))
        return members[-1]

    yield connect
    for each in members:
        each.socket.close()


@pytest.fixture
def alone(member):
    """The only member of a stable group."""
    only = member()
    only.join()
    assert only.sync([(only.id, b"all")]).assignment == b"all"
    return only


def test_a_leave_behind_a_waiting_join_is_heard(alone, member):
    other = member()
    other.send_join(3)
    while alone.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        sleep(0.01)
    (waiting,) = (each for each in alone.describe().members if each.member_id != alone.id)
    identity = MemberIdentity(waiting.member_id)
    other.send(LEAVE_GROUP, LeaveGroupRequest("g", "", [identity]), 5)
    assert other.receive().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert other.receive().members[0].error_code == ErrorCode.NONE


def test_a_silent_member_is_out_and_its_group_is_empty(broker, alone):
    broker.clock.advance(seconds=SESSION_MS / 1000 - BUSY_S)
    assert alone.heartbeat() == ErrorCode.NONE
    broker.clock.advance(seconds=SESSION_MS / 1000 - BUSY_S)
    assert alone.heartbeat() == ErrorCode.NONE
    broker.clock.advance(seconds=SESSION_MS / 1000 + 1)
    assert alone.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert alone.describe().group_state == "Empty"


def test_member_missing_a_rebalance_is_removed(broker, alone, member):
    other = member()
    other.send_join(3)
    while alone.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        sleep(0.01)
    for _ in range(5):
        broker.clock.advance(seconds=REBALANCE_MS / 1000 / 6)
        assert alone.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    broker.clock.advance(seconds=REBALANCE_MS / 1000 / 5)
    assert other.joined().leader == other.id
    assert alone.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_without_sync_is_removed(broker, alone, member):
    other = member()
    other.send_join(3)
    while alone.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        sleep(0.01)
    alone.join()
    other.joined()
    alone.sync([(alone.id, b"half"), (other.id, b"half")])
    for _ in range(6):
        assert other.heartbeat() == alone.heartbeat() == ErrorCode.NONE
        broker.clock.advance(seconds=REBALANCE_MS / 1000 / 6 + 1)
    assert other.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert alone.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_continue_with_a_full_session_after_a_restart(broker, alone, member):
    broker.clock.advance(seconds=SESSION_MS / 1000 - BUSY_S)
    broker.crash()
    broker.restart()
    broker.clock.advance(seconds=SESSION_MS / 1000 - BUSY_S)
    again = member()
    again.id, again.generation = alone.id, alone.generation
    assert again.describe().group_state == "Stable"
    assert again.heartbeat() == ErrorCode.NONE
    assert again.sync().assignment == b"all"
    broker.clock.advance(seconds=SESSION_MS / 1000 + 1)
    assert again.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_old_versions_know_no_null(member):
    leaver = member()
    only = member()
    assert only.join(0).protocol_name == "range"
    request = JoinGroupRequest("g", SESSION_MS, -1, "nobody", None, "connect", [])
    assert only.ask(JOIN_GROUP, request, 6).protocol_name == ""
    assert leaver.ask(LEAVE_GROUP, LeaveGroupRequest("g", "nobody"), 0).error_code == 25
    assert leaver.ask(LEAVE_GROUP, LeaveGroupRequest("g", only.id), 2).error_code == 0


def test_groups_are_listed_described_and_deleted(alone, member):
    (listed,) = alone.ask(LIST_GROUPS, ListGroupsRequest([" STABLE"], ["Classic"]), 5).groups
    assert (listed.group_id, listed.group_state, listed.group_type) == ("g", "Stable", "classic")
    assert alone.ask(LIST_GROUPS, ListGroupsRequest([], ["consumer"]), 5).groups == []
    (described,) = alone.describe().members
    assert (described.client_id, described.client_host) == ("client", "/127.0.0.1")
    delete = DeleteGroupsRequest(["g", "none"])
    results = alone.ask(DELETE_GROUPS, delete, 2).results
    assert [each.error_code for each in results] == [
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    alone.ask(LEAVE_GROUP, LeaveGroupRequest("g", alone.id), 2)
    assert alone.ask(DELETE_GROUPS, delete, 2).results[0].error_code == ErrorCode.NONE
    assert alone.ask(DELETE_GROUPS, DeleteGroupsRequest(), 2).results == []
    assert alone.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


# ----------------------------------------------------------------------- a coordinator that is not


CONTEXT = SimpleNamespace(
    access=OPEN,
    api_version=5,
    client_id="client",
    connection=SimpleNamespace(peer_host="host"),
)
HOST = SimpleNamespace(
    config=SimpleNamespace(group_min_session_timeout_ms=1, group_max_session_timeout_ms=100_000)
)


def coordinator(code, **more):
    answers = {
        "refusal": lambda key: code,
        "is_coordinator": lambda: True,
        "has_many_offsets": lambda keys: False,
        "refusals": 0,
        "durable": AsyncMock(),
        **more,
    }
    return SimpleNamespace(**answers)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_coordinator_errors_reach_group_members(code):
    at = coordinator(code)
    join = join_group(at, HOST, CONTEXT, JoinGroupRequest("g", SESSION_MS, member_id="m"))
    assert (join.response.error_code, join.response.member_id) == (code, "m")
    sync = SyncGroupRequest("g", protocol_type="consumer", protocol_name="range")
    is_loading = code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    told = ErrorCode.REBALANCE_IN_PROGRESS if is_loading else code
    assert sync_group(at, CONTEXT, sync).error_code == told
    assert leave_group(at, CONTEXT, LeaveGroupRequest("g")).error_code == code
    described = asyncio.run(describe_groups(at, CONTEXT, DescribeGroupsRequest(["g"])))
    assert described.groups[0].error_code == code
    deleted = delete_groups(at, CONTEXT, DeleteGroupsRequest(["g", "h"])).response.results
    assert [each.error_code for each in deleted] == [code, code]


def test_a_heartbeat_is_welcome_while_groups_are_loaded():
    loading = coordinator(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert heartbeat(loading, CONTEXT, HeartbeatRequest("g")).error_code == ErrorCode.NONE
    elsewhere = coordinator(ErrorCode.NOT_COORDINATOR)
    assert (
        heartbeat(elsewhere, CONTEXT, HeartbeatRequest("g")).error_code == ErrorCode.NOT_COORDINATOR
    )


async def test_groups_that_are_being_loaded_are_not_listed():
    loading = coordinator(ErrorCode.NONE, is_loading=True)
    code = (await list_groups(loading, CONTEXT, ListGroupsRequest())).error_code
    assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    nothing = coordinator(ErrorCode.NONE, is_coordinator=lambda: False)
    assert (await list_groups(nothing, CONTEXT, ListGroupsRequest())).groups == []


def test_a_member_says_no_more_about_itself_than_the_limit(monkeypatch):
    monkeypatch.setattr(groups, "METADATA_BYTES_MAX", 10)
    protocols = [JoinGroupRequestProtocol("range", b"123"), JoinGroupRequestProtocol("any", b"")]
    request = JoinGroupRequest("g", SESSION_MS, protocols=protocols)
    answer = join_group(coordinator(ErrorCode.NONE), HOST, CONTEXT, request).response
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("long", ["group_instance_id", "protocol_type", "protocol"])
def test_names_that_no_record_can_hold_are_refused(long):
    name = "n" * (groups.NAME_BYTES_MAX + 1)
    request = JoinGroupRequest("g", SESSION_MS, protocol_type="consumer")
    if long == "protocol":
        request.protocols = [JoinGroupRequestProtocol(name, b"")]
    else:
        setattr(request, long, name)
    answer = join_group(coordinator(ErrorCode.NONE), HOST, CONTEXT, request).response
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_request_names_no_more_groups_than_the_limit(monkeypatch):
    monkeypatch.setattr(described_groups, "GROUPS_PER_REQUEST_MAX", 1)
    at = coordinator(ErrorCode.NONE)
    with pytest.raises(KafkaError, match="at most 1 groups per request"):
        asyncio.run(describe_groups(at, CONTEXT, DescribeGroupsRequest(["g", "h"])))
    with pytest.raises(KafkaError, match="at most 1 groups per request"):
        delete_groups(at, CONTEXT, DeleteGroupsRequest(["g", "h"]))


def test_describe_groups_beyond_the_bytes_of_a_response_gets_an_error(monkeypatch, alone):
    monkeypatch.setattr(group_administration, "BYTES_PER_RESPONSE_MAX", 300)
    described = alone.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(["g"] * 4), 6).groups
    assert [len(each.members) for each in described] == [1, 1, 0, 0]
    assert [each.error_code for each in described] == [0, 0, *[ErrorCode.INVALID_REQUEST] * 2]
    assert "describe fewer groups" in described[-1].error_message
