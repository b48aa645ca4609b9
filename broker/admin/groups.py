"""Changes of groups by operators: committed offsets, and the groups themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.broker.admin.exchange import (
    Coordinator,
    Exchange,
    TopicPartition,
    check,
    check_partition,
    gathered,
    send,
)
from barnabas.broker.admin.offsets import Offsets
from barnabas.broker.client.brokers import GROUP
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
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
from barnabas.protocol.versions import OFFSET_COMMIT_BY_NAME


def commits_of(offsets: Mapping[TopicPartition, int]) -> list[OffsetCommitRequestTopic]:
    """Return the topics of an OffsetCommit."""
    commits = gathered(
        (topic, OffsetCommitRequestPartition(index, offset, -1, ""))
        for (topic, index), offset in sorted(offsets.items())
    )
    return [OffsetCommitRequestTopic(topic, partitions=commits[topic]) for topic in commits]


def commit(group_id: str, offsets: Offsets) -> Exchange[None]:
    """Commit offsets for a group without members, which may not exist; raises Rejected."""
    request = OffsetCommitRequest(group_id, topics=commits_of(offsets))
    to = Coordinator(GROUP, group_id)
    answer = yield from send(OFFSET_COMMIT, request, to, OFFSET_COMMIT_BY_NAME)
    for topic in answer.topics:
        for each in topic.partitions:
            check_partition((topic.name, each.partition_index), each.error_code)


def delete(group_id: str) -> Exchange[None]:
    """Delete a group without members, and its offsets; raises Rejected."""
    request = DeleteGroupsRequest([group_id])
    answer = yield from send(DELETE_GROUPS, request, Coordinator(GROUP, group_id))
    for each in answer.results:
        check(group_id, each.error_code)


def delete_offsets(
    group_id: str, partitions: Iterable[TopicPartition]
) -> Exchange[dict[TopicPartition, int]]:
    """Delete committed offsets of a group; return the error codes by partition, 0 for none."""
    wanted = gathered((topic, OffsetDeleteRequestPartition(index)) for topic, index in partitions)
    topics = [OffsetDeleteRequestTopic(*each) for each in wanted.items()]
    request = OffsetDeleteRequest(group_id, topics)
    answer = yield from send(OFFSET_DELETE, request, Coordinator(GROUP, group_id))
    check(group_id, answer.error_code)
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }
