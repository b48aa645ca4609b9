"""Classic groups beside Apache Kafka 4.3.0: one script of requests is for both.

Each member has a connection of its own, for a JoinGroup waits. Member ids are replaced by names;
everything else must be equal, error by error, version by version.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from barnabas.broker.coordination.shard import java_hash
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import create
from tests.interop.comparison import check_equal, comparable
from tests.interop.consumer_group import wait_for_coordinator
from tests.interop.recorded_kafka import Barnabas
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SETTINGS = {"group.max.size": "3", "group.min.session.timeout.ms": "100"}
TOPIC = "read-by-groups"
SHORT_MS = (1500, 5000, 20_000)
"""Session timeouts of the tests that wait for them; longer than the time between two requests on a
busy machine."""


class Group:
    """The members of one group, each by a name and with a connection of its own."""

    def __init__(self, broker: BrokerProcess, group_id: str) -> None:
        self.broker = broker
        self.group_id = group_id
        self.ids: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.clients: dict[str, WireClient] = {}

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    def client(self, name: str) -> WireClient:
        if name not in self.clients:
            self.clients[name] = WireClient(self.broker)
        return self.clients[name]

    def id_of(self, name: str) -> str:
        """Return a member's id; an unknown name is taken for an id."""
        return self.ids.get(name, name)

    def ask(self, name: str, api: Any, request: Any, version: int) -> Any:
        self.client(name).send(api, request, version)
        return self.answer(name)

    def answer(self, name: str) -> Any:
        """The next answer to a member; it learns its id from it."""
        response = self.client(name).receive()
        member_id = getattr(response, "member_id", "")
        if member_id and member_id not in self.names:
            self.names[member_id] = name
            self.ids[name] = member_id
        return response

    def named(self, value: Any) -> Any:
        """Put names in the place of ids, everywhere in a response."""
        if isinstance(value, list):
            return [self.named(each) for each in value]
        if is_dataclass(value):
            for field in fields(value):
                setattr(value, field.name, self.named(getattr(value, field.name)))
            return value
        return self.names.get(value, value) if isinstance(value, str) else value

    def send_join(
        self,
        name: str,
        version: int = 9,
        *,
        known: str | None = None,
        instance: str | None = None,
        protocols: str = "range",
        protocol_type: str = "consumer",
        metadata: bytes = b"\0\0\0\0\0\0\0\0\0\0",
        session_ms: int = 30_000,
    ) -> None:
        """Send a JoinGroup, under the id that the member has unless ``known`` says which."""
        request = JoinGroupRequest(
            self.group_id,
            session_ms,
            30_000,
            self.ids.get(name, "") if known is None else self.id_of(known),
            instance,
            protocol_type,
            [JoinGroupRequestProtocol(each, metadata) for each in protocols.split()],
            "a reason",
        )
        self.client(name).send(JOIN_GROUP, request, version)

    def join(self, name: str, version: int = 9, **options: Any) -> Any:
        """Join and wait for the answer."""
        self.send_join(name, version, **options)
        return self.answer(name)

    def join_for_good(self, name: str, **options: Any) -> Any:
        """Join with the id that is given first."""
        assert self.join(name, **options).error_code == 79
        return self.join(name, **options)

    def send_sync(
        self,
        name: str,
        generation: int,
        version: int = 5,
        *,
        known: str | None = None,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
        assignments: str = "",
    ) -> None:
        request = SyncGroupRequest(
            self.group_id,
            generation,
            self.id_of(known or name),
            instance,
            protocol_type,
            protocol,
            [
                SyncGroupRequestAssignment(self.id_of(each), b"for " + each.encode())
                for each in assignments.split()
            ],
        )
        self.client(name).send(SYNC_GROUP, request, version)

    def sync(self, name: str, generation: int, version: int = 5, **options: Any) -> Any:
        self.send_sync(name, generation, version, **options)
        return self.answer(name)

    def heartbeat(
        self,
        name: str,
        generation: int,
        version: int = 4,
        *,
        known: str | None = None,
        instance: str | None = None,
    ) -> Any:
        request = HeartbeatRequest(self.group_id, generation, self.id_of(known or name), instance)
        return self.ask("heartbeats", HEARTBEAT, request, version)

    def leave(self, *members: str | tuple[str, str], version: int = 5) -> Any:
        identities = [
            MemberIdentity(self.id_of(each))
            if isinstance(each, str)
            else MemberIdentity(self.id_of(each[0]), each[1])
            for each in members
        ]
        first = identities[0].member_id if identities else ""
        request = LeaveGroupRequest(self.group_id, first, identities)
        return self.ask("leaves", LEAVE_GROUP, request, version)

    def describe(self, version: int = 6) -> Any:
        request = DescribeGroupsRequest([self.group_id], include_authorized_operations=True)
        return self.ask("describes", DESCRIBE_GROUPS, request, version)

    def list(self, version: int = 5, states: str = "", types: str = "") -> Any:
        request = ListGroupsRequest(states.split(), types.split())
        response = self.ask("lists", LIST_GROUPS, request, version)
        response.groups = [each for each in response.groups if each.group_id == self.group_id]
        return response

    def delete(self, *others: str, version: int = 2) -> Any:
        request = DeleteGroupsRequest([self.group_id, *others])
        return self.ask("deletes", DELETE_GROUPS, request, version)

    def commit(self, name: str, generation: int, *, known: str | None = None) -> Any:
        member_id = "" if name == "nobody" else self.id_of(known or name)
        topic = OffsetCommitRequestTopic(TOPIC, bytes(16), [OffsetCommitRequestPartition(0, 1)])
        request = OffsetCommitRequest(self.group_id, generation, member_id, None, -1, [topic])
        return self.ask("commits", OFFSET_COMMIT, request, 9)

    def until_there_are(self, state: str) -> None:
        """Wait until the group is in a state."""
        wait_until(
            lambda: self.describe().groups[0].group_state == state, f"it is {state}", pause_s=0.02
        )


