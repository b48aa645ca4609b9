"""OffsetCommit, OffsetFetch and OffsetDelete for one group.

A group without members may commit and fetch like any other: a "simple" group, of consumers that
assign themselves, is nothing but its offsets.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Decision, LongDecision, Now, Record
from barnabas.coordinator.groups.commands import (
    Caller,
    LongOffsetCommit,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TransactionalOffsetCommit,
)
from barnabas.coordinator.groups.family import ANY_GROUP, Family
from barnabas.coordinator.groups.group import CONSUMERS, Group, Identity
from barnabas.coordinator.groups.offset_records import APPLIERS, commit_record, tombstone
from barnabas.coordinator.groups.offset_table import BY_RETENTION, MANY, CommittedOffset, Partitions
from barnabas.coordinator.groups.pending_offsets import OffsetKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.wire import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

GROUP_ID_NOT_FOUND_SINCE: Final = 9
METADATA_MAX_BYTES: Final = 32_767
"""Maximum length of the record's string, regardless of ``offset.metadata.max.bytes``."""
NO_RETENTION_TIME: Final = -1
OFFSETS_PER_STEP: Final = 500
"""Number of offsets in a response before other work gets a turn: about a millisecond's work."""
LATEST_MS: Final = 2**63 - 1
"""The latest time that a record can contain: a longer retention ends at it."""


# ------------------------------------------------------------------------------------ OffsetCommit


def commit(shard: GroupTable, command: OffsetCommit, now: Now) -> Decision:
    """Commit the partitions with valid metadata, all in one decision."""
    request = command.request
    group = shard.groups.get(request.group_id)
    identity = _identity_of(command.caller, request)
    error = _refuse_commit(shard, group, identity, request)
    if error:
        return Decision(refuse_commit(request, error))
    response, records = _commits(request, now, shard.config.offset_metadata_max_bytes)
    effects = group.commit_effects(identity, now) if group is not None else ()
    return Decision(response, records, effects=effects)


def commit_long(shard: GroupTable, command: LongOffsetCommit, now: Now) -> Decision:
    """Commit very many partitions in one decision, made in steps."""
    return Decision(steps=_commit_in_steps(shard, command, now))


def _commit_in_steps(
    shard: GroupTable, command: LongOffsetCommit, now: Now
) -> Generator[None, None, LongDecision]:
    """Commit in steps; every part is checked first, since one partition may refuse all."""
    request = command.parts[0]
    group = shard.groups.get(request.group_id)
    identity = _identity_of(command.caller, request)
    for part in command.parts:
        error = _refuse_commit(shard, group, identity, part)
        if error:
            return LongDecision(error)
        yield
    max_characters = shard.config.offset_metadata_max_bytes
    responses: list[OffsetCommitResponse] = []
    for part in command.parts:
        response, _ = _commits(part, now, max_characters)
        responses.append(response)
        yield
    records = _RecordsInParts(command.parts, now, max_characters)
    effects = group.commit_effects(identity, now) if group is not None else ()
    return LongDecision(responses, records, effects)


def _identity_of(caller: Caller, request: OffsetCommitRequest) -> Identity:
    return Identity(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        caller.api_version,
    )


class _RecordsInParts:
    """The records of a commit, those of one part at a time."""

    def __init__(
        self, parts: tuple[OffsetCommitRequest, ...], now: Now, max_characters: int
    ) -> None:
        self._parts = parts
        self._now = now
        self._max_characters = max_characters

    def __iter__(self) -> Iterator[Record]:
        for part in self._parts:
            yield from _commits(part, self._now, self._max_characters)[1]


def commit_in_transaction(
    shard: GroupTable, command: TransactionalOffsetCommit, now: Now
) -> Decision:
    """Commit as part of a transaction: the offsets are hidden until its marker (O1, KIP-447)."""
    request = command.request
    identity = Identity(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        command.caller.api_version,
        transactional=True,
    )
    error = _refuse_commit(shard, shard.groups.get(request.group_id), identity, request)
    if error == ErrorCode.STALE_MEMBER_EPOCH:
        error = ErrorCode.ILLEGAL_GENERATION  # No version before 6 knows the other.
    if error:
        return Decision(refuse_commit(request, error))
    response, records = _commits(request, now, shard.config.offset_metadata_max_bytes)
    producer = command.producer
    records = tuple(record._replace(producer_id=producer.producer_id) for record in records)
    return Decision(response, records, producer=producer)


