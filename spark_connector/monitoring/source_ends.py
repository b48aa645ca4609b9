"""End offsets of a source's topics for its consumers, which Spark does not always report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.client.deadline import Deadline
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.spark_connector.cluster.cluster import Cluster, NotYet, TopicPartition, name_of
from barnabas.spark_connector.cluster.requests import refused

LEVELS: Final = {"read_uncommitted": 0, "read_committed": 1}
_LATEST: Final = -1
_WHAT: Final = "Asking where the source's topics end"


def ends_of(
    cluster: Cluster, topics: Iterable[str], isolation: str
) -> dict[tuple[str, int], int] | None:
    """Return the offset after the last readable record, or `None` if a topic does not exist."""
    wanted, level, deadline = set(topics), LEVELS[isolation], cluster.deadline()
    return cluster.until(_WHAT, deadline, lambda: _ends(cluster, wanted, level, deadline))


def _ends(
    cluster: Cluster, topics: set[str], level: int, deadline: Deadline
) -> dict[tuple[str, int], int] | None:
    counts = cluster.existing(topics)
    if counts.keys() != topics:
        return None
    ends: dict[tuple[str, int], int] = {}
    for node_id, places in _by_leader(cluster, counts, deadline).items():
        answer = cluster.node(node_id).ask(LIST_OFFSETS, _request(places, level))
        for topic in answer.topics:
            for each in topic.partitions:
                code = ErrorCode(each.error_code)
                if code.retriable:
                    raise NotYet(name_of(code))
                if code:
                    raise refused(_WHAT, code)
                ends[topic.name, each.partition_index] = each.offset
    return ends


def _by_leader(
    cluster: Cluster, counts: dict[str, int], deadline: Deadline
) -> dict[int, list[TopicPartition]]:
    led: dict[int, list[TopicPartition]] = {}
    for topic, count in counts.items():
        for partition in range(count):
            node_id = cluster.leader(topic, partition, deadline)
            led.setdefault(node_id, []).append(TopicPartition(topic, partition))
    return led


def _request(places: list[TopicPartition], level: int) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in places:
        wanted = ListOffsetsPartition(partition, timestamp=_LATEST)
        topics.setdefault(topic, []).append(wanted)
    return ListOffsetsRequest(
        isolation_level=level, topics=[ListOffsetsTopic(*each) for each in topics.items()]
    )