Answers = Iterator[tuple[str, Any]]


def let_it_arrive() -> None:
    """Wait until a request without a visible effect has arrived."""
    time.sleep(0.4)


def a_group_that_is_not_there(group: Group) -> Answers:
    yield "join with an id", group.join("a", known="nobody")
    yield "join with an id v3", group.join("a", 3, known="nobody")
    yield "sync", group.sync("a", 1)
    yield "sync v0", group.sync("a", 1, 0)
    yield "heartbeat", group.heartbeat("a", 1)
    for version in (0, 2, 3, 5):
        yield f"leave v{version}", group.leave("a", version=version)
    yield "leave nobody", group.leave()
    yield "leave without an id", group.leave("", version=2)
    for version in (0, 5, 6):
        yield f"describe v{version}", group.describe(version)
    yield "list", group.list()
    yield "delete", group.delete()
    yield "delete twice", group.delete(group.group_id, "also-not-there")


def a_group_without_a_name(group: Group) -> Answers:
    group.group_id = ""
    yield "join", group.join("a")
    yield "sync", group.sync("a", 1)
    yield "sync without protocol", group.sync("a", 1, protocol=None)
    yield "heartbeat", group.heartbeat("a", 1)
    yield "leave", group.leave("a")
    yield "leave v2", group.leave("a", version=2)
    yield "describe", group.describe()
    yield "describe v5", group.describe(5)
    yield "delete", group.delete()


def what_a_join_must_say(group: Group) -> Answers:
    yield "session too short", group.join("a", session_ms=99)
    yield "session too long", group.join("a", session_ms=1_800_001)
    yield "not made", group.describe()
    yield "no protocol", group.join("a", protocols="")
    # The answer does not wait for the group to be written.
    group.until_there_are("Empty")
    yield "made all the same", group.describe()
    yield "listed", group.list()
    yield "no protocol type", group.join("a", protocol_type="")
    yield "deleted", group.delete()
    yield "gone", group.describe()


def one_member(group: Group) -> Answers:
    yield "needs an id", group.join("a")
    # As above; on a busy machine Apache Kafka may know nothing of it for a moment.
    group.until_there_are("Empty")
    yield "describe empty", group.describe()
    yield "list empty", group.list(states="empty")
    yield "heartbeat of pending", group.heartbeat("a", 0)
    yield "sync of pending", group.sync("a", 0)
    yield "join", group.join("a")
    yield "describe completing", group.describe()
    yield "list completing", group.list(states="CompletingRebalance", types="Classic")
    yield "commit too early", group.commit("a", 1)
    yield "join again", group.join("a")
    yield "heartbeat completing", group.heartbeat("a", 1)
    yield "old generation", group.sync("a", 0, assignments="a")
    yield "other protocol", group.sync("a", 1, protocol="other", assignments="a")
    yield "other type", group.sync("a", 1, protocol_type="connect", assignments="a")
    yield "null protocol", group.sync("a", 1, protocol=None, assignments="a")
    yield "null type", group.sync("a", 1, protocol_type=None, assignments="a")
    yield "unknown instance", group.sync("a", 1, instance="i", assignments="a")
    yield "sync", group.sync("a", 1, assignments="a")
    yield "sync again", group.sync("a", 1)
    yield "sync v2", group.sync("a", 1, 2)
    yield "describe stable", group.describe()
    yield "describe stable v0", group.describe(0)
    for states, types in (("Stable", ""), ("STABLE", "CLASSIC"), ("Empty", ""), ("", "consumer")):
        yield f"list {states} {types}", group.list(states=states, types=types)
    yield "list unknown state", group.list(states="nonsense")
    yield "list unknown type", group.list(types="nonsense")
    yield "list v0", group.list(0)
    yield "list v4", group.list(4)
    yield "heartbeat", group.heartbeat("a", 1)
    yield "heartbeat of yesterday", group.heartbeat("a", 0)
    yield "heartbeat of somebody", group.heartbeat("somebody", 1)
    yield "heartbeat of an instance", group.heartbeat("a", 1, instance="i")
    yield "commit", group.commit("a", 1)
    yield "commit of yesterday", group.commit("a", 0)
    yield "commit of nobody", group.commit("nobody", -1)
    yield "commit of somebody", group.commit("somebody", 1)
    yield "delete", group.delete()
    yield "another type", group.join("b", protocol_type="connect")
    yield "another protocol", group.join("b", protocols="other")
    yield "the leader joins again", group.join("a")
    yield "old heartbeat", group.heartbeat("a", 1)
    yield "sync second", group.sync("a", 2, assignments="")
    yield "leave somebody", group.leave("somebody", "a")
    yield "describe empty again", group.describe()
    yield "list empty again", group.list()
    yield "join with the old id", group.join("a")
    yield "sync after leaving", group.sync("a", 3)
    yield "commit to empty", group.commit("nobody", -1)
    yield "commit with generation to empty", group.commit("a", 3)
    yield "delete empty", group.delete()


def old_versions(group: Group) -> Answers:
    yield "join v0", group.join("a", 0)
    group.send_join("b", 2)
    group.until_there_are("PreparingRebalance")
    yield "a joins again", group.join("a", 0)
    yield "join v2", group.answer("b")
    group.send_join("c", 3)
    group.until_there_are("PreparingRebalance")
    group.send_join("b", 2)
    group.send_join("a", 0)
    for name in "abc":
        yield f"{name} joined", group.answer(name)
    yield "describe", group.describe(3)
    yield "sync v0", group.sync("a", 3, 0, assignments="a b c")
    yield "heartbeat v0", group.heartbeat("b", 3, 0)
    yield "no room v4", group.join("d", 4)
    yield "no room v0", group.join("d", 0)
    yield "leave v0", group.leave("b", version=0)
    yield "leave again v0", group.leave("b", version=0)
    yield "heartbeat v1", group.heartbeat("a", 3, 1)
    yield "delete v0", group.delete(version=0)


def three_members(group: Group) -> Answers:
    group.join_for_good("a", protocols="range sticky")
    group.sync("a", 1, assignments="a", protocol="range")
    assert group.join("b").error_code == 79
    group.send_join("b", protocols="sticky range")
    group.until_there_are("PreparingRebalance")
    yield "heartbeat of a", group.heartbeat("a", 1)
    yield "sync of a", group.sync("a", 1)
    yield "commit of a", group.commit("a", 1)
    yield "describe preparing", group.describe()
    yield "inconsistent", group.join("c", protocols="other")
    assert group.join("c", protocols="sticky").error_code == 79
    group.send_join("c", protocols="sticky")
    let_it_arrive()
    group.send_join("a", protocols="range sticky")
    for name in "abc":
        yield f"{name} joined", group.answer(name)
    group.send_sync("b", 2, protocol="sticky")
    group.send_sync("c", 2, protocol="sticky")
    let_it_arrive()
    yield "a syncs", group.sync("a", 2, protocol="sticky", assignments="a b")
    yield "b synced", group.answer("b")
    yield "c synced with nothing", group.answer("c")
    yield "describe", group.describe()
    yield "b joins with the same", group.join("b", protocols="sticky range")
    yield "still stable", group.describe()
    group.send_join("b", protocols="sticky")
    group.until_there_are("PreparingRebalance")
    yield "c hears of it", group.heartbeat("c", 2)
    yield "c leaves", group.leave("c")
    group.send_join("a", protocols="range sticky")
    yield "a joined again", group.answer("a")
    yield "b joined again", group.answer("b")
    group.send_sync("b", 3, protocol="sticky")
    let_it_arrive()
    yield "a leaves while b waits for it", group.leave("a")
    yield "b is told to join", group.answer("b")
    yield "b joins", group.join("b", protocols="sticky")
    yield "b leads", group.sync("b", 4, protocol="sticky", assignments="b")
    yield "all leave", group.leave("b", "b", "")
    yield "describe empty", group.describe()


