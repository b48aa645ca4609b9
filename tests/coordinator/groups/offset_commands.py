"""The words of offsets_table.txt: states of a group, commands, and outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

from barnabas.coordinator.decision import (
    NO_PRODUCER_ID,
    Decision,
    Effect,
    LongDecision,
    Now,
    Record,
    Schedule,
    Timer,
    TransactionalProducer,
)
from barnabas.coordinator.groups.commands import (
    Caller,
    DeleteGroup,
    ExpireOffsets,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TopicsDeleted,
    TransactionalOffsetCommit,
)
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.group import CLASSIC, CONSUMER, Identity
from barnabas.coordinator.groups.offset_records import commit_record
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_metadata_record import GROUP_METADATA_RECORD, GroupMetadataKey
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_commit_record import OFFSET_COMMIT_RECORD
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)

GROUP = "group"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW = Now(wall_ms=1_700_000_000_000, tick_ms=5_000_000)
HEARD = Schedule(Timer(GROUP, "session", "member"), NOW.tick_ms + 10_000)
A, B, D = b"a" * 16, b"b" * 16, b"d" * 16
D_BEFORE = b"D" * 16


class Image:
    """The topics that exist: c was deleted, d was deleted and made again."""

    def __init__(self, **ids: bytes) -> None:
        self.ids = ids

    def version(self) -> int:
        return 0

    def names(self) -> list[str]:
        return list(self.ids)

    def topic_id(self, name: str) -> bytes | None:
        return self.ids.get(name)

    def name(self, topic_id: bytes) -> str | None:
        return next((name for name, each in self.ids.items() if each == topic_id), None)

    def partition_count(self, name: str) -> int:
        return 4 if name in self.ids else 0


IMAGE = Image(a=A, b=B, d=D)


@dataclass
class OtherGroup:
    """A group as the offsets' rules see it: what it answers is said by the state's line."""

    type_name: str
    state_name: str
    protocol_type: str = "consumer"
    subscribed: frozenset[str] = frozenset()
    empty_since: int = -1
    anonymous: ErrorCode = ErrorCode.NONE
    """The error code for a commit without an identity."""
    group_id: str = GROUP

    @property
    def is_empty(self) -> bool:
        return self.state_name == "Empty"

    def refuse_commit(self, identity: Identity) -> ErrorCode:
        if identity.generation < 0:
            return ErrorCode.NONE if identity.transactional else self.anonymous
        return self._refuse_stranger(identity)

    def refuse_partition(self, identity: Identity, topic_id: bytes, _partition: int) -> ErrorCode:
        late = identity.generation == 1 and topic_id == B
        return ErrorCode.STALE_MEMBER_EPOCH if late else ErrorCode.NONE

    def commit_effects(self, identity: Identity, now: Now) -> tuple[Effect, ...]:
        assert now == NOW
        return (HEARD,) if identity.member_id else ()

    def refuse_fetch(self, identity: Identity) -> ErrorCode:
        return ErrorCode.NONE if self.type_name == CLASSIC else self._refuse_stranger(identity)

    def _refuse_stranger(self, identity: Identity) -> ErrorCode:
        known = identity.member_id == "member" and not self.is_empty
        return ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed

    def empty_since_ms(self) -> int:
        return self.empty_since

    def tombstones(self) -> tuple[Record, ...]:
        return (Record(GROUP_METADATA_RECORD, GroupMetadataKey(self.group_id), None),)


UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
EMPTY_CLASSIC = OtherGroup(CLASSIC, "Empty")
STABLE_CLASSIC = OtherGroup(CLASSIC, "Stable", subscribed=frozenset("a"), anonymous=UNKNOWN)
STATES: dict[str, OtherGroup | None] = {
    "nothing": None,
    "simple": None,
    "empty": replace(EMPTY_CLASSIC, empty_since=NOW.wall_ms - HOUR_MS),
    "long-empty": replace(EMPTY_CLASSIC, empty_since=NOW.wall_ms - 8 * DAY_MS),
    "empty-unknown": EMPTY_CLASSIC,
    "empty-untyped": OtherGroup(CLASSIC, "Empty", "", empty_since=NOW.wall_ms - 8 * DAY_MS),
    "empty-bare": EMPTY_CLASSIC,
    "preparing": replace(STABLE_CLASSIC, state_name="PreparingRebalance"),
    "completing": replace(STABLE_CLASSIC, state_name="CompletingRebalance"),
    "stable": STABLE_CLASSIC,
    "pending": None,
    "empty-pending": replace(EMPTY_CLASSIC, empty_since=NOW.wall_ms - 8 * DAY_MS),
    "connect": OtherGroup(CLASSIC, "Stable", "connect", anonymous=UNKNOWN),
    "consumer-empty": OtherGroup(CONSUMER, "Empty"),
    "consumer": OtherGroup(CONSUMER, "Stable", subscribed=frozenset("a"), anonymous=UNKNOWN),
}
WITHOUT_OFFSETS = {"nothing", "empty-bare", "pending"}
PENDING = {"pending": ("a0", "c1"), "empty-pending": ("a0", "b2", "c1", "d0")}
"""The offsets that producer 5 has committed in an open transaction."""
PRODUCER = 5
EPOCH = 2


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    commit: bool


@dataclass
class Run:
    """A machine in one of the states, and what a command did to it."""

    state: str
    shard: GroupShard = field(init=False)
    written: list[Record | Marker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shard = GroupShard(GroupConfig(offset_metadata_max_bytes=20))
        group = STATES[self.state]
        if group is not None:
            self.shard.groups[GROUP] = group
        if self.state not in WITHOUT_OFFSETS:
            old, fresh = NOW.wall_ms - 8 * DAY_MS, NOW.wall_ms - HOUR_MS
            due, later = NOW.wall_ms - 1, NOW.wall_ms + 1
            for topic, partition, offset, at_ms, expire_ms, topic_id in (
                ("a", 0, 1, old, BY_RETENTION, A),
                ("a", 1, 2, fresh, BY_RETENTION, A),
                ("b", 0, 3, old, BY_RETENTION, B),
                ("b", 1, 4, fresh, BY_RETENTION, bytes(16)),
                ("b", 2, 5, fresh, due, B),
                ("b", 3, 6, old, later, B),
                ("c", 0, 7, fresh, BY_RETENTION, b"c" * 16),
                ("d", 0, 8, fresh, BY_RETENTION, D_BEFORE),
            ):
                committed = CommittedOffset(offset, 0, "", at_ms, expire_ms, topic_id, -1)
                self.apply(commit_record(GROUP, topic, partition, committed))
        for place in PENDING.get(self.state, ()):
            topic_id = IMAGE.ids.get(place[0], b"c" * 16)
            committed = CommittedOffset(90, 0, "", NOW.wall_ms - 1, BY_RETENTION, topic_id, -1)
            record = commit_record(GROUP, place[0], int(place[1:]), committed)
            self.apply(record._replace(producer_id=PRODUCER))

    def apply(self, record: Record) -> None:
        """Take in a record as it comes back from the log."""
        key, value = record.encode()
        kind = record.kind
        decoded = None if value is None else kind.decode_value(value)
        if kind is OFFSET_COMMIT_RECORD:
            producer_id = record.producer_id
            read = Record(kind, kind.decode_key(key), decoded, producer_id=producer_id)
            self.shard.apply(read, len(self.written))
            self.written.append(read)
        else:
            assert decoded is None
            del self.shard.groups[kind.decode_key(key).group]

    def end_transaction(self, marker: Marker) -> None:
        """Take in a marker."""
        self.shard.end_transaction(marker.producer_id, commit=marker.commit)
        self.written.append(marker)

    def decide(self, command: Any) -> Decision:
        """Decide twice: a decision changes nothing, and is the same each time."""
        before = self.offsets()
        decision = whole(self.shard.decide(command, NOW))
        assert whole(self.shard.decide(command, NOW)) == decision
        assert self.offsets() == before
        return decision

    def offsets(self) -> str:
        """Everything that is committed."""
        found = [
            f"{topic}{partition}={committed.offset}"
            for topic, partitions in self.shard.offsets.of_group(GROUP).items()
            for partition, committed in partitions.items()
        ]
        for topic, partition in self.shard.offsets.commits_of(GROUP):
            if self.shard.offsets.is_pending(GROUP, topic, partition):
                found.append(f"{topic}{partition}~")
        return " ".join(sorted(found)) or "-"

    def replayed(self) -> dict[str, Any]:
        """The offsets that a fresh machine has after the same records."""
        fresh = GroupShard(GroupConfig())
        for at, entry in enumerate(self.written):
            if isinstance(entry, Marker):
                fresh.end_transaction(entry.producer_id, commit=entry.commit)
            else:
                fresh.apply(entry, at)
        return {group: fresh.offsets.commits_of(group) for group in fresh.offsets.group_ids()}


def decided(decision: Decision) -> LongDecision:
    """Return the decision after all its steps."""
    assert decision.steps is not None
    while True:
        try:
            next(decision.steps)
        except StopIteration as done:
            return done.value


def whole(decision: Decision) -> Decision:
    """The decision itself, or what comes of its steps, as if it had been made at once."""
    if decision.steps is None:
        return decision
    assert decision == Decision(steps=decision.steps)
    made = decided(decision)
    assert [*made.records] == [*made.records]
    return Decision(made.response, tuple(made.records), effects=made.effects)


def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each decision that supports steps in steps, with one offset in each."""
    for module, size in ("offsets", "OFFSETS_PER_STEP"), ("offset_removal", "PLACES_PER_STEP"):
        monkeypatch.setattr(f"barnabas.coordinator.groups.{module}.MANY", -1)
        monkeypatch.setattr(f"barnabas.coordinator.groups.{module}.{size}", 1)


