"""A classic group: its members, its generation, and the requests that wait.

The group's last record holds the hard state: Empty, or Stable with assignments. A rebalance is
volatile: a restart in the middle of one restores the previous generation, and the members start
again (their sessions are measured from the start on).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.coordinator.decision import Effect, Now, Record, Schedule, Timer
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.group import CLASSIC, Identity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_metadata_record import GROUP_METADATA_RECORD, GroupMetadataKey

CONSUMER_PROTOCOL: Final = "consumer"
"""Protocol type of groups whose members say which topics they read."""

JOIN: Final = "join"
"""Timer: the time for members to join has expired."""
SYNC: Final = "sync"
"""Timer: the time for members to fetch their assignments has expired."""
SESSION: Final = "session"
"""Timer of one member: its session has expired."""
SIZE: Final = "size"
"""Timer for a group that has more members than it may have."""


class Member(NamedTuple):
    """A member as it joined."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names and metadata, in the member's order of preference; each name once."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether the member has not completed a rebalance yet; then it may not know its id."""

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for ``protocol``, or empty if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def settled(self) -> Member:
        """Return the member as one that has completed a rebalance."""
        return self._replace(is_new=False)

    def vote(self, candidates: set[str]) -> str:
        """Return the member's most preferred protocol among the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True)
class ClassicGroup:
    """See the head of this file. Only ``apply`` and changes replace a group; see turn.py."""

    group_id: str
    state: State = State.EMPTY
    previous_state: State = State.EMPTY
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str = ""
    """Protocol type, or empty if no member has ever joined."""
    protocol_name: str | None = None
    """The protocol that the generation agreed on."""
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member id by instance id."""
    supporters: dict[str, int] = field(default_factory=dict)
    """Number of members that support each protocol."""
    topics: frozenset[str] | None = None
    """Topics of the generation's members, or None if they are not known."""
    stored: Record | None = None
    """The hard state: the group's last record."""
    pending: dict[str, None] = field(default_factory=dict)
    """Ids of members that have not joined under them yet."""
    joining: dict[str, int] = field(default_factory=dict)
    """Tickets of the waiting JoinGroup requests, by member id."""
    syncing: dict[str, int] = field(default_factory=dict)
    """Tickets of the waiting SyncGroup requests, by member id."""
    unsynced: dict[str, None] = field(default_factory=dict)
    """Members of the generation that have not asked for their assignment."""
    new_member_added: bool = False
    """Whether a member has joined since the initial delay was last extended."""
    delay_ms: int = 0
    """Length of the present initial delay."""
    remaining_ms: int = 0
    """Time by which the initial delays together may still be extended."""

    type_name = CLASSIC

    # ---------------------------------------------------------------- the interface of every group

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.state is State.EMPTY

    def refuse_commit(self, identity: Identity) -> ErrorCode:
        """Return the error of an offset commit by this member, or NONE if it may commit."""
        if identity.generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE  # An administrator, or a consumer that assigns itself.
        named = identity.member_id != "" or identity.instance_id is not None
        if identity.generation >= 0 or named:
            code = self.refuse_member(identity.member_id, identity.instance_id)
            if code:
                return code
            if identity.generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not identity.transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is State.COMPLETING_REBALANCE and not identity.transactional:
            # The member has learned of the new generation, but not of its assignment in it.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def refuse_partition(self, identity: Identity, topic_id: bytes, partition: int) -> ErrorCode:
        """Allow every partition: a classic member may commit any offset."""
        del identity, topic_id, partition
        return ErrorCode.NONE

    def refuse_fetch(self, identity: Identity) -> ErrorCode:
        """Allow every client to fetch offsets."""
        del identity
        return ErrorCode.NONE

    def commit_effects(self, identity: Identity, now: Now) -> tuple[Effect, ...]:
        """Return the effects of a commit: the member's session starts again."""
        member = self.members.get(identity.member_id)
        return () if member is None else (self.session_timer(member, now),)

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member may read this topic now; true if that is unknown."""
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.topics

    def empty_since_ms(self) -> int:
        """Wall time at which the group became empty, or -1 if unknown or not empty."""
        return self.state_since_ms if self.is_empty else -1

    def tombstones(self) -> tuple[Record, ...]:
        """Return the record that removes the group."""
        return (Record(GROUP_METADATA_RECORD, GroupMetadataKey(self.group_id), None),)

    # ------------------------------------------------------------------------------ about members

    def refuse_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return the error for ids that do not name a member, or NONE."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a client with these protocols can join the present members."""
        if self.state is State.EMPTY:
            return protocol_type != "" and any(True for _ in names)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.supporters.get(name, 0) == everybody for name in names
        )

    def selected_protocol(self) -> str:
        """Return the protocol with the most votes, out of those that all members support."""
        everybody = len(self.members)
        candidates = {name for name, count in self.supporters.items() if count == everybody}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def session_timer(self, member: Member, now: Now) -> Schedule:
        """Start a member's session again."""
        timer = Timer(self.group_id, SESSION, member.member_id)
        return Schedule(timer, now.tick_ms + member.session_timeout_ms)

    @property
    def all_have_joined(self) -> bool:
        """Whether every known member waits with JoinGroup."""
        return len(self.joining) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """Maximum time for a rebalance: the longest timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def copy(self) -> ClassicGroup:
        """Return a copy; changes of the copy do not change this group."""
        return ClassicGroup(
            self.group_id,
            self.state,
            self.previous_state,
            self.state_since_ms,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader_id,
            self.members.copy(),
            self.static_members.copy(),
            self.supporters.copy(),
            self.topics,
            self.stored,
            self.pending.copy(),
            self.joining.copy(),
            self.syncing.copy(),
            self.unsynced.copy(),
            self.new_member_added,
            self.delay_ms,
            self.remaining_ms,
        )
