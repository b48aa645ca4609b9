"""Start and end offsets of partitions, and their offsets at a time, from their leaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from barnabas.broker.admin.exchange import (
    Exchange,
    Partition,
    TopicPartition,
    by_leader,
    check_partition,
    gathered,
    partition_text,
    send,
)
from barnabas.broker.admin.positions import BadPosition, Position
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

LATEST, EARLIEST = -1, -2
UNCOMMITTED: Final = "read_uncommitted"
COMMITTED: Final = "read_committed"
ISOLATION: Final = {UNCOMMITTED: 0, COMMITTED: 1}

Offsets: TypeAlias = dict[TopicPartition, int]


def offsets_at(
    partitions: Sequence[Partition], timestamp: int, isolation: str = UNCOMMITTED
) -> Exchange[Offsets]:
    """Return the first offset at or after ``timestamp`` (ms, LATEST or EARLIEST) of partitions.

    -1 where there is no such record. Raises Rejected.
    """
    found: Offsets = {}
    for leader_id, led in by_leader(partitions).items():
        wanted = gathered(
            (each.topic, ListOffsetsPartition(each.number, -1, timestamp)) for each in led
        )
        topics = [ListOffsetsTopic(*each) for each in wanted.items()]
        request = ListOffsetsRequest(-1, ISOLATION[isolation], topics)
        for topic in (yield from send(LIST_OFFSETS, request, leader_id)).topics:
            for each in topic.partitions:
                check_partition((topic.name, each.partition_index), each.error_code)
                found[topic.name, each.partition_index] = each.offset
    return found


def offsets_of(
    position: Position, partitions: Sequence[Partition], isolation: str = UNCOMMITTED
) -> Exchange[Offsets]:
    """Return the offset of a position in partitions; raises Rejected.

    Raises KafkaError OFFSET_OUT_OF_RANGE if a partition does not have the offset.
    """
    starts = yield from offsets_at(partitions, EARLIEST, isolation)
    if position.at_beginning:
        return starts
    ends = yield from offsets_at(partitions, LATEST, isolation)
    time_ms = position.time_ms
    found = {} if time_ms is None else (yield from offsets_at(partitions, time_ms, isolation))
    offsets = {}
    for each, end in ends.items():
        try:
            offsets[each] = position.within(starts[each], end, found.get(each))
        except BadPosition as problem:
            words = f"{partition_text(each)}: {problem}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, words) from None
    return offsets


def moved_by(step: int, offsets: Offsets, partitions: Sequence[Partition]) -> Exchange[Offsets]:
    """Return the offsets of partitions, ``step`` further, between start and end."""
    starts = yield from offsets_at(partitions, EARLIEST)
    ends = yield from offsets_at(partitions, LATEST)
    return {each: min(max(offsets[each] + step, starts[each]), ends[each]) for each in starts}