def command_of(text: str) -> Any:
    """Read a command: a verb, the caller, and places such as a0, or a0=5 with an offset."""
    verb, *words = text.split()
    if verb == "marker":
        return Marker(PRODUCER if "another" not in words else PRODUCER + 1, "commit" in words)
    if verb == "commit":
        return _commit(words)
    if verb == "commit-in-transaction":
        plain = _commit(words)
        producer = TransactionalProducer(PRODUCER, EPOCH)
        return TransactionalOffsetCommit(plain.caller, plain.request, producer)
    if verb in {"fetch", "fetch-unstable"}:
        return _fetch(words, require_stable=verb == "fetch")
    if verb == "delete-offsets":
        topics = [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(at) for at in indexes])
            for topic, indexes in _by_topic(words).items()
        ]
        return OffsetDelete(Caller("", "", 0), OffsetDeleteRequest(GROUP, topics))
    if verb == "delete-group":
        return DeleteGroup(GROUP)
    return {"expire": ExpireOffsets, "topics-deleted": TopicsDeleted}[verb](GROUP, IMAGE)


IDENTITIES = {
    "anonymous": (-1, ""),
    "member": (7, "member"),
    "late-member": (1, "member"),
    "stranger": (7, "stranger"),
}


def _commit(words: list[str]) -> OffsetCommit:
    version, who, *places = words
    generation, member_id = IDENTITIES[who]
    request = OffsetCommitRequest(GROUP, generation, member_id)
    for place in places:
        if place.startswith("keep-ms="):
            request.retention_time_ms = int(place.removeprefix("keep-ms="))
            continue
        name, _, rest = place.partition("=")
        offset, _, metadata = rest.partition(":")
        partition = OffsetCommitRequestPartition(int(name[1:]), int(offset), 3, metadata or None)
        topic_id = IMAGE.ids[name[0]]
        request.topics.append(OffsetCommitRequestTopic(name[0], topic_id, [partition]))
    return OffsetCommit(Caller("", "", int(version[1:])), request)


