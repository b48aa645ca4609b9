"""Start and end offsets of partitions, and their offsets at a time, from their leaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeVar

from barnabas.broker.admin.requests import TopicPartition, looked_up
from barnabas.broker.cli.cluster_view import (
    Cluster,
    Partition,
    Rejected,
    by_leader,
    check,
    partition_text,
)
from barnabas.broker.cli.interruption import Wait
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import NotKafka, NotLetIn, Unreachable
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS, ListOffsetsRequest

T = TypeVar("T")

LATEST, EARLIEST = -1, -2
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}


def offsets_at(
    cluster: Cluster, partitions: Sequence[Partition], timestamp: int, isolation: str
) -> dict[TopicPartition, int]:
    """Return the first offset at or after ``timestamp`` (ms, LATEST or EARLIEST) of partitions.

    -1 where there is no such record. Raises Unreachable and Rejected.
    """
    found: dict[TopicPartition, int] = {}
    for leader_id, led in by_leader(partitions).items():
        topics = looked_up((each.topic_partition for each in led), timestamp)
        request = ListOffsetsRequest(-1, ISOLATION[isolation], topics)
        for topic in cluster.node(leader_id).ask(LIST_OFFSETS, request).topics:
            for each in topic.partitions:
                topic_partition = topic.name, each.partition_index
                check(partition_text(topic_partition), each.error_code)
                found[topic_partition] = each.offset
    return found


def patiently(
    cluster: Cluster,
    timeout_seconds: float,
    attempt: Callable[[], T],
    wait: Wait = nullcontext,
) -> T:
    """Return the result of ``attempt``, retrying while brokers restart and leaders move.

    Raises the error of the last attempt in time, and at once an error that a retry cannot correct.
    ``wait`` is the context of the pauses between two attempts.
    """
    deadline = Deadline(int(timeout_seconds * 1000))
    while True:
        try:
            return attempt()
        except (Unreachable, Rejected) as problem:
            if deadline.is_over or not may_pass(problem):
                raise
        cluster.close()
        with wait():
            deadline.pause()


def may_pass(problem: Exception) -> bool:
    """Return whether a retry may succeed, as after a restart or a moved leader."""
    if isinstance(problem, Rejected):
        return problem.code.retriable
    return isinstance(problem, Unreachable) and not isinstance(problem, NotKafka | NotLetIn)
