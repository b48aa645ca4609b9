"""Produce requests of one transaction: each batch reaches its leader in order and exactly once.

Rules of this file:

1. Each leader has at most five requests in flight, with at most one batch of a partition in each: a
   broker recognises that many repeated batches.
2. A batch keeps its sequence numbers. After a lost connection or a retriable error, the sender
   sends no new batch until it has repeated each unacknowledged batch, in order within its
   partition, and the brokers have acknowledged these.
3. OUT_OF_ORDER_SEQUENCE_NUMBER after a failed batch of the same partition means that the failed
   batch must come first. For the first batch in flight it means that acknowledged data were lost,
   and the transaction with them.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.broker.client.connection import Connection
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import increment_sequence
from barnabas.spark_connector.cluster.cluster import DATA, Cluster, NotYet, TopicPartition
from barnabas.spark_connector.cluster.requests import Identity, refused
from barnabas.spark_connector.errors import RecordTooLarge
from barnabas.spark_connector.rows.encoded import EncodedBatch, stamp

REQUEST_BYTES: Final = 1024 * 1024
IN_FLIGHT_MAX: Final = 5
PRODUCE_CLASSIC: Final = 11
"""Last version of Produce that adds no partition to a transaction."""
PRODUCE_V2: Final = 12
"""Last version of Produce with topic names; it adds partitions to the transaction (KIP-890)."""

_ALL_REPLICAS: Final = -1
_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}

Batches = dict[TopicPartition, EncodedBatch]
AddPartitions = Callable[[list[TopicPartition]], None]


class Sender:
    """Batches of one transaction in flight. The requests in flight bound the memory."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        identity: Identity,
        add_partitions: AddPartitions | None,
    ) -> None:
        """Call ``add_partitions`` before a partition's first batch (transaction protocol v1)."""
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._identity = identity
        self._add_partitions = add_partitions
        self._at_most = PRODUCE_V2 if add_partitions is None else PRODUCE_CLASSIC
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._leaders: dict[TopicPartition, int] = {}
        self._collected: dict[int, Batches] = {}
        self._in_flight: dict[int, collections.deque[Batches]] = {}

    @property
    def action(self) -> str:
        """Start of the messages of errors."""
        return f"Writing in the transaction {self._transactional_id}"

    def begin_next(self, identity: Identity) -> None:
        """Start the next transaction; the previous one must be flushed and ended."""
        if identity != self._identity:
            self._sequences.clear()
        self._identity = identity
        self._added.clear()

    def send(self, batch: EncodedBatch) -> None:
        """Send a batch, or collect it until the request is full."""
        topic_partition = TopicPartition(batch.topic, batch.partition)
        sequence = self._sequences.get(topic_partition, 0)
        stamp(batch, *self._identity, sequence)
        self._sequences[topic_partition] = increment_sequence(sequence, batch.record_count)
        node_id = self._leader(topic_partition)
        collected = self._collected.setdefault(node_id, {})
        size = sum(len(each.records) for each in collected.values())
        if collected and (
            topic_partition in collected or size + len(batch.records) > REQUEST_BYTES
        ):
            self._dispatch(node_id)
        self._collected.setdefault(self._leader(topic_partition), {})[topic_partition] = batch

    def flush(self) -> None:
        """Send collected batches; return when all batches are acknowledged."""
        for node_id in list(self._collected):
            self._dispatch(node_id)
        for node_id in list(self._in_flight):
            while self._in_flight.get(node_id):
                self._receive(node_id)

    def settle(self) -> None:
        """Drop collected batches, and read the responses of requests in flight."""
        self._collected.clear()
        for node_id, requests in self._in_flight.items():
            for _ in requests:
                try:
                    self._answer(node_id)
                except (Unreachable, NotYet):
                    break
        self._in_flight.clear()

    def _leader(self, topic_partition: TopicPartition) -> int:
        """Return the partition's leader, which is looked up again after a failure."""
        node_id = self._leaders.get(topic_partition)
        if node_id is None:
            deadline = self._cluster.deadline()
            node_id = self._cluster.until(
                self.action, deadline, lambda: self._cluster.leader(*topic_partition, deadline)
            )
            self._leaders[topic_partition] = node_id
        return node_id

    # ----------------------------------------------------------------------------- the usual way

    def _dispatch(self, node_id: int) -> None:
        """Send the collected batches of a broker."""
        while len(self._in_flight.get(node_id, ())) >= IN_FLIGHT_MAX:
            self._receive(node_id)
        batches = self._collected.pop(node_id, None)
        if not batches:
            return  # A failed response has sent them in _send_again().
        self._add(batches)
        in_flight = self._in_flight.setdefault(node_id, collections.deque())
        in_flight.append(batches)
        try:
            connection = self._connection(node_id, len(in_flight) - 1)
            connection.send(PRODUCE, self._request(batches), self._at_most)
        except (Unreachable, NotYet):
            self._send_again(Batches())

    def _receive(self, node_id: int) -> None:
        """Read the response to a broker's oldest request; repeat its failed batches."""
        batches = self._in_flight[node_id].popleft()
        try:
            failed = self._failed(self._answer(node_id), batches)
        except (Unreachable, NotYet):
            failed = batches
        if failed:
            self._send_again(failed)

    def _connection(self, node_id: int, in_flight: int) -> Connection:
        """Return a broker's connection if it has only this sender's requests in flight.

        A previous caller may have left requests on it, and their responses would be confused with
        responses to this sender.
        """
        connection = self._cluster.node(node_id, DATA)
        if connection.in_flight != in_flight:
            connection.close()
            raise Unreachable(f"{connection.name}: responses to other requests are outstanding")
        return connection

    def _answer(self, node_id: int) -> ProduceResponse:
        """Return a broker's next response; raises Unreachable if no request is in flight."""
        connection = self._cluster.node(node_id, DATA)
        if not connection.in_flight:
            raise Unreachable(f"{connection.name}: the connection with the request is closed")
        return connection.receive(PRODUCE)

    def _add(self, batches: Batches) -> None:
        new = [topic_partition for topic_partition in batches if topic_partition not in self._added]
        if new and self._add_partitions is not None:
            self._add_partitions(new)
        self._added.update(new)

    def _request(self, batches: Batches) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for topic_partition, batch in batches.items():
            data = PartitionProduceData(topic_partition.partition, memoryview(batch.records))
            topics.setdefault(topic_partition.topic, []).append(data)
        return ProduceRequest(
            self._transactional_id,
            _ALL_REPLICAS,
            self._cluster.request_timeout_ms,
            [TopicProduceData(name, partition_data=data) for name, data in topics.items()],
        )

    def _failed(
        self,
        answer: ProduceResponse,
        batches: Batches,
        failed_before: Iterable[TopicPartition] = (),
    ) -> Batches:
        """Return the batches to send again; raises for an error that is not retriable."""
        failed: Batches = {}
        answered = set()
        for topic in answer.responses:
            for partition in topic.partition_responses:
                topic_partition = TopicPartition(topic.name, partition.index)
                answered.add(topic_partition)
                code = ErrorCode(partition.error_code)
                if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
                    continue
                follows = (
                    code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                    and topic_partition in failed_before
                )
                if not code.retriable and not follows:
                    raise self._refused(code, batches[topic_partition])
                failed[topic_partition] = batches[topic_partition]
        return failed | {
            topic_partition: each
            for topic_partition, each in batches.items()
            if topic_partition not in answered
        }

    def _refused(self, code: ErrorCode, batch: EncodedBatch) -> Exception:
        if code in _TOO_LARGE:
            return RecordTooLarge(
                f"The topic {batch.topic} does not take a batch of {len(batch.records)} bytes; "
                "lower the option batchMaxBytes, or raise the topic's max.message.bytes if a "
                "single record is that large."
            )
        return refused(f"{self.action} to {batch.topic}", code)

    # ----------------------------------------------------------------------------- after a failure

    def _send_again(self, failed: Batches) -> None:
        """Send all unacknowledged batches again; return when they are acknowledged."""
        waiting: dict[TopicPartition, collections.deque[EncodedBatch]] = {}
        for topic_partition, batch in failed.items():
            waiting.setdefault(topic_partition, collections.deque()).append(batch)
        for node_id in list(self._in_flight):
            for topic_partition, batch in self._drain(node_id, frozenset(waiting)):
                waiting.setdefault(topic_partition, collections.deque()).append(batch)
        self._in_flight.clear()
        for batches in self._collected.values():
            for topic_partition, batch in batches.items():
                waiting.setdefault(topic_partition, collections.deque()).append(batch)
        self._collected.clear()
        self._leaders.clear()
        deadline = self._cluster.deadline()

        def attempt() -> None:
            while waiting:
                self._round(waiting, deadline)

        self._cluster.forget()
        self._cluster.until(self.action, deadline, attempt)

    def _drain(
        self, node_id: int, failed_before: Iterable[TopicPartition] = ()
    ) -> list[tuple[TopicPartition, EncodedBatch]]:
        """Read a broker's outstanding responses; return the unacknowledged batches."""
        failed: list[tuple[TopicPartition, EncodedBatch]] = []
        topic_partitions = set(failed_before)
        for batches in self._in_flight.get(node_id, ()):
            try:
                bad = self._failed(self._answer(node_id), batches, topic_partitions)
            except (Unreachable, NotYet):
                bad = batches
            failed += bad.items()
            topic_partitions.update(bad)
        return failed

    def _round(
        self,
        waiting: dict[TopicPartition, collections.deque[EncodedBatch]],
        deadline: Deadline,
    ) -> None:
        """Send the first waiting batch of each partition and read the responses."""
        requests: dict[int, Batches] = {}
        for topic_partition, batches in waiting.items():
            node_id = self._cluster.leader(*topic_partition, deadline)
            requests.setdefault(node_id, {})[topic_partition] = batches[0]
        bad = 0
        for node_id, chosen in requests.items():
            self._add(chosen)
            connection = self._connection(node_id, 0)
            answer = connection.ask(PRODUCE, self._request(chosen), self._at_most)
            failed = self._failed(answer, chosen)
            bad += len(failed)
            for topic_partition in chosen.keys() - failed.keys():
                waiting[topic_partition].popleft()
                if not waiting[topic_partition]:
                    del waiting[topic_partition]
        if bad:
            raise NotYet(f"{bad} partitions cannot be written at the moment")
