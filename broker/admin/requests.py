"""Requests of operators, in which partitions stand by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar

from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

K = TypeVar("K")
V = TypeVar("V")
TopicPartition: TypeAlias = tuple[str, int]
"""Topic and partition."""


def gathered(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second items of pairs, gathered by the first ones, in order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def commits_of(offsets: Mapping[TopicPartition, int]) -> list[OffsetCommitRequestTopic]:
    """Return the topics of an OffsetCommit."""
    commits = (
        (topic, OffsetCommitRequestPartition(index, offset, -1, ""))
        for (topic, index), offset in sorted(offsets.items())
    )
    return [
        OffsetCommitRequestTopic(name=topic, partitions=partitions)
        for topic, partitions in gathered(commits).items()
    ]


def looked_up(partitions: Iterable[TopicPartition], time_ms: int) -> list[ListOffsetsTopic]:
    """Return the topics of a ListOffsets."""
    wanted = ((topic, ListOffsetsPartition(index, -1, time_ms)) for topic, index in partitions)
    return [ListOffsetsTopic(*each) for each in gathered(wanted).items()]


def deletions_of(partitions: Iterable[TopicPartition]) -> list[OffsetDeleteRequestTopic]:
    """Return the topics of an OffsetDelete."""
    wanted = ((topic, OffsetDeleteRequestPartition(index)) for topic, index in partitions)
    return [OffsetDeleteRequestTopic(*each) for each in gathered(wanted).items()]
