"""One transaction through the broker's own handlers, as a producer writes it.

Retriable errors are retried; any other error ends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.actions.producing import check_written
from barnabas.protocol.errors import ErrorCode, KafkaError
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
from barnabas.protocol.versions import (
    ADD_PARTITIONS_BY_CLIENTS,
    END_TXN_CLASSIC,
    INIT_PRODUCER_ID_STABLE,
    PRODUCE_CLASSIC,
)

if TYPE_CHECKING:
    from barnabas.broker.console.actions.wire import WireClient

_ALL: Final = -1
_ANSWER_MS: Final = 30_000
AGAIN_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 30.0
"""Time for retries while the previous transaction is still ending."""
_NOT_YET: Final = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)


class Batch(NamedTuple):
    """Records for one partition, encoded."""

    partition: int
    data: bytes
    records: int


class Transaction:
    """The one transaction of a transactional id."""

    def __init__(self, wire: WireClient, transactional_id: str, topic: str) -> None:
        self._wire = wire
        self._id = transactional_id
        self._topic = topic
        self._partitions: set[int] = set()
        self.producer_id = self.producer_epoch = -1
        self.sequences: dict[int, int] = {}
        """The next number of a record, of each partition."""

    @property
    def has_begun(self) -> bool:
        """Whether a transaction has started."""
        return bool(self._partitions)

    async def initialize(self, timeout_ms: int) -> None:
        """Initialize the producer of the ID, which fences an earlier one."""
        request = InitProducerIdRequest(self._id, timeout_ms)

        async def send() -> int:
            answer = await self._wire.ask(INIT_PRODUCER_ID, request, INIT_PRODUCER_ID_STABLE)
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            return answer.error_code

        await self._patiently(send)

    async def write(self, batches: Sequence[Batch]) -> None:
        """Write batches, one of a partition at most; acknowledged when they are durable."""
        await self._add({each.partition for each in batches} - self._partitions)
        data = [PartitionProduceData(each.partition, memoryview(each.data)) for each in batches]
        topics = [TopicProduceData(self._topic, partition_data=data)]
        request = ProduceRequest(self._id, _ALL, _ANSWER_MS, topics)
        check_written(await self._wire.ask(PRODUCE, request, PRODUCE_CLASSIC))

    async def _add(self, partitions: set[int]) -> None:
        if not partitions:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(self._topic, sorted(partitions))],
        )

        async def send() -> int:
            answer = await self._wire.ask(ADD_PARTITIONS_TO_TXN, request, ADD_PARTITIONS_BY_CLIENTS)
            codes = [
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]
            return next((each for each in codes if each), ErrorCode.NONE)

        await self._patiently(send)
        self._partitions |= partitions

    async def end(self, *, commit: bool) -> None:
        """Commit or abort: decided and durable when this returns."""
        request = EndTxnRequest(self._id, self.producer_id, self.producer_epoch, commit)

        async def send() -> int:
            return (await self._wire.ask(END_TXN, request, END_TXN_CLASSIC)).error_code

        await self._patiently(send)

    async def _patiently(self, send: Callable[[], Awaitable[int]]) -> None:
        """Repeat a request until it succeeds; raises KafkaError."""
        clock = self._wire.clock
        until_s = clock.monotonic() + PATIENCE_SECONDS
        while code := await send():
            if code not in _NOT_YET or clock.monotonic() >= until_s:
                raise KafkaError(ErrorCode(code))
            await clock.sleep(AGAIN_SECONDS)
