"""A member of a classic consumer group, blocking, in one thread: join, heartbeat, commit, leave.

Rules of this file:

1. Only offsets of printed records are committed, so a group reads every record at least once,
   even after a crash.
2. A member that the coordinator does not know any more joins again, at the committed offsets.
3. It offers the assignor "range" only, which every client has; as leader it assigns by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Final, TypeVar

from barnabas.broker.admin.exchange import Rejected, TopicPartition, check, partition_text
from barnabas.broker.admin.groups import commits_of
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.group_view import committed_offsets
from barnabas.broker.cli.interruption import Wait
from barnabas.broker.cli.records.group_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    share_out,
)
from barnabas.broker.cli.retries import patiently
from barnabas.broker.client.brokers import GROUP
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
)
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.versions import OFFSET_COMMIT_BY_NAME
from barnabas.storage.runtime.clock import monotonic, sleep

Request = TypeVar("Request")
Response = TypeVar("Response")

SESSION_TIMEOUT_MS: Final = 45_000
HEARTBEAT_SECONDS: Final = 3.0
JOIN_SECONDS_MAX: Final = 600.0
"""Maximum time for a rebalance: the rebalance timeouts of other members apply."""

_PAUSE_SECONDS: Final = 0.02
_PROTOCOL_TYPE: Final = "consumer"
_ASSIGNOR: Final = "range"
_FORGOTTEN = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)
_BEGIN_AGAIN = _FORGOTTEN | {ErrorCode.REBALANCE_IN_PROGRESS}


class Rebalancing(Exception):
    """The group is in a rebalance: call ``join`` again."""


class GroupMember:
    """One member that reads some topics."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: list[str],
        wait: Wait = nullcontext,
    ) -> None:
        """``wait`` wraps each call that can last as long as other members need."""
        self._wait = wait
        self._cluster = cluster
        self._group_id = group_id
        self._topics = topics
        self._connection: Connection | None = None
        self._asking = False
        self._member_id = ""
        self._generation = -1
        self._heartbeat_due_s = 0.0

    # ----------------------------------------------------------------------------- connection

    def _coordinator(self) -> Connection:
        if self._connection is None:
            node_id = self._cluster.coordinator_ids(GROUP, [self._group_id])[self._group_id]
            self._connection = self._cluster.connect(node_id, JOIN_SECONDS_MAX)
        return self._connection

    def _ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Send a request to the coordinator; connect again if Ctrl-C interrupted the last one."""
        return self._with_coordinator(lambda broker: broker.ask(api, request, at_most))

    def _with_coordinator(self, ask: Callable[[Connection], Response]) -> Response:
        if self._asking:
            self._disconnect()
        self._asking = True
        try:
            answer = ask(self._coordinator())
        except Unreachable:
            self._disconnect()
            raise
        self._asking = False
        return answer

    def _check(self, code: int) -> None:
        """Raise Rebalancing or Rejected for an error code; look for the coordinator if it moved."""
        if code in _FORGOTTEN:
            self._generation = -1
            if code != ErrorCode.ILLEGAL_GENERATION:
                self._member_id = ""
        if code in _BEGIN_AGAIN:
            raise Rebalancing
        if code == ErrorCode.NOT_COORDINATOR:
            self._disconnect()
        check(self._group_id, code)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ----------------------------------------------------------------------------------- join

    def join(self) -> list[TopicPartition]:
        """Join, wait for the others, and return this member's partitions."""
        while True:
            try:
                assigned = patiently(self._cluster, self._join_once, self._wait)
            except Rebalancing:
                with self._wait():
                    sleep(_PAUSE_SECONDS)
                continue
            self._heartbeat_due_s = monotonic() + HEARTBEAT_SECONDS
            return assigned

    def _join_once(self) -> list[TopicPartition]:
        request = JoinGroupRequest(
            self._group_id,
            SESSION_TIMEOUT_MS,
            SESSION_TIMEOUT_MS,
            self._member_id,
            None,
            _PROTOCOL_TYPE,
            [JoinGroupRequestProtocol(_ASSIGNOR, encode_subscription(self._topics))],
            None,
        )
        # The first response, which comes at once, brings the id without which one cannot leave.
        with self._wait() if self._member_id else nullcontext():
            joined = self._ask(JOIN_GROUP, request)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            raise Rebalancing
        self._check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        return self._sync(joined)

    def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        is_leader = joined.leader == joined.member_id
        request = SyncGroupRequest(
            self._group_id,
            self._generation,
            self._member_id,
            None,
            _PROTOCOL_TYPE,
            joined.protocol_name,
            self._assignments(joined) if is_leader else [],
        )
        with self._wait():
            synced = self._ask(SYNC_GROUP, request)
        self._check(synced.error_code)
        return decode_assignment(synced.assignment)

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Assign, as leader, the partitions of all topics to the members."""
        subscribed: dict[str, list[str]] = defaultdict(list)
        for member in joined.members:
            for topic in decode_subscription(member.metadata):
                subscribed[topic].append(member.member_id)
        shares: dict[str, dict[str, list[int]]] = {each.member_id: {} for each in joined.members}
        for found in self._cluster.topics(sorted(subscribed)):
            topic = found.name or ""
            for member_id, numbers in share_out(
                len(found.partitions), sorted(subscribed[topic])
            ).items():
                shares[member_id][topic] = numbers
        return [
            SyncGroupRequestAssignment(member_id, encode_assignment(share))
            for member_id, share in shares.items()
        ]

    # ------------------------------------------------------------------------------- being in

    def heartbeat(self) -> None:
        """Send a heartbeat, if it is due; raises Rebalancing."""
        if monotonic() < self._heartbeat_due_s:
            return
        self._heartbeat_due_s = monotonic() + HEARTBEAT_SECONDS
        patiently(self._cluster, self._heartbeat_once, self._wait)

    def _heartbeat_once(self) -> None:
        request = HeartbeatRequest(self._group_id, self._generation, self._member_id, None)
        self._check(self._ask(HEARTBEAT, request).error_code)

    def committed(self) -> dict[TopicPartition, int]:
        """Return the offsets that the group has committed."""
        return patiently(self._cluster, self._committed_once)

    def _committed_once(self) -> dict[TopicPartition, int]:
        return self._with_coordinator(lambda broker: committed_offsets(broker, self._group_id))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets; raises Rebalancing if this member has lost its partitions."""
        if offsets:
            patiently(self._cluster, lambda: self._commit_once(offsets))

    def _commit_once(self, offsets: Mapping[TopicPartition, int]) -> None:
        request = OffsetCommitRequest(
            self._group_id, self._generation, self._member_id, None, -1, commits_of(offsets)
        )
        for topic in self._ask(OFFSET_COMMIT, request, OFFSET_COMMIT_BY_NAME).topics:
            for each in topic.partitions:
                if each.error_code in _FORGOTTEN:
                    self._check(each.error_code)
                # A commit during a rebalance counts, as long as the generation is the same.
                if each.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                    check(partition_text((topic.name, each.partition_index)), each.error_code)

    def leave(self) -> None:
        """Send LeaveGroup, so that the other members do not wait for the session timeout."""
        if self._member_id:
            members = [MemberIdentity(self._member_id, None, None)]
            with suppress(Unreachable, Rejected):  # Then the end of the session does it.
                self._ask(LEAVE_GROUP, LeaveGroupRequest(self._group_id, "", members))
        self._disconnect()