def _commits(
    request: OffsetCommitRequest, now: Now, max_characters: int
) -> tuple[OffsetCommitResponse, tuple[Record, ...]]:
    """Return the response and the records of an allowed commit."""
    expire_ms = BY_RETENTION
    if request.retention_time_ms != NO_RETENTION_TIME:
        expire_ms = min(now.wall_ms + request.retention_time_ms, LATEST_MS)
    topics = []
    records = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            code = ErrorCode.NONE
            metadata = asked.committed_metadata or ""
            if metadata and not _fits(metadata, max_characters):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                committed = CommittedOffset(
                    asked.committed_offset,
                    asked.committed_leader_epoch,
                    metadata,
                    now.wall_ms,
                    expire_ms,
                    topic.topic_id,
                    log_offset=-1,
                )
                records.append(
                    commit_record(request.group_id, topic.name, asked.partition_index, committed)
                )
            answers.append(OffsetCommitResponsePartition(asked.partition_index, code))
        topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, answers))
    return OffsetCommitResponse(topics=topics), tuple(records)


def refuse_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Return a response with one error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(partition.partition_index, code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _refuse_commit(
    shard: GroupTable, group: Group | None, identity: Identity, request: OffsetCommitRequest
) -> ErrorCode:
    """Return the error of a commit as a whole, or NONE (O5)."""
    if group is None:
        return _refuse_commit_without_group(shard, identity, request.group_id)
    error = group.refuse_commit(identity)
    if error:
        return error
    # One partition that may not be committed refuses them all, as in Apache Kafka 4.3.0.
    for topic in request.topics:
        for partition in topic.partitions:
            error = group.refuse_partition(identity, topic.topic_id, partition.partition_index)
            if error:
                return error
    return ErrorCode.NONE


def _refuse_commit_without_group(shard: GroupTable, identity: Identity, group_id: str) -> ErrorCode:
    if identity.generation < 0:
        return ErrorCode.NONE  # From an admin client, or a consumer that assigns itself.
    if shard.offsets.knows(group_id):
        return ErrorCode.UNKNOWN_MEMBER_ID  # To Kafka an empty classic group.
    if identity.api_version >= GROUP_ID_NOT_FOUND_SINCE:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def _fits(metadata: str, max_characters: int) -> bool:
    """Return whether metadata is short enough; like Kafka, it counts Java's characters."""
    units = len(metadata.encode("utf-16-le")) // 2
    return units <= max_characters and len(metadata.encode()) <= METADATA_MAX_BYTES


# ------------------------------------------------------------------------------------- OffsetFetch


def fetch(shard: GroupTable, command: OffsetFetch, _now: Now) -> Decision:
    """Return the committed offsets; a group that does not exist has none."""
    asked = command.request
    if asked.topics is None and (
        command.is_one_of_many or shard.offsets.count(asked.group_id) > MANY
    ):
        return Decision(steps=_fetch_all_in_steps(shard, command))
    error = _refuse_fetch(shard, command)
    if error:
        return Decision(OffsetFetchResponseGroup(asked.group_id, error_code=error))
    topics = shard.offsets.of_group(asked.group_id)
    image = command.topics
    if asked.topics is None:
        answers = [_all_of(name, image.topic_id(name), found) for name, found in topics.items()]
        answers = [topic for topic in answers if topic.partitions]
    else:
        answers = [
            _asked_of(topic, image.topic_id(topic.name), topics.get(topic.name, {}))
            for topic in asked.topics
        ]
    if command.require_stable:
        _mark_unstable(shard, asked.group_id, answers)
    return Decision(OffsetFetchResponseGroup(asked.group_id, answers))


def _fetch_all_in_steps(
    shard: GroupTable, command: OffsetFetch
) -> Generator[None, None, LongDecision]:
    """Fetch all offsets as of one moment, in steps, between which commits and markers may be
    applied.
    """
    yield  # Of very many groups, each starts when it is its turn.
    group_id = command.group_id
    error = _refuse_fetch(shard, command)
    if error:
        return LongDecision(OffsetFetchResponseGroup(group_id, error_code=error))
    everything = shard.offsets.snapshot(group_id)
    pending = shard.offsets.pending_places(group_id) if command.require_stable else {}
    answers = []
    steps = count(1)
    for name, partitions in everything.items():
        topic_id = command.topics.topic_id(name)
        topic = OffsetFetchResponseTopics(name, topic_id or ZERO_UUID)
        for index, committed in partitions.items():
            if next(steps) % OFFSETS_PER_STEP == 0:
                yield
            if not _is_there(committed, topic_id):
                continue
            if pending and OffsetKey(group_id, name, index) in pending:
                found = nothing_found(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            else:
                found = _found(index, committed)
            topic.partitions.append(found)
        if topic.partitions:
            answers.append(topic)
    return LongDecision(OffsetFetchResponseGroup(group_id, answers))


def _refuse_fetch(shard: GroupTable, command: OffsetFetch) -> ErrorCode:
    """Return the error of a fetch as a whole, or NONE."""
    asked = command.request
    group = shard.groups.get(asked.group_id)
    says_nothing = asked.member_id is None and asked.member_epoch < 0
    if group is None or says_nothing:
        return ErrorCode.NONE
    identity = Identity(
        asked.member_id or "", asked.member_epoch, api_version=command.caller.api_version
    )
    return group.refuse_fetch(identity)


def _all_of(name: str, topic_id: bytes | None, partitions: Partitions) -> OffsetFetchResponseTopics:
    answers = [
        _found(index, committed)
        for index, committed in partitions.items()
        if _is_there(committed, topic_id)
    ]
    return OffsetFetchResponseTopics(name, topic_id or ZERO_UUID, answers)


def _asked_of(
    topic: OffsetFetchRequestTopics, topic_id: bytes | None, partitions: Partitions
) -> OffsetFetchResponseTopics:
    answers = []
    for index in topic.partition_indexes:
        committed = partitions.get(index)
        if committed is not None and _is_there(committed, topic_id):
            answers.append(_found(index, committed))
        else:
            answers.append(nothing_found(index, ErrorCode.NONE))
    return OffsetFetchResponseTopics(topic.name, topic_id or ZERO_UUID, answers)


def _mark_unstable(
    shard: GroupTable, group_id: str, answers: list[OffsetFetchResponseTopics]
) -> None:
    """Return an error for offsets of an open transaction, so that the client retries (O3)."""
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    for topic in answers:
        for number, found in enumerate(topic.partitions):
            if shard.offsets.is_pending(group_id, topic.name, found.partition_index):
                topic.partitions[number] = nothing_found(found.partition_index, code)


def _is_there(committed: CommittedOffset, topic_id: bytes | None) -> bool:
    """Return whether the topic exists: offsets of a deleted topic are removed at once."""
    return topic_id is not None and committed.is_of(topic_id)


def _found(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        index, committed.offset, committed.leader_epoch, committed.metadata
    )


def nothing_found(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    """Return the response for a partition without a committed offset, or with an error."""
    return OffsetFetchResponsePartitions(index, -1, -1, "", code)


# ------------------------------------------------------------------------------------ OffsetDelete


def delete(shard: GroupTable, command: OffsetDelete, _now: Now) -> Decision:
    """Delete the offsets of topics that no member of the group reads."""
    request = command.request
    group = shard.groups.get(request.group_id)
    error = _refuse_delete(shard, group, request.group_id)
    if error:
        return Decision(OffsetDeleteResponse(error))
    topics = []
    # Named once each: a request may name a partition again and again.
    doomed: dict[tuple[str, int], None] = {}
    for topic in request.topics:
        in_use = group is not None and group.is_subscribed(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if in_use else ErrorCode.NONE
        answers = []
        for asked in topic.partitions:
            index = asked.partition_index
            answers.append(OffsetDeleteResponsePartition(index, code))
            if not in_use and shard.offsets.commits_at(request.group_id, topic.name, index):
                doomed[topic.name, index] = None
        topics.append(OffsetDeleteResponseTopic(topic.name, answers))
    records = tuple(tombstone(request.group_id, *place) for place in doomed)
    return Decision(OffsetDeleteResponse(topics=topics), records)


def _refuse_delete(shard: GroupTable, group: Group | None, group_id: str) -> ErrorCode:
    if group is None:
        known = shard.offsets.knows(group_id)
        return ErrorCode.NONE if known else ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty and group.protocol_type != CONSUMERS:
        return ErrorCode.NON_EMPTY_GROUP  # What its members read is not known here.
    return ErrorCode.NONE


OFFSETS: Final = Family(
    deciders={
        (OffsetCommit, ANY_GROUP): commit,
        (LongOffsetCommit, ANY_GROUP): commit_long,
        (TransactionalOffsetCommit, ANY_GROUP): commit_in_transaction,
        (OffsetFetch, ANY_GROUP): fetch,
        (OffsetDelete, ANY_GROUP): delete,
    },
    appliers=APPLIERS,
)