def more_than_may_be(group: Group) -> Answers:
    for number, name in enumerate("abc", 1):
        assert group.join(name).error_code == 79
        group.send_join(name)
        for other in "abc"[: number - 1]:
            group.until_there_are("PreparingRebalance")
            group.send_join(other)
        for other in "abc"[:number]:
            assert group.answer(other).error_code == 0
    yield "no room while completing", group.join("d")
    yield "no room for an instance", group.join("d", instance="i")
    for name in "bca":
        group.send_sync(name, 3, assignments="a b c" if name == "a" else "")
    for name in "abc":
        yield f"{name} synced", group.answer(name)
    yield "no room in a stable group", group.join("d")
    yield "nor with an id", group.join("d", known="nobody")
    yield "one leaves", group.leave("c")
    yield "room for one", group.join("d")


def static_members(group: Group) -> Answers:
    yield "no id needed", group.join("a", instance="one")
    group.send_join("b", instance="two")
    group.until_there_are("PreparingRebalance")
    group.send_join("a", instance="one")
    yield "a joined", group.answer("a")
    yield "b joined", group.answer("b")
    group.send_sync("b", 2, instance="two")
    yield "a synced", group.sync("a", 2, instance="one", assignments="a b")
    yield "b synced", group.answer("b")
    yield "describe", group.describe()
    yield "wrong id", group.heartbeat("a", 2, known="b", instance="one")
    yield "wrong instance", group.heartbeat("a", 2, instance="three")
    yield "join under another's id", group.join("a", known="b", instance="one")
    yield "join under an unknown instance", group.join("a", known="a", instance="three")
    yield "b restarts", group.join("b2", instance="two")
    yield "b2 has the assignment", group.sync("b2", 2, instance="two")
    yield "b is fenced", group.heartbeat("b", 2, instance="two")
    yield "b syncs", group.sync("b", 2, instance="two")
    yield "b joins", group.join("b", instance="two")
    yield "b leaves", group.leave(("b", "two"))
    yield "the leader restarts", group.join("a2", instance="one")
    yield "and skips the assignment", group.sync("a2", 2, instance="one")
    yield "and restarts with v8", group.join("a3", 8, instance="one")
    yield "and has its assignment", group.sync("a3", 2, instance="one")
    yield "describe restarted", group.describe()
    assert group.join("c").error_code == 79
    yield "an instance under a pending id", group.join("c", instance="three")
    yield "instances leave by name", group.leave(("", "two"), ("", "nobody"), ("b2", "two"))
    group.send_join("a3", instance="one")
    let_it_arrive()
    yield "a pending member is waited for", group.describe()
    yield "and leaves", group.leave("c")
    yield "a3 joined", group.answer("a3")
    group.send_join("b4", instance="two")
    group.until_there_are("PreparingRebalance")
    group.send_join("b5", instance="two")
    yield "b4 is fenced while it waits", group.answer("b4")
    group.send_join("a3", instance="one")
    yield "a3 joined again", group.answer("a3")
    yield "b5 joined", group.answer("b5")
    group.send_sync("b5", 4, instance="two")
    let_it_arrive()
    group.send_join("b6", instance="two")
    yield "b5 is fenced while it waits", group.answer("b5")
    group.until_there_are("PreparingRebalance")
    yield "a3 hears of it", group.heartbeat("a3", 4, instance="one")
    group.send_join("a3", instance="one")
    yield "a3 joined with b6", group.answer("a3")
    yield "b6 joined", group.answer("b6")
    yield "leave with an unknown instance", group.leave(("a3", "nobody"))
    yield "leave", group.leave(("a3", "one"), ("b6", "two"))
    yield "describe empty", group.describe()


