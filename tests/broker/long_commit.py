"""An OffsetCommit of very many partitions."""

from __future__ import annotations

from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


def long_commit(group: str, offset: int, topics: int, partitions: int) -> OffsetCommitRequest:
    """Commit ``offset`` for ``partitions`` of each of ``topics``: ``topic-0``, ``topic-1``, ..."""
    return OffsetCommitRequest(
        group,
        topics=[
            OffsetCommitRequestTopic(
                f"topic-{number}",
                partitions=[
                    OffsetCommitRequestPartition(index, offset, committed_metadata="")
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )
