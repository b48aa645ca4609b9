"""The ledger: a compacted topic with the last decided batch of each query of each sink.

The key is [sink id, query id]: a new checkpoint counts its batches from 0. Rules of this file:

1. A driver fences the previous ones (InitProducerId) before it reads. So no other producer can add
   an entry of this sink, and each transaction with such an entry has its marker.
2. Entries are read up to the high watermark and paired with their markers here, not by the last
   stable offset: an open transaction of another sink in the topic delays no driver.
3. Each read continues at the offset at which the previous one ended.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import BatchHeader, iterate_batches
from barnabas.spark_connector.cluster.cluster import Cluster, name_of
from barnabas.spark_connector.cluster.requests import refused
from barnabas.spark_connector.errors import InDoubt, TopicMissing, WrongOption
from barnabas.spark_connector.ledger.entries import (
    NO_ENTRY,
    PARTITION,
    Entry,
    Listed,
    decode,
    query_of,
)

__all__ = ["NO_ENTRY", "Entry", "Ledger", "Listed"]

_FETCH_LAST_BY_NAME: Final = 12
_FETCH_BYTES: Final = 4 * 1024 * 1024
_EXPANDED_MAX_BYTES: Final = 256 * 1024 * 1024
_EARLIEST: Final = -2
_TOPIC_RESOURCE: Final = 2
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": "10485760",
}


class Ledger:
    """The ledger topic of a cluster, with the entries of the sink ID that was read last."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._is_there = False
        self._sink_id: str | None = None
        self._position = -1
        self._entries: dict[str, Entry] = {}
        self._undecided: dict[int, dict[str, Entry]] = {}

    # ----------------------------------------------------------------------------------- the topic

    def ensure(self) -> None:
        """Create the topic if it does not exist; raises WrongOption if it is not compacted."""
        if self._is_there:
            return
        deadline = self._cluster.deadline()
        while not self._cluster.existing([self._topic]):
            problem = self._create()
            if problem and deadline.is_over:
                raise self._cluster.gave_up(f"Creating {self._topic}", deadline, problem)
            deadline.pause()
        self._check_configs()
        self._is_there = True

    def _create(self) -> str:
        configs = [CreatableTopicConfig(*each) for each in _CONFIGS.items()]
        topic = CreatableTopic(self._topic, 1, -1, configs=configs)
        what, request = f"Creating the topic {self._topic}", CreateTopicsRequest([topic], 30_000)
        answer = self._cluster.ask(what, self._cluster.controller, CREATE_TOPICS, request)
        code = ErrorCode(answer.topics[0].error_code)
        if code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS} or code.retriable:
            return name_of(code)
        raise refused(what, code)

    def _check_configs(self) -> None:
        resource = DescribeConfigsResource(_TOPIC_RESOURCE, self._topic, ["cleanup.policy"])
        answer = self._cluster.ask(
            f"Asking for the settings of {self._topic}",
            self._cluster.anywhere,
            DESCRIBE_CONFIGS,
            DescribeConfigsRequest([resource]),
            error_of=lambda response: response.results[0].error_code,
        )
        for result in answer.results:
            if result.error_code:
                raise refused(f"Asking for the settings of {self._topic}", result.error_code)
            for config in result.configs:
                if config.name == "cleanup.policy" and config.value != "compact":
                    raise WrongOption(
                        f"The topic {self._topic} has cleanup.policy={config.value}, so it would "
                        "forget what was written; set it to compact, or use another ledgerTopic."
                    )

    # ------------------------------------------------------------------------------------- reading

    def read(self, sink_id: str, query_id: str) -> Entry | None:
        """Return the last entry of a query; the caller has fenced the sink's other drivers."""
        return self.queries(sink_id).get(query_id)

    def queries(self, sink_id: str) -> dict[str, Entry]:
        """Return the last entry of each query that has written with this sink ID."""
        deadline = self._cluster.deadline()
        self._refresh(sink_id)
        while self._undecided:
            if deadline.is_over:
                raise InDoubt(
                    f"The ledger {self._topic} has an entry of the sink {sink_id} in a transaction "
                    f"that was still open after {deadline.timeout_ms / 1000:g} seconds, so another "
                    "driver of this sink is at work; make sure that only one runs."
                )
            deadline.pause()
            self._read_to_the_end()
        return dict(self._entries)

    def glimpse(self, sink_id: str) -> tuple[dict[str, Entry], frozenset[str]]:
        """Return the decided entries, and the queries with undecided ones; fences no driver."""
        self._refresh(sink_id)
        undecided = (query_id for entries in self._undecided.values() for query_id in entries)
        return dict(self._entries), frozenset(undecided)

    def record_count(self, sink_id: str, query_id: str, batch_id: int) -> int | None:
        """Return the number of records of a decided batch, or `None` if unknown.

        A batch that was decided a moment ago may still lack its marker, and counts as well.
        """
        self._refresh(sink_id)
        for entries in (self._entries, *self._undecided.values()):
            count = entries.get(query_id, NO_ENTRY).records_of(batch_id)
            if count is not None:
                return count
        return None

    def _is_wanted(self, sink_id: str, query_id: str) -> bool:  # noqa: ARG002 - for QueryLedger
        return sink_id == self._sink_id

    def _decoded(self, value: bytes) -> Entry:
        return decode(value)

    def _refresh(self, sink_id: str) -> None:
        self.ensure()
        if sink_id != self._sink_id:
            self._reset(sink_id)
        try:
            self._read_to_the_end()
        except TopicMissing:
            # The topic was deleted since. Its new ID shows that the entries are missing.
            self._is_there = False
            self.ensure()
            self._reset(sink_id)
            self._read_to_the_end()

    def _reset(self, sink_id: str) -> None:
        self._sink_id = sink_id
        self._position = -1
        self._entries.clear()
        self._undecided.clear()

    def _read_to_the_end(self) -> None:
        end = -1
        deadline = self._cluster.deadline()
        while self._position < 0 or end < 0 or self._position < end:
            if self._position < 0:
                self._position = self._start()
            data = self._fetch()
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # The topic was created again, or records were deleted: only the present ones count.
                self._entries.clear()
                self._undecided.clear()
                self._position = -1
                continue
            end = max(end, data.high_watermark)
            before = self._position
            self._take(data.records or memoryview(b""))
            if before == self._position < end:
                if deadline.is_over:
                    raise self._cluster.gave_up(
                        f"Reading {self._topic}", deadline, f"nothing comes at offset {before}"
                    )
                deadline.pause()

    def _start(self) -> int:
        def found(response: ListOffsetsResponse) -> ListOffsetsPartitionResponse:
            return response.topics[0].partitions[0]

        partition = ListOffsetsPartition(PARTITION, timestamp=_EARLIEST)
        answer = self._cluster.ask(
            f"Asking where {self._topic} begins",
            self._cluster.leader_of(self._topic, PARTITION),
            LIST_OFFSETS,
            ListOffsetsRequest(topics=[ListOffsetsTopic(self._topic, [partition])]),
            error_of=lambda response: found(response).error_code,
        )
        if found(answer).error_code:
            raise refused(f"Asking where {self._topic} begins", found(answer).error_code)
        return found(answer).offset

    def _fetch(self) -> PartitionData:
        partition = FetchPartition(
            PARTITION, fetch_offset=self._position, partition_max_bytes=_FETCH_BYTES
        )
        answer = self._cluster.ask(
            f"Reading {self._topic}",
            self._cluster.leader_of(self._topic, PARTITION),
            FETCH,
            FetchRequest(
                max_bytes=_FETCH_BYTES, topics=[FetchTopic(self._topic, partitions=[partition])]
            ),
            error_of=lambda response: _only_partition(response).error_code,
            at_most=_FETCH_LAST_BY_NAME,
        )
        data = _only_partition(answer)
        if data.error_code not in {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}:
            raise refused(f"Reading {self._topic}", data.error_code)
        return data

    def _take(self, records: memoryview) -> None:
        for position, header in iterate_batches(records):
            if header.next_offset <= self._position:
                continue
            batch = records[position : position + header.size]
            if header.is_control:
                self._take_marker(header, batch)
            else:
                self._take_entries(header, batch)
            self._position = header.next_offset

    def _take_marker(self, header: BatchHeader, batch: memoryview) -> None:
        marker = read_marker(batch)
        if marker is not None:
            entries = self._undecided.pop(header.producer_id, {})
            self._entries.update(entries if marker.commit else {})

    def _take_entries(self, header: BatchHeader, batch: memoryview) -> None:
        entries = {}
        for record in iterate_records(batch, limit_bytes=_EXPANDED_MAX_BYTES):
            sink_id, query_id = query_of(record.key)
            if self._is_wanted(sink_id, query_id) and record.value:
                entries[query_id] = self._decoded(record.value)
        if header.is_transactional and entries:
            self._undecided.setdefault(header.producer_id, {}).update(entries)
        else:
            self._entries.update(entries)


def _only_partition(response: FetchResponse) -> PartitionData:
    """Return the requested partition, with the error of the whole response if it has one."""
    if response.error_code or not response.responses:
        return PartitionData(PARTITION, response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
    return response.responses[0].partitions[0]