def members_that_fall_silent(group: Group) -> Answers:
    for session_ms in SHORT_MS:
        begun_s = time.monotonic()
        group.ids.clear()
        group.group_id = f"silent-{session_ms}"
        group.names[group.group_id] = "silent"
        assert group.join("a", session_ms=session_ms).error_code == 79
        joined = group.join("a", session_ms=session_ms)
        if not joined.error_code and not group.sync("a", 1, assignments="a").error_code:
            break
        assert time.monotonic() - begun_s > session_ms / 1000, "its session has ended too early"
    group.until_there_are("Empty")
    yield "a is out", group.heartbeat("a", 1)
    yield "describe", group.describe()
    group.ids.clear()
    group.join_for_good("b", session_ms=30_000)
    group.sync("b", 3, assignments="b")
    assert group.join("c", session_ms=SHORT_MS[0]).error_code == 79
    group.send_join("b")
    yield "b waits for c, then does not", group.answer("b")
    yield "c has come too late", group.join("c", session_ms=SHORT_MS[0])


SCRIPTS: tuple[Callable[[Group], Answers], ...] = (
    a_group_that_is_not_there,
    a_group_without_a_name,
    what_a_join_must_say,
    one_member,
    old_versions,
    three_members,
    more_than_may_be,
    static_members,
    members_that_fall_silent,
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    with Barnabas(tmp_path_factory.mktemp("ours"), **SETTINGS, **AT_ONCE) as broker:
        prepare(broker)
        yield broker


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory):
    with ApacheKafka(tmp_path_factory.mktemp("theirs"), **SETTINGS) as broker:
        prepare(broker)
        yield broker


AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}


def prepare(broker: BrokerProcess) -> None:
    create(broker.bootstrap_servers, TOPIC, partitions=1)
    with WireClient(broker) as client:
        wait_for_coordinator(client)


def answers(broker: BrokerProcess, script: Callable[[Group], Answers]) -> dict[str, Any]:
    group = Group(broker, script.__name__)
    try:
        found = list(script(group))
        return {label: comparable(group.named(answer)) for label, answer in found}
    finally:
        group.close()


def written(broker: BrokerProcess, script: Callable[[Group], Answers]) -> list[Any]:
    """The group's own records after a script, as Kafka's tool reads them; times are left out."""
    group = Group(broker, f"{script.__name__}_written")
    try:
        count = len(list(script(group)))
        assert count
    finally:
        group.close()
    partition = java_hash(group.group_id) % 50
    log = broker.data_directory / f"__consumer_offsets-{partition}" / f"{0:020}.log"
    records: list[Any] = []
    deadline = time.monotonic() + 60
    # The last record shows that all members have left.
    while not records or records[-1]["members"]:
        assert time.monotonic() < deadline, records
        output = run_tool(DUMP_LOG_SEGMENTS, "--offsets-decoder", "--files", str(log)).output
        payloads = re.findall(r'key: \{"type":"2","data":(\{.*?\})\} payload: (\{.*\})', output)
        records = [
            json.loads(payload)["data"] | {"version": json.loads(payload)["version"]}
            for key, payload in payloads
            if json.loads(key)["group"] == group.group_id
        ]
    for record in records:
        assert record.pop("currentStateTimestamp") > 1_700_000_000_000
        record["leader"] = group.names.get(record["leader"], record["leader"])
        for member in record["members"]:
            member["memberId"] = group.names[member["memberId"]]
        record["members"].sort(key=lambda member: member["memberId"])
    return records


@pytest.mark.parametrize("script", [three_members, static_members], ids=lambda each: each.__name__)
def test_every_record_is_that_of_kafka(ours, kafka, script):
    their_records = kafka.observe(
        f"records: {script.__name__}", lambda broker: written(broker, script)
    )
    our_records = written(ours, script)
    assert len(our_records) > 2
    assert our_records == their_records


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_every_answer_is_that_of_kafka(ours, kafka, script):
    their_answers = kafka.observe(script.__name__, lambda broker: answers(broker, script))
    our_answers = answers(ours, script)
    assert len(our_answers) > 2
    check_equal(our_answers, their_answers, {})
