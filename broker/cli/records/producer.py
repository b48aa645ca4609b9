"""A blocking producer for the command line: every record once, in order, or an error.

Rules of this file:

1. One request is in flight for each broker, and a batch stays until it is acknowledged. With
   idempotence it is sent again, with its sequence, as long as the broker is unavailable.
2. Without idempotence a batch whose response was lost is not sent again: it might be stored.
3. A batch that its topic finds too large is cut in two.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.broker.admin.exchange import Partition, Rejected, check, partition_text
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.cli.retries import may_pass, patiently
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.compression import NONE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.partitioning import partition_of
from barnabas.protocol.records import Record, encode_batch, increment_sequence
from barnabas.protocol.versions import PRODUCE_BY_NAME
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import now_ns

ALL, LEADER, NO_ACKS = -1, 1, 0

_BATCH_BYTES_MAX = 512 * 1024
_BATCH_RECORDS_MAX = 5_000
_RECORD_OVERHEAD_BYTES = 24
_NO_OFFSET = -1


@dataclass(frozen=True)
class ProducerOptions:
    """Options of writing; ``compression`` is a codec's number, ``acks`` is -1 for all."""

    acks: int = ALL
    compression: int = NONE
    idempotent: bool = True


@dataclass
class Written:
    """Records written to one partition; offsets are None while none is known."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass
class _Batch:
    partition: int
    records: list[Record]
    size_bytes: int = 0
    base_sequence: int = -1
    encoded: bytes = b""

    def has_room(self, size_bytes: int) -> bool:
        return (
            self.size_bytes + size_bytes <= _BATCH_BYTES_MAX
            and len(self.records) < _BATCH_RECORDS_MAX
        )


@dataclass
class _Lane:
    """One partition: its waiting records and the next sequence number."""

    batches: deque[_Batch] = field(default_factory=deque)
    next_sequence: int = 0


class _Identity(NamedTuple):
    producer_id: int = -1
    epoch: int = -1


class Producer:
    """Producer for one topic. ``write`` returns when the broker has acknowledged the records."""

    def __init__(self, cluster: Cluster, topic: str, options: ProducerOptions) -> None:
        """Look up the topic; raises CommandError."""
        self._cluster = cluster
        self._topic = topic
        self._options = options
        self._partitions = self._look_up()
        self._stale = False
        self._lanes: dict[int, _Lane] = defaultdict(_Lane)
        self._turn = random_below(1 << 16)
        self._identity = _Identity()
        self.written: dict[int, Written] = defaultdict(Written)
        if options.idempotent:
            self._identity = patiently(cluster, self._introduce)

    @property
    def records(self) -> int:
        """Number of records written."""
        return sum(each.records for each in self.written.values())

    def _look_up(self) -> list[Partition]:
        return self._cluster.partitions(self._topic)

    def _introduce(self) -> _Identity:
        request = InitProducerIdRequest(None, 2**31 - 1, -1, -1)
        response = self._cluster.ask(INIT_PRODUCER_ID, request)
        if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # A producer id needs WRITE on any topic, or IDEMPOTENT_WRITE on the cluster (KIP-679).
            subject, code = f"topic {self._topic}", ErrorCode.TOPIC_AUTHORIZATION_FAILED
            raise Rejected(subject, code, "WRITE is denied")
        check("producer id", response.error_code)
        return _Identity(response.producer_id, response.producer_epoch)

    def write(self, records: Iterable[NewRecord]) -> None:
        """Write records and wait for them; raises CommandError.

        Those without key and partition go to one partition, another one with each call.
        """
        now_ms = now_ns() // 1_000_000
        self._turn += 1
        for record in records:
            partition = self._choose(record)
            batches = self._lanes[partition].batches
            size_bytes = _size(record)
            if not batches or not batches[-1].has_room(size_bytes):
                batches.append(_Batch(partition, []))
            batch = batches[-1]
            timestamp = now_ms if record.timestamp is None else record.timestamp
            batch.records.append(
                Record(len(batch.records), timestamp, record.key, record.value, record.headers)
            )
            batch.size_bytes += size_bytes
        while any(lane.batches for lane in self._lanes.values()):
            patiently(self._cluster, self._deliver)

    def _choose(self, record: NewRecord) -> int:
        count = len(self._partitions)
        if record.partition is not None:
            if record.partition >= count:
                topic_partition = partition_text((self._topic, record.partition))
                raise CommandError(f"{topic_partition}: the topic has only {count} partitions")
            return record.partition
        if record.key is not None:
            return partition_of(record.key, count)
        return self._turn % count

    # ------------------------------------------------------------------------------- delivery

    def _deliver(self) -> None:
        """Send the oldest batch of every partition and receive the responses."""
        if self._stale:
            self._partitions = self._look_up()
            self._stale = False
        by_leader: dict[int, list[_Batch]] = defaultdict(list)
        for number, lane in self._lanes.items():
            if lane.batches:
                by_leader[self._leader(number)].append(lane.batches[0])
        problems: list[Exception] = []
        for leader, batches in by_leader.items():
            try:
                self._deliver_to(self._cluster.node(leader), batches)
            except (Unreachable, Rejected) as problem:
                self._stale = True
                problems.append(problem)
        _raise_worst(problems)

    def _leader(self, number: int) -> int:
        leader = self._partitions[number].leader_id
        if leader < 0:
            self._stale = True
            raise Rejected(partition_text((self._topic, number)), ErrorCode.LEADER_NOT_AVAILABLE)
        return leader

    def _deliver_to(self, broker: Connection, batches: list[_Batch]) -> None:
        data = [
            PartitionProduceData(batch.partition, memoryview(self._encode(batch)))
            for batch in batches
        ]
        options = self._options
        topic = TopicProduceData(name=self._topic, partition_data=data)
        timeout_ms = int(self._cluster.timeout_seconds * 1000)
        request = ProduceRequest(None, options.acks, timeout_ms, [topic])
        try:
            broker.send(PRODUCE, request, PRODUCE_BY_NAME, expects_response=options.acks != NO_ACKS)
            if options.acks == NO_ACKS:
                for batch in batches:
                    self._done(batch, _NO_OFFSET)
                return
            response = broker.receive(PRODUCE)
        except Unreachable as problem:
            if options.idempotent:
                raise
            count = sum(len(batch.records) for batch in batches)
            raise CommandError(
                f"{problem}; it is not known whether {count} records were written"
            ) from None
        by_partition = {batch.partition: batch for batch in batches}
        refusals = [
            self._take(by_partition[each.index], each)
            for each in response.responses[0].partition_responses
        ]
        _raise_worst([refusal for refusal in refusals if refusal is not None])

    def _encode(self, batch: _Batch) -> bytes:
        if not batch.encoded:
            if self._options.idempotent:
                batch.base_sequence = self._lanes[batch.partition].next_sequence
            batch.encoded = encode_batch(
                batch.records,
                compression=self._options.compression,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                base_sequence=batch.base_sequence,
            )
        return batch.encoded

    def _take(self, batch: _Batch, answer: PartitionProduceResponse) -> Rejected | None:
        """Process the result of a batch; return its problem, if any."""
        code = answer.error_code
        # A repetition of a batch stored long ago: the broker no longer knows its offset.
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            self._done(batch, answer.base_offset)
            return None
        if code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._cut(batch)
            return None
        return Rejected(partition_text((self._topic, batch.partition)), code, answer.error_message)

    def _done(self, batch: _Batch, base_offset: int) -> None:
        lane = self._lanes[batch.partition]
        assert lane.batches[0] is batch, "batches of a partition are written in their order"
        lane.batches.popleft()
        count = len(batch.records)
        lane.next_sequence = increment_sequence(lane.next_sequence, count)
        written = self.written[batch.partition]
        written.records += count
        if base_offset != _NO_OFFSET:
            if written.first_offset is None:
                written.first_offset = base_offset
            written.last_offset = base_offset + count - 1

    def _cut(self, batch: _Batch) -> None:
        """Replace a batch by two halves, which use its sequences, since it was not written."""
        batches = self._lanes[batch.partition].batches
        batches.popleft()
        middle = len(batch.records) // 2
        for half in (batch.records[middle:], batch.records[:middle]):
            records = [record._replace(offset=number) for number, record in enumerate(half)]
            batches.appendleft(_Batch(batch.partition, records))


def _raise_worst(problems: Sequence[Exception]) -> None:
    """Raise one of several problems, final ones before those that a retry may correct."""
    if problems:
        raise min(problems, key=may_pass)


def _size(record: NewRecord) -> int:
    headers = sum(len(name) + len(value or b"") + 4 for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _RECORD_OVERHEAD_BYTES