def _fetch(words: list[str], *, require_stable: bool) -> OffsetFetch:
    who, *places = words
    epoch, member_id = IDENTITIES[who]
    topics = [
        OffsetFetchRequestTopics(topic, partition_indexes=indexes)
        for topic, indexes in _by_topic(places).items()
    ]
    request = OffsetFetchRequestGroup(
        GROUP, member_id or None, epoch, None if places == ["all"] else topics
    )
    return OffsetFetch(Caller("", "", 9), request, require_stable, IMAGE)


def _by_topic(places: list[str]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for place in places:
        if place != "all":
            topics.setdefault(place[0], []).append(int(place[1:]))
    return topics


def shown_response(response: Any) -> str:
    """A response in the table's words."""
    if isinstance(response, OffsetCommitResponse):
        return _shown_codes(response.topics)
    if isinstance(response, OffsetDeleteResponse):
        return _named(response.error_code) or _shown_codes(response.topics) or "ok"
    if isinstance(response, OffsetFetchResponseGroup):
        assert response.group_id == GROUP
        found = [
            f"{topic.name}{each.partition_index}={_found(each)}"
            for topic in response.topics
            for each in topic.partitions
        ]
        return _named(response.error_code) or " ".join(found) or "no topics"
    if isinstance(response, ErrorCode):
        return _named(response) or "ok"
    assert response is None
    return "-"


def _found(each: Any) -> str:
    if each.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
        assert (each.committed_offset, each.committed_leader_epoch, each.metadata) == (-1, -1, "")
        return "unstable"
    assert each.error_code == ErrorCode.NONE
    if each.committed_offset == -1:
        assert (each.committed_leader_epoch, each.metadata) == (-1, "")
        return "none"
    return str(each.committed_offset)


def _shown_codes(topics: list[Any]) -> str:
    return " ".join(
        f"{topic.name}{each.partition_index}:{_named(each.error_code) or 'ok'}"
        for topic in topics
        for each in topic.partitions
    )


def _named(code: int) -> str:
    return ErrorCode(code).name if code else ""


def shown_records(decision: Decision) -> str:
    """Return the records and effects of a decision, in the table's words."""
    shown = [_shown_record(record) for record in decision.records]
    assert decision.changes == ()
    assert decision.effects in {(), (HEARD,)}
    writer = NO_PRODUCER_ID if decision.producer is None else decision.producer.producer_id
    assert {record.producer_id for record in decision.records} <= {writer}
    if decision.effects:
        shown.append("+heard")
    return " ".join(shown) or "-"


def _shown_record(record: Record) -> str:
    if record.kind is GROUP_METADATA_RECORD:
        assert record.value is None
        return "-group"
    place = f"{record.key.topic}{record.key.partition}"
    value = record.value
    if value is None:
        return f"-{place}"
    assert value.commit_timestamp == NOW.wall_ms
    assert value.topic_id == IMAGE.ids[record.key.topic]
    if record.version == 1:
        return f"{place}={value.offset}!{value.expire_timestamp - NOW.wall_ms}"
    assert (record.version, value.expire_timestamp) == (4, BY_RETENTION)
    return f"{place}={value.offset}{'~' if record.producer_id == PRODUCER else ''}"
