"""Changes of topics: creation, partitions, deletion of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.broker.admin.exchange import (
    Exchange,
    Partition,
    by_leader,
    check,
    check_partition,
    gathered,
    send,
)
from barnabas.broker.admin.offsets import Offsets
from barnabas.broker.admin.settings import Change
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)

BROKER_DEFAULT: Final = -1
"""Number of partitions or replicas that the configuration of the broker decides."""
HIGH_WATERMARK: Final = -1
"""Offset of DeleteRecords that stands for the end."""
TIMEOUT_MS: Final = 60_000


def create_topics(
    names: Iterable[str],
    partitions: int,
    configs: Iterable[Change],
    *,
    dry_run: bool,
    replicas: int = BROKER_DEFAULT,
    timeout_ms: int = TIMEOUT_MS,
) -> Exchange[list[CreatableTopicResult]]:
    """Create topics that are all alike; the results have errors."""
    settings = [CreatableTopicConfig(*each) for each in configs]
    wanted = [CreatableTopic(name, partitions, replicas, [], settings) for name in names]
    request = CreateTopicsRequest(wanted, timeout_ms, dry_run)
    return (yield from send(CREATE_TOPICS, request)).topics


def add_partitions(
    name: str, count: int, *, dry_run: bool, timeout_ms: int = TIMEOUT_MS
) -> Exchange[None]:
    """Give a topic ``count`` partitions; raises Rejected."""
    topics = [CreatePartitionsTopic(name, count, None)]
    request = CreatePartitionsRequest(topics, timeout_ms, dry_run)
    for each in (yield from send(CREATE_PARTITIONS, request)).results:
        check(name, each.error_code, each.error_message)


def delete_topics(
    topics: Sequence[DeleteTopicState], timeout_ms: int = TIMEOUT_MS
) -> Exchange[list[DeletableTopicResult]]:
    """Delete topics, named or by their ids, with all records; the results have errors."""
    # Versions before 6 take the names from the second list.
    names = [each.name for each in topics if each.name is not None]
    request = DeleteTopicsRequest(list(topics), names, timeout_ms)
    return (yield from send(DELETE_TOPICS, request)).responses


def delete_records(offsets: Mapping[Partition, int], timeout_ms: int) -> Exchange[Offsets]:
    """Delete the records before offsets; return the new first offsets. Raises Rejected."""
    found: Offsets = {}
    for leader_id, led in by_leader(list(offsets)).items():
        wanted = gathered(
            (each.topic, DeleteRecordsPartition(each.number, offsets[each])) for each in led
        )
        topics = [DeleteRecordsTopic(*each) for each in wanted.items()]
        request = DeleteRecordsRequest(topics, timeout_ms)
        for topic in (yield from send(DELETE_RECORDS, request, leader_id)).topics:
            for each in topic.partitions:
                check_partition((topic.name, each.partition_index), each.error_code)
                found[topic.name, each.partition_index] = each.low_watermark
    return found
