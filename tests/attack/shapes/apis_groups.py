"""Rows of APIs of groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.attack.shapes.building import (
    BYTES_MOST,
    NAMES_MOST,
    REGEX,
    TEXT_BYTES,
    UNDIVIDED_ELEMENTS,
    Message,
    Row,
    arrays,
    one,
    unread,
)
from tests.attack.shapes.shape import Shape
from tests.attack.shapes.size import part
from tests.attack.shapes.world import (
    CONSUMER_GROUP,
    LARGE_GROUP,
    SESSION_MS,
    WIDE,
    WIDE_GROUP,
    WIDE_PARTITIONS,
    World,
)

CONSUMER = "consumer"
UNREAD = 2_000
MEMBER_BYTES = (4 << 20) - 10_000
"""Just below what a member may say of itself."""
REGEX_CHARACTERS = 8_192
HEARTBEAT_VERSION = 1
COMMIT_VERSION = 9
FETCH_VERSION = 9


def regexes() -> dict[str, str]:
    """Return the dearest regular expressions that a client may send, by what they are."""
    most = REGEX_CHARACTERS - 20
    return {
        "722 characters of repetitions": REGEX * 80,
        "all repetitions that it may have": REGEX * (most // len(REGEX)),
        "nested repetitions": "((a{0,30}){0,30}){0,30}" * (most // 23),
        "classes of Unicode": r"\pL{0,500}" * (most // 10),
        "alternatives": "|".join(f"{number}.*{number}" for number in range(most // 10)),
        "nested groups": "(" * (most // 2) + ")" * (most // 2),
        "folded case": "(?i)" + "[a-zß-ÿ]{0,200}" * (most // 16),
        "any characters": ".*.*" * (most // 4),
        "words and line ends": r"(?s)(.{0,999}\b)" * (most // 16),
    }


def subscription(world: World, regex: str) -> ConsumerGroupHeartbeatRequest:
    """Return a heartbeat that joins a new group by a regular expression that no other one has."""
    token = world.token()
    request = ConsumerGroupHeartbeatRequest(f"group-{token}", "A" * 22, 0)
    request.rebalance_timeout_ms = SESSION_MS
    request.subscribed_topic_regex = f"{token}{regex}"
    request.topic_partitions = []
    return request


def _heartbeats() -> list[Shape]:
    def by_regex(regex: str) -> Message:
        return lambda world: subscription(world, regex)

    def by_names(world: World) -> ConsumerGroupHeartbeatRequest:
        request = subscription(world, "")
        request.subscribed_topic_regex = None
        request.subscribed_topic_names = [WIDE, *(f"n{each:0100d}" for each in range(38_000))]
        return request

    def of_everything(world: World) -> ConsumerGroupHeartbeatRequest:
        request = subscription(world, "")
        request.subscribed_topic_regex = ".*"
        request.topic_partitions = [
            TopicPartitions(world.ids[WIDE], list(range(WIDE_PARTITIONS)))
        ] * 3
        return request

    def long_texts(world: World) -> ConsumerGroupHeartbeatRequest:
        request = subscription(world, "")
        request.subscribed_topic_regex = "x" * REGEX_CHARACTERS
        request.server_assignor = request.rack_id = "y" * (BYTES_MOST // 3)
        return request

    return [
        *(
            one(f"a regular expression of {name}", "ConsumerGroupHeartbeat", by_regex(regex))
            for name, regex in regexes().items()
        ),
        one("38,000 topics", "ConsumerGroupHeartbeat", by_names),
        one("10,000 partitions", "ConsumerGroupHeartbeat", of_everything),
        one("long texts", "ConsumerGroupHeartbeat", long_texts),
    ]


def _join(world: World, *protocols: JoinGroupRequestProtocol, group: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group or f"group-{world.token()}",
        SESSION_MS,
        SESSION_MS,
        "",
        None,
        CONSUMER,
        [*protocols],
    )


GROUPS_FOUND = part(90_000)
JOIN_VERSION = 3
"""The last one in which a member needs no id from an earlier response."""


def _joins() -> list[Shape]:
    def large(world: World) -> JoinGroupRequest:
        return _join(world, JoinGroupRequestProtocol("range", bytes(MEMBER_BYTES)))

    def many(world: World) -> JoinGroupRequest:
        names = (f"p{number}" for number in range(UNDIVIDED_ELEMENTS))
        return _join(world, *(JoinGroupRequestProtocol(name, b"") for name in names))

    def too_large(world: World) -> JoinGroupRequest:
        return _join(world, JoinGroupRequestProtocol("range", bytes(BYTES_MOST)))

    def long_names(world: World) -> JoinGroupRequest:
        request = _join(
            world, *(JoinGroupRequestProtocol("x" * TEXT_BYTES, b"") for _ in range(100))
        )
        request.group_id = f"group-{world.token()}" + "x" * (TEXT_BYTES - 100)
        return request

    return [
        one("metadata of 4 MB", "JoinGroup", large, JOIN_VERSION),
        one("39,000 protocols", "JoinGroup", many, JOIN_VERSION),
        one("metadata of 16 MB", "JoinGroup", too_large, JOIN_VERSION),
        one("long names", "JoinGroup", long_names, JOIN_VERSION),
    ]


def _sync_again(world: World) -> SyncGroupRequest:
    generation, member_id = world.member
    return SyncGroupRequest(LARGE_GROUP, generation, member_id, None, CONSUMER, "range", [])


def _syncs() -> list[Shape]:
    def sync(count: int, size: int) -> Message:
        return lambda _world: SyncGroupRequest(
            LARGE_GROUP,
            1,
            "nobody",
            None,
            CONSUMER,
            "range",
            [SyncGroupRequestAssignment(f"m{number}", bytes(size)) for number in range(count)],
        )

    return [
        one("an assignment of 16 MB", "SyncGroup", sync(1, BYTES_MOST - 1000)),
        one("39,000 assignments", "SyncGroup", sync(UNDIVIDED_ELEMENTS, 100)),
        one("3,500 assignments, decoded on the loop", "SyncGroup", sync(3_500, 0)),
        unread("an assignment of 1 MB 2,000 times, unread", "SyncGroup", _sync_again, UNREAD),
    ]


def _commit(metadata: str, *, group: str = "") -> Message:
    def message(world: World) -> OffsetCommitRequest:
        partitions = [
            OffsetCommitRequestPartition(index, 5, -1, metadata) for index in range(WIDE_PARTITIONS)
        ]
        return OffsetCommitRequest(
            group or f"group-{world.token()}",
            topics=[OffsetCommitRequestTopic(WIDE, bytes(16), partitions)],
        )

    return message


def _fetch_offsets(*, stable: bool = False) -> Message:
    def message(_world: World) -> OffsetFetchRequest:
        topics = [OffsetFetchRequestTopics(WIDE, bytes(16), list(range(WIDE_PARTITIONS)))]
        group = OffsetFetchRequestGroup(WIDE_GROUP, topics=topics * 9)
        return OffsetFetchRequest(groups=[group], require_stable=stable)

    return message


def _fetch_all(_world: World) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(WIDE_GROUP, topics=None)] * NAMES_MOST
    )


def _fetch_once(_world: World) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(WIDE_GROUP, topics=None)])


def _offset_rows() -> dict[str, Row]:
    return {
        "OffsetCommit": [
            one("10,000 partitions", "OffsetCommit", _commit(""), COMMIT_VERSION),
            one(
                "10,000 partitions with metadata",
                "OffsetCommit",
                _commit("x" * 1500),
                COMMIT_VERSION,
            ),
            *arrays("OffsetCommit"),
        ],
        "OffsetFetch": [
            one("10,000 partitions 9 times", "OffsetFetch", _fetch_offsets(), FETCH_VERSION),
            one("the same, stable", "OffsetFetch", _fetch_offsets(stable=True), FETCH_VERSION),
            one("all offsets of a group, 10,000 times", "OffsetFetch", _fetch_all, FETCH_VERSION),
            unread("the same 100 times, unread", "OffsetFetch", _fetch_all, 100, FETCH_VERSION),
            unread("all offsets 2,000 times, unread", "OffsetFetch", _fetch_once, UNREAD, 9),
            *arrays("OffsetFetch"),
        ],
        "OffsetDelete": arrays("OffsetDelete"),
    }


def _describe_large(_world: World) -> DescribeGroupsRequest:
    return DescribeGroupsRequest([LARGE_GROUP] * NAMES_MOST)


def _describe_few(_world: World) -> DescribeGroupsRequest:
    return DescribeGroupsRequest([LARGE_GROUP] * 20)


def _describe_one(_world: World) -> DescribeGroupsRequest:
    return DescribeGroupsRequest([LARGE_GROUP])


def _describe_consumer(_world: World) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest([CONSUMER_GROUP] * NAMES_MOST)


def _describe_one_consumer(_world: World) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest([CONSUMER_GROUP])


def _heartbeat(_world: World) -> HeartbeatRequest:
    return HeartbeatRequest(LARGE_GROUP, 1, "m" * TEXT_BYTES, "i" * TEXT_BYTES)


def _leave(world: World) -> LeaveGroupRequest:
    members = [MemberIdentity(world.token(), "i" * 100, "r" * 100) for _ in range(30_000)]
    return LeaveGroupRequest(LARGE_GROUP, members=members)


def _list(_world: World) -> ListGroupsRequest:
    return ListGroupsRequest([f"state {number}" for number in range(99_000)])


def _find(kind: int) -> Message:
    def message(_world: World) -> FindCoordinatorRequest:
        keys = [f"group-{number}" + "x" * 150 for number in range(GROUPS_FOUND)]
        return FindCoordinatorRequest("", kind, keys)

    return message


def _others() -> Iterable[tuple[str, Row]]:
    yield (
        "FindCoordinator",
        [
            one(f"{GROUPS_FOUND:,} groups", "FindCoordinator", _find(0), is_part=True),
            *arrays("FindCoordinator"),
        ],
    )
    yield "Heartbeat", [one("long names", "Heartbeat", _heartbeat, 3)]
    yield "LeaveGroup", [one("30,000 members", "LeaveGroup", _leave), *arrays("LeaveGroup")]
    yield "ListGroups", [one("99,000 states", "ListGroups", _list), *arrays("ListGroups")]
    yield (
        "DescribeGroups",
        [
            one("a group with 2 MB, 20 times", "DescribeGroups", _describe_few),
            one("a group with 2 MB, 10,000 times", "DescribeGroups", _describe_large),
            unread("the same 20 times, unread", "DescribeGroups", _describe_large, 20),
            unread(
                "a group with 2 MB, 2,000 times, unread", "DescribeGroups", _describe_one, UNREAD
            ),
            *arrays("DescribeGroups"),
        ],
    )
    yield (
        "ConsumerGroupDescribe",
        [
            one("a group, 10,000 times", "ConsumerGroupDescribe", _describe_consumer),
            unread("the same, unread", "ConsumerGroupDescribe", _describe_consumer, 20),
            unread("2,000 times, unread", "ConsumerGroupDescribe", _describe_one_consumer, UNREAD),
            *arrays("ConsumerGroupDescribe"),
        ],
    )
    yield "DeleteGroups", arrays("DeleteGroups")


GROUPS: dict[str, Row] = {
    "ConsumerGroupHeartbeat": [*_heartbeats(), *arrays("ConsumerGroupHeartbeat")],
    "JoinGroup": [*_joins(), *arrays("JoinGroup")],
    "SyncGroup": [*_syncs(), *arrays("SyncGroup")],
    **_offset_rows(),
    **dict(_others()),
}
