"""A blocking consumer for the command line: positions, fetches, records as they may be seen.

Rules of this file:

1. A position moves only after everything before it was handed out; a broken connection or a moved
   leader is tried again from there.
2. An offset that the log does not hold ends the reading: nothing is ever passed over silently.
3. Checksums are verified, and what a batch expands to is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext

from barnabas.broker.admin.exchange import (
    Partition,
    Rejected,
    TopicPartition,
    by_leader,
    check,
    gathered,
    partition_text,
)
from barnabas.broker.admin.offsets import ISOLATION
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.interruption import Wait
from barnabas.broker.cli.retries import patiently
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.client.topic_reader import (
    EXPANDED_BYTES,
    FETCH_BY_NAME,
    ReceivedRecord,
    next_offset,
    visible_batches,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import CorruptBatch, InvalidBatch, verify_batch

FETCH_BYTES_MAX = 16 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024
WAIT_MS = 500


class Consumer:
    """Reads partitions from given offsets on.

    ``positions`` holds the next offset of each partition, ``ends`` the offsets to stop at, if any.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        isolation: str,
        ends: Mapping[TopicPartition, int] | None = None,
        wait: Wait = nullcontext,
    ) -> None:
        self._wait = wait
        self._unread: Iterator[ReceivedRecord] = iter(())
        self._cluster = cluster
        self._isolation = isolation
        self._leaders: dict[TopicPartition, int] | None = None
        self.positions = dict(positions)
        self.ends = dict(ends or {})

    @property
    def at_end(self) -> bool:
        """Whether every partition was read to its end."""
        return not self._wanted()

    def _wanted(self) -> list[TopicPartition]:
        return [
            topic_partition
            for topic_partition, offset in self.positions.items()
            if topic_partition not in self.ends or offset < self.ends[topic_partition]
        ]

    def open(self) -> None:
        """Start without waiting."""

    def printed(self) -> None:
        """Record that all returned records have been printed; only consumers of a group use it."""

    def close(self) -> None:
        """Close without releasing anything."""

    def poll(self) -> Iterator[ReceivedRecord]:
        """Yield the records of one round of fetches, possibly none; raises CommandError.

        A caller that stops in the middle gets the rest from the next ``poll``.
        """
        is_empty = True
        for record in self._unread:
            is_empty = False
            yield record
        if is_empty:
            self._unread = self._round()
            for record in self._unread:  # Not ``yield from``, which would close it, too.
                yield record

    def _round(self) -> Iterator[ReceivedRecord]:
        with self._wait():
            answers = patiently(self._cluster, self._fetch)
        for topic_partition, data in answers:
            yield from self._records(topic_partition, data)

    # ---------------------------------------------------------------------------------- fetch

    def _fetch(self) -> list[tuple[TopicPartition, PartitionData]]:
        """Send a fetch to every leader, then read the responses."""
        wanted = self._wanted()
        try:
            leaders = self._leaders = self._leaders or self._look_up()
            found = by_leader([Partition(*each, leaders[each]) for each in wanted])
            asked = [
                (self._cluster.node(leader), [each.topic_partition for each in led])
                for leader, led in found.items()
            ]
            for broker, topic_partitions in asked:
                broker.send(FETCH, self._request(topic_partitions), FETCH_BY_NAME)
            return [answer for broker, _ in asked for answer in self._answers(broker)]
        except (CommandError, Rejected, Unreachable):
            self._leaders = None
            raise

    def _look_up(self) -> dict[TopicPartition, int]:
        """Return the leaders of the partitions; raises Rejected if one no longer exists."""
        topics = sorted({topic for topic, _ in self.positions})
        found: dict[TopicPartition, int] = {}
        for topic in topics:
            found |= {
                each.topic_partition: each.leader_id for each in self._cluster.partitions(topic)
            }
        for topic_partition in self.positions:
            if topic_partition not in found:
                raise Rejected(
                    partition_text(topic_partition), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
        return found

    def _request(self, topic_partitions: list[TopicPartition]) -> FetchRequest:
        topics = gathered(
            (
                each[0],
                FetchPartition(
                    each[1],
                    fetch_offset=self.positions[each],
                    partition_max_bytes=PARTITION_BYTES_MAX,
                ),
            )
            for each in topic_partitions
        )
        return FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            isolation_level=ISOLATION[self._isolation],
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic, partitions=each) for topic, each in topics.items()],
        )

    def _answers(self, broker: Connection) -> list[tuple[TopicPartition, PartitionData]]:
        response = broker.receive(FETCH)
        check(broker.name, response.error_code)
        answers = []
        for topic in response.responses:
            for data in topic.partitions:
                topic_partition = topic.topic, data.partition_index
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset = self.positions[topic_partition]
                    raise CommandError(
                        f"{partition_text(topic_partition)}: offset {offset} is out of range"
                    )
                check(partition_text(topic_partition), data.error_code)
                answers.append((topic_partition, data))
        return answers

    # -------------------------------------------------------------------------------- records

    def _records(
        self, topic_partition: TopicPartition, data: PartitionData
    ) -> Iterator[ReceivedRecord]:
        records = data.records
        if records is None or not len(records):
            return
        aborted = sorted(
            ((each.first_offset, each.producer_id) for each in data.aborted_transactions or ()),
            reverse=True,
        )
        position, end = self.positions[topic_partition], self.ends.get(topic_partition)
        try:
            for batch, header in visible_batches(records, aborted):
                if header.last_offset < position:
                    continue
                verify_batch(batch)
                for record in iterate_records(batch, limit_bytes=EXPANDED_BYTES):
                    if record.offset < self.positions[topic_partition]:
                        continue
                    if end is not None and record.offset >= end:
                        break
                    # Before it is handed out: a caller that stops after this record has had it.
                    self.positions[topic_partition] = record.offset + 1
                    yield ReceivedRecord(
                        *topic_partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        tuple(record.headers),
                    )
            self.positions[topic_partition] = max(
                self.positions[topic_partition], next_offset(records, position)
            )
        except (CorruptBatch, InvalidBatch) as problem:
            offset = self.positions[topic_partition]
            raise CommandError(
                f"{partition_text(topic_partition)} at offset {offset}: {problem}"
            ) from None
