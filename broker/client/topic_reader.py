"""Everything a topic holds, read over the wire like any consumer would: for tests and tools.

Blocking, one connection, one Fetch at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import BatchHeader, iterate_batches

LATEST, EARLIEST = -1, -2
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
FETCH_BY_NAME = 12
"""The last version of Fetch that names topics; later ones want ids."""

MAX_BYTES = 16 * 1024 * 1024
EXPANDED_BYTES = 256 * 1024 * 1024


class ReceivedRecord(NamedTuple):
    """One record as a consumer gets it; ``timestamp`` in ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_topic(
    client: WireClient, topic: str, isolation: str = "read_uncommitted"
) -> list[ReceivedRecord]:
    """Return all current records of ``topic``, partition after partition; raises KafkaError."""
    level = ISOLATION[isolation]
    return [
        record
        for partition in range(partition_count(client, topic))
        for record in read_partition(client, topic, partition, level)
    ]


def partition_count(client: WireClient, topic: str) -> int:
    """Return the number of partitions of a topic; raises KafkaError."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    (found,) = client.ask(METADATA, request, client.version_of(METADATA)).topics
    _check(found.error_code)
    return len(found.partitions)


def read_partition(
    client: WireClient, topic: str, partition: int, level: int
) -> Iterator[ReceivedRecord]:
    """Yield a partition's records up to its last offset at the start of the call."""
    offset = offset_at(client, topic, partition, EARLIEST, level)
    end = offset_at(client, topic, partition, LATEST, level)
    while offset < end:
        data = fetch(client, topic, partition, offset, level)
        records = data.records
        if records is None or not len(records):
            return
        aborted = sorted(
            ((each.first_offset, each.producer_id) for each in data.aborted_transactions or ()),
            reverse=True,
        )
        for batch, header in visible_batches(records, aborted):
            for record in iterate_records(batch, limit_bytes=EXPANDED_BYTES):
                if offset <= record.offset < end:
                    yield ReceivedRecord(
                        topic,
                        partition,
                        record.offset,
                        header.max_timestamp if header.timestamp_type else record.timestamp,
                        record.key,
                        record.value,
                        tuple(record.headers),
                    )
        offset = next_offset(records, offset)


def visible_batches(
    records: memoryview, aborted: list[tuple[int, int]]
) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Yield the batches that a consumer returns, without markers and aborted batches.

    ``aborted`` holds (first offset, producer id), the first transaction last.
    """
    ongoing: set[int] = set()
    for position, header in iterate_batches(records):
        while aborted and aborted[-1][0] <= header.last_offset:
            ongoing.add(aborted.pop()[1])
        batch = records[position : position + header.size]
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.commit:
                ongoing.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ongoing):
            yield batch, header


def next_offset(records: memoryview, offset: int) -> int:
    """Return the offset after the last whole batch in ``records``."""
    for _, header in iterate_batches(records):
        offset = max(offset, header.next_offset)
    return offset


def offset_at(client: WireClient, topic: str, partition: int, timestamp: int, level: int) -> int:
    """Return the offset that ListOffsets has for a timestamp; raises KafkaError."""
    request = ListOffsetsRequest(
        -1, level, [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, timestamp)])]
    )
    response = client.ask(LIST_OFFSETS, request, client.version_of(LIST_OFFSETS))
    found = response.topics[0].partitions[0]
    _check(found.error_code)
    return found.offset


def fetch(client: WireClient, topic: str, partition: int, offset: int, level: int) -> PartitionData:
    """Return the data of one Fetch from ``offset``; raises KafkaError."""
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=MAX_BYTES)
    request = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        isolation_level=level,
        topics=[FetchTopic(topic, partitions=[wanted])],
    )
    response = client.ask(FETCH, request, client.version_of(FETCH, at_most=FETCH_BY_NAME))
    _check(response.error_code)
    data = response.responses[0].partitions[0]
    _check(data.error_code)
    return data


def _check(code: int) -> None:
    if code:
        raise KafkaError(ErrorCode(code))
