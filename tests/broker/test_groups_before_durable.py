"""Groups whose last decisions are not durable: the store holds the broker's flush, then takes it,
or refuses it because another broker leads the partition.

What a client receives is durable. What a refused flush takes back was shown to no client.
"""

from __future__ import annotations

import pytest

from barnabas.broker.client.dialing import is_readable
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.broker.data_plane import Wire
from tests.broker.handlers.test_groups import Member
from tests.broker.moves import assign, is_served, key_at, lead, led_cluster, log_of
from tests.requests import codes_of, commit_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE, GONE = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
LEADERS = {"t": [0]}
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster(LEADERS, brokers=2, **SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def brokers(cluster):
    lead(cluster, LEADERS)
    yield cluster.brokers
    cluster.release_commits(0)


@pytest.fixture
def wires(brokers):
    """Connections to the group's coordinator: one commits, one reads, one describes."""
    address = brokers[0].address
    with Wire(address) as commits, Wire(address) as reads, Wire(address) as describes:
        yield commits, reads, describes


def send_commit(wire: Wire, group: str, offset: int) -> None:
    wire.send(OFFSET_COMMIT, commit_request(group, {("t", 0): offset}), 8)


def commit(wire: Wire, group: str, offset: int) -> int:
    send_commit(wire, group, offset)
    return committed(wire)


def committed(wire: Wire) -> int:
    (code,) = codes_of(wire.receive())
    return code


def send_fetch(wire: Wire, group: str) -> None:
    request = OffsetFetchRequest(group, [OffsetFetchRequestTopic("t", [0])])
    wire.send(OFFSET_FETCH, request, 7)


def fetched(wire: Wire) -> int:
    """Return the offset that was fetched; of an error, its negative code."""
    answer = wire.receive()
    return -answer.error_code or answer.topics[0].partitions[0].committed_offset


def in_memory(broker, group: str) -> int:
    """Return the offset that the coordinator has applied; -1 if it has none."""
    machine = broker.server.groups.machine_of(group)

    def look() -> int:
        topics = machine.offsets.of_group(group)
        return topics["t"][0].offset if topics else -1

    return broker.call(look)


def until_held(broker, count: int) -> None:
    """Wait until a number of responses wait for the journal."""
    journal = broker.server.logs.journal

    def held() -> int:
        return sum(len(group.waiters) for group in (*journal._in_flight, journal._open))

    wait_until(lambda: broker.call(held) == count)


def overtake(cluster, index: int) -> None:
    """Make another broker the leader, so that the store refuses the flush that it holds."""
    assign(cluster, GROUP_OFFSETS, index, 1)
    cluster.release_commits(0)


def test_reads_behind_commits_wait_and_one_flush_takes_them_all(world, cluster, brokers, wires):
    commits, reads, describes = wires
    group = key_at(0, "waits")
    assert commit(commits, group, 5) == NONE
    log = log_of(brokers[0], GROUP_OFFSETS, 0)
    durable = log.high_watermark
    cluster.hold_commits(0)
    for offset in (6, 7):
        send_commit(commits, group, offset)
    wait_until(lambda: in_memory(brokers[0], group) == 7)
    send_fetch(reads, group)
    describes.send(DESCRIBE_GROUPS, DescribeGroupsRequest([group]), 5)
    describes.send(LIST_GROUPS, ListGroupsRequest(), 4)
    world.sleep(2)
    for wire in wires:
        assert not is_readable(wire.socket, 0), "nothing of it is durable"
    assert (log.high_watermark, log.next_offset) == (durable, durable + 2)
    cluster.release_commits(0)
    assert [committed(commits), committed(commits)] == [NONE, NONE]
    assert fetched(reads) == 7
    assert describes.receive().groups[0].error_code == NONE
    assert group in {each.group_id for each in describes.receive().groups}


def test_offset_of_a_refused_flush_was_shown_to_no_client(cluster, brokers, wires):
    commits, reads, describes = wires
    group = key_at(1, "refused")
    assert commit(commits, group, 5) == NONE
    cluster.hold_commits(0)
    send_commit(commits, group, 7)
    wait_until(lambda: in_memory(brokers[0], group) == 7)
    send_fetch(reads, group)
    describes.send(LIST_GROUPS, ListGroupsRequest(), 4)
    until_held(brokers[0], 3)
    overtake(cluster, 1)
    assert (committed(commits), fetched(reads)) == (GONE, -GONE)
    assert describes.receive().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    wait_until(lambda: is_served(brokers[1], GROUP_OFFSETS, group))
    with Wire(brokers[1].address) as other:
        send_fetch(other, group)
        assert fetched(other) == 5


def test_epoch_of_a_refused_flush_was_named_to_no_member(cluster, brokers, wires):
    joins, again, describes = wires
    group = key_at(2, "epoch")

    def heartbeat(epoch: int, *names: str) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group,
            "member",
            epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[*names] or None,
            topic_partitions=[] if names else None,
        )

    answer = joins.ask(CONSUMER_GROUP_HEARTBEAT, heartbeat(0, "t"), 1)
    assert answer.error_code == NONE
    epoch = answer.member_epoch
    cluster.hold_commits(0)
    joins.send(CONSUMER_GROUP_HEARTBEAT, heartbeat(epoch, "t", "u"), 1)
    machine = brokers[0].server.groups.machine_of(group)
    wait_until(lambda: brokers[0].call(lambda: machine.groups[group].epoch) > epoch)
    answer = again.ask(CONSUMER_GROUP_HEARTBEAT, heartbeat(epoch), 1)
    assert (answer.error_code, answer.member_epoch) == (NONE, epoch), "nothing new to the member"
    describes.send(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group]), 1)
    until_held(brokers[0], 2)
    overtake(cluster, 2)
    assert joins.receive().error_code == GONE
    refused = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert describes.receive().groups[0].error_code == refused
    wait_until(lambda: is_served(brokers[1], GROUP_OFFSETS, group))
    with Wire(brokers[1].address) as other:
        request = ConsumerGroupDescribeRequest([group])
        (found,) = other.ask(CONSUMER_GROUP_DESCRIBE, request, 1).groups
        assert found.group_epoch == epoch
        answer = other.ask(CONSUMER_GROUP_HEARTBEAT, heartbeat(epoch), 1)
        assert (answer.error_code, answer.member_epoch) == (NONE, epoch)


def test_members_keep_their_sessions_while_no_flush_ends(world, cluster, brokers, wires):
    """A heartbeat that tells its member nothing new does not wait (``Decision.is_known``)."""
    commits, beats, _ = wires
    group, other = key_at(0, "session"), key_at(0, "beside")
    member = Member(brokers[0], group=group)
    member.join()
    member.sync()
    cluster.hold_commits(0)
    send_commit(commits, other, 1)
    wait_until(lambda: in_memory(brokers[0], other) == 1)
    request = HeartbeatRequest(group, member.generation, member.id)
    for _ in range(15):  # Longer than the session.
        world.sleep(5)
        assert beats.ask(HEARTBEAT, request, 3).error_code == NONE
    assert not is_readable(commits.socket, 0)
    cluster.release_commits(0)
    assert committed(commits) == NONE
    assert beats.ask(HEARTBEAT, request, 3).error_code == NONE
