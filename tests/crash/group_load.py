"""Group operations while the broker is killed, and the state that each group must have after."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.requests import codes_of, fetch_offsets_request

TOPIC = "committed"
PARTITIONS = 6
IN_FLIGHT = 8
OK = ErrorCode.NONE
LOAD_SECONDS_MAX = 90
REBALANCE_MS = 1000
"""Session and rebalance timeout of a member: a client that joined and does not sync delays others
for at most this long."""

Offsets = dict[int, tuple[int, str]]
"""Offset and metadata by partition."""


def have_worked(workers: Sequence[Worker], answered: Sequence[int]) -> bool:
    """Whether each has had some answers, and all together many, since ``answered``."""
    new = [worker.answered - before for worker, before in zip(workers, answered, strict=True)]
    return min(new) >= 3 and sum(new) >= 8 * len(workers)


def fetch(client: WireClient, group: str) -> Offsets:
    """All that a group has committed, once its coordinator has loaded it."""
    request = fetch_offsets_request(group, stable=True)
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    while True:
        (answer,) = client.ask(OFFSET_FETCH, request, 8).groups
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert answer.error_code == OK
    return {
        each.partition_index: (each.committed_offset, each.metadata)
        for topic in answer.topics
        for each in topic.partitions
    }


def commit_request(group: str, offsets: Offsets, **who: Any) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition, offset, -1, metadata)
        for partition, (offset, metadata) in offsets.items()
    ]
    topic = OffsetCommitRequestTopic(TOPIC, partitions=partitions)
    return OffsetCommitRequest(group, topics=[topic], **who)


def codes(response: Any) -> set[int]:
    return set(codes_of(response))


@dataclass
class Keeper:
    """Commits, deletes offsets and deletes its group, several requests in flight.

    A group's requests take effect in order. The state after a kill is therefore the result of a
    prefix of them, and the prefix contains every acknowledged request.
    """

    group: str
    random: Random
    states: deque[Offsets] = field(default_factory=lambda: deque([{}]))
    """The state after the last acknowledged request, then after each request in flight."""
    answered: int = 0
    number: int = 0

    def run(self, broker: BarnabasProcess) -> None:
        try:
            with WireClient(broker) as client:
                self.check(client)
                while True:
                    while len(self.states) <= IN_FLIGHT:
                        self._send(client)
                    self._note(client.receive())
        except OSError:
            return

    def check(self, client: WireClient) -> None:
        """Check that the broker has one of the states, which is certain from then on."""
        found = fetch(client, self.group)
        assert found in self.states, (self.group, found, self.states)
        self.states = deque([found])

    def _send(self, client: WireClient) -> None:
        state = dict(self.states[-1])
        chance = self.random.random()
        partitions = self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))
        if chance < 0.8:
            self.number += 1
            metadata = "x" * self.random.choice((0, 5, 300, 4000))
            offsets = dict.fromkeys(partitions, (self.number, metadata))
            state.update(offsets)
            client.send(OFFSET_COMMIT, commit_request(self.group, offsets), 8)
        elif chance < 0.93:
            for each in partitions:
                state.pop(each, None)
            places = [OffsetDeleteRequestPartition(each) for each in partitions]
            topic = OffsetDeleteRequestTopic(TOPIC, places)
            client.send(OFFSET_DELETE, OffsetDeleteRequest(self.group, [topic]), 0)
        else:
            state.clear()
            client.send(DELETE_GROUPS, DeleteGroupsRequest([self.group]), 2)
        self.states.append(state)

    def _note(self, response: Any) -> None:
        before = self.states.popleft()
        there = OK if before else ErrorCode.GROUP_ID_NOT_FOUND
        if hasattr(response, "results"):
            assert response.results[0].error_code == there, (self.group, response)
        elif hasattr(response, "error_code"):
            assert response.error_code == there, (self.group, response)
            assert codes(response) <= {OK}
        else:
            assert codes(response) == {OK}, (self.group, response)
        self.answered += 1


@dataclass
class ClassicMember:
    """The only member of a classic group: joins, gets its assignment, commits, leaves."""

    group: str
    random: Random
    member_id: str = ""
    generation: int = -1
    assignment: bytes = b""
    is_certain: bool = True
    """Whether no request was in flight that could have changed the group."""
    committed: Offsets = field(default_factory=dict)
    under_way: Offsets | None = None
    answered: int = 0
    generations: int = 0

    def run(self, broker: BarnabasProcess) -> None:
        try:
            with WireClient(broker) as client:
                self.check(client)
                while True:
                    self._step(client)
                    self.answered += 1
        except OSError:
            return

    def check(self, client: WireClient) -> None:
        """Being a member with this assignment has outlived the kill, and so have the offsets."""
        found = fetch(client, self.group)
        assert found in (self.committed, self.under_way), (self.group, found, self)
        self.committed, self.under_way = found, None
        if self.member_id and self.is_certain:
            request = HeartbeatRequest(self.group, self.generation, self.member_id)
            assert client.ask(HEARTBEAT, request, 3).error_code == OK, self
            synced = client.ask(SYNC_GROUP, self._sync_request([]), 3)
            assert (synced.error_code, synced.assignment) == (OK, self.assignment), self
            stale = commit_request(
                self.group,
                {0: (0, "")},
                member_id=self.member_id,
                generation_id_or_member_epoch=self.generation - 1,
            )
            refused = codes(client.ask(OFFSET_COMMIT, stale, 8))
            assert refused == {ErrorCode.ILLEGAL_GENERATION}, "a zombie may commit (O5)"

    def _step(self, client: WireClient) -> None:
        if not self.is_certain or not self.member_id or self.random.random() < 0.1:
            self._join(client)
        elif self.random.random() < 0.05:
            self._leave(client)
        else:
            self._commit(client)

    def _join(self, client: WireClient) -> None:
        self.is_certain = False
        protocol = JoinGroupRequestProtocol("range", bytes(self.random.randint(1, 500)))
        request = JoinGroupRequest(
            self.group, 60_000, REBALANCE_MS, self.member_id, None, "consumer", [protocol]
        )
        joined = client.ask(JOIN_GROUP, request, 3)
        joined_s = time.monotonic()
        if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            return
        assert joined.error_code == OK, joined
        self.member_id, self.generation = joined.member_id, joined.generation_id
        if joined.leader != self.member_id:
            # The broker still waits for a client that joined before a kill: remove it.
            self._leave(client, joined.leader)
            return
        for each in joined.members:
            if each.member_id != self.member_id:
                self._leave(client, each.member_id)
                return
        assignment = self.random.randbytes(self.random.randint(1, 500))
        mine = [SyncGroupRequestAssignment(self.member_id, assignment)]
        synced = client.ask(SYNC_GROUP, self._sync_request(mine), 3)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return
        took_ms = (time.monotonic() - joined_s) * 1000
        # The answer may have been on its way for as long.
        if synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID and took_ms > REBALANCE_MS / 2:
            self.member_id = ""  # On a busy machine it came too late.
            return
        assert (synced.error_code, synced.assignment) == (OK, assignment), synced
        self.assignment = assignment
        self.is_certain = True
        self.generations += 1

    def _sync_request(self, assignments: list[SyncGroupRequestAssignment]) -> SyncGroupRequest:
        return SyncGroupRequest(
            self.group, self.generation, self.member_id, assignments=assignments
        )

    def _leave(self, client: WireClient, member_id: str = "") -> None:
        self.is_certain = False
        response = client.ask(
            LEAVE_GROUP, LeaveGroupRequest(self.group, member_id or self.member_id), 2
        )
        assert response.error_code in (OK, ErrorCode.UNKNOWN_MEMBER_ID)
        if not member_id:
            self.member_id = ""

    def _commit(self, client: WireClient) -> None:
        who = {
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.generation,
        }
        offset = self.answered + 1
        new = {self.random.randrange(PARTITIONS): (offset, "")}
        self.under_way = self.committed | new
        response = client.ask(OFFSET_COMMIT, commit_request(self.group, new, **who), 8)
        assert codes(response) == {OK}, (self, response)
        self.committed, self.under_way = self.under_way, None


@dataclass
class ConsumerMember:
    """A member of a consumer group (KIP-848) that joins, is given everything, and leaves."""

    group: str
    random: Random
    number: int = 0
    epoch: int = 0
    owned: list[TopicPartitions] = field(default_factory=list)
    is_certain: bool = False
    answered: int = 0
    generations: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.group}-{self.number}"

    def run(self, broker: BarnabasProcess) -> None:
        try:
            with WireClient(broker) as client:
                self.check(client)
                while True:
                    self._step(client)
                    self.answered += 1
        except OSError:
            return

    def check(self, client: WireClient) -> None:
        """Check that a member keeps the epoch it received, after a kill."""
        fetch(client, self.group)  # Waits until the group is loaded.
        if self.is_certain:
            response = self._beat(client, self.epoch)
            assert response.error_code == OK, (self, response)
            assert response.member_epoch >= self.epoch, (self, response)
            self._take_in(response)
            who = {"member_id": self.member_id, "generation_id_or_member_epoch": self.epoch}
            request = commit_request(self.group, {0: (self.answered, "")}, **who)
            assert codes(client.ask(OFFSET_COMMIT, request, 9)) == {OK}, self

    def _step(self, client: WireClient) -> None:
        if not self.is_certain:
            self._leave(client)  # What a kill left in doubt.
            self.number += 1
            self.owned = []
            response = self._beat(client, 0, [TOPIC])
            assert response.error_code == OK, (self, response)
            self.generations += 1
        elif self.random.random() < 0.05:
            self.is_certain = False
            self._leave(client)
            return
        else:
            response = self._beat(client, self.epoch)
            assert response.error_code == OK, (self, response)
        self._take_in(response)
        self.is_certain = True

    def _take_in(self, response: Any) -> None:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = response.assignment.topic_partitions

    def _beat(self, client: WireClient, epoch: int, topics: list[str] | None = None) -> Any:
        self.is_certain = self.is_certain and epoch > 0
        request = ConsumerGroupHeartbeatRequest(
            self.group, self.member_id, epoch, rebalance_timeout_ms=5000
        )
        request.subscribed_topic_names = topics
        request.topic_partitions = self.owned
        return client.ask(CONSUMER_GROUP_HEARTBEAT, request, 1)

    def _leave(self, client: WireClient) -> None:
        response = self._beat(client, -1)
        gone = (OK, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
        assert response.error_code in gone, (self, response)


Worker = Keeper | ClassicMember | ConsumerMember
