"""Requests of a transactional producer: its session, its writes, and the end of each transaction.

The console and ``barnabas prove`` write through it. Each of them repeats a rejected request in its
own way: the console by the broker's clock, the command by that of its thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from barnabas.broker.admin.exchange import (
    Coordinator,
    Exchange,
    Receiver,
    check,
    partition_text,
    send,
)
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import increment_sequence
from barnabas.protocol.versions import (
    ADD_PARTITIONS_BY_CLIENTS,
    END_TXN_CLASSIC,
    INIT_PRODUCER_ID_STABLE,
    PRODUCE_CLASSIC,
)

_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
"""Maximum time for a broker to replicate a batch."""


class Batch(NamedTuple):
    """Records for one partition, encoded."""

    partition: int
    data: bytes
    records: int


class TransactionalProducer:
    """Producer of one transactional ID, which writes to one topic."""

    def __init__(self, transactional_id: str, topic: str) -> None:
        self.producer_id = self.producer_epoch = -1
        self.sequences: dict[int, int] = {}
        """Sequence number of the next record of each partition."""
        self._id = transactional_id
        self._topic = topic
        self._coordinator = Coordinator(TRANSACTION, transactional_id)
        self._partitions: set[int] = set()

    @property
    def has_begun(self) -> bool:
        """Whether a transaction has started."""
        return bool(self._partitions)

    def initialize(self, timeout_ms: int) -> Exchange[None]:
        """Initialize the producer of the ID, which fences an earlier one; raises Rejected."""
        request = InitProducerIdRequest(self._id, timeout_ms)
        answer = yield from send(
            INIT_PRODUCER_ID, request, self._coordinator, INIT_PRODUCER_ID_STABLE
        )
        check(self._id, answer.error_code)
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()
        self._partitions.clear()

    def add(self, partitions: Collection[int]) -> Exchange[None]:
        """Add partitions to the transaction, unless it has them; raises Rejected."""
        missing = sorted(set(partitions) - self._partitions)
        if not missing:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(self._topic, missing)],
        )
        answer = yield from send(
            ADD_PARTITIONS_TO_TXN, request, self._coordinator, ADD_PARTITIONS_BY_CLIENTS
        )
        for topic in answer.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                check(self._id, each.partition_error_code)
        self._partitions.update(missing)

    def write(self, batches: Sequence[Batch], leader: Receiver = None) -> Exchange[None]:
        """Write batches, one of a partition at most, to their leader; raises Rejected.

        They are durable afterwards. Their partitions must have been added.
        """
        data = [PartitionProduceData(each.partition, memoryview(each.data)) for each in batches]
        topics = [TopicProduceData(self._topic, partition_data=data)]
        request = ProduceRequest(self._id, _ALL, _TIMEOUT_MS, topics)
        answer = yield from send(PRODUCE, request, leader, PRODUCE_CLASSIC)
        for topic in answer.responses:
            for result in topic.partition_responses:
                name = partition_text((self._topic, result.index))
                check(name, result.error_code, result.error_message)
        for each in batches:
            before = self.sequences.get(each.partition, 0)
            self.sequences[each.partition] = increment_sequence(before, each.records)

    def end(self, *, commit: bool) -> Exchange[None]:
        """Commit or abort: decided and durable afterwards; raises Rejected."""
        request = EndTxnRequest(self._id, self.producer_id, self.producer_epoch, commit)
        answer = yield from send(END_TXN, request, self._coordinator, END_TXN_CLASSIC)
        check(self._id, answer.error_code)
        self._partitions.clear()
