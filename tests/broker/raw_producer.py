"""A transactional producer made of single requests, so that a test can send any of them wrongly."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE, PartitionProduceResponse, ProduceRequest
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.broker.data_plane import Named, Wire, batch, produce_request, topic_data
from tests.requests import add_partitions_request, added_codes

ADDS_SINCE = 12
"""First version of Produce in which a write adds its partition to the transaction."""
TIMEOUT_MS = 900_000
"""The longest there is: no test should meet it, however busy the machine."""
PATIENCE_S = 60
AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class RawProducer:
    """Knows its id, epoch and next sequences; sends nothing by itself."""

    def __init__(self, wire: Wire, name: str, version: int = 12) -> None:
        """``version`` of Produce decides of which generation the transactions are."""
        self.wire = wire
        self.name = name
        self.version = version
        self.producer_id = self.epoch = -1
        self._next: dict[tuple[str, int], int] = {}
        self.init()

    @property
    def is_classic(self) -> bool:
        """Whether it has to add partitions itself."""
        return self.version < ADDS_SINCE

    def init(self) -> None:
        """Start again, and fence the previous producer of the name."""
        request = InitProducerIdRequest(self.name, TIMEOUT_MS)
        deadline = monotonic() + PATIENCE_S
        while (answer := self.wire.ask(INIT_PRODUCER_ID, request, 4)).error_code in AGAIN:
            assert monotonic() < deadline
            sleep(0.02)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._next.clear()

    def add(self, topic: Named, *partitions: int) -> ErrorCode:
        """Add partitions to the transaction; nothing to do where writing does that."""
        if not self.is_classic:
            return ErrorCode.NONE
        places = [(topic.name, each) for each in partitions]
        request = add_partitions_request(self.name, (self.producer_id, self.epoch), *places)
        return ErrorCode(added_codes(self.wire.ask(ADD_PARTITIONS_TO_TXN, request, 3))[0])

    def batch(
        self,
        topic: Named,
        *values: bytes,
        partition: int = 0,
        sequence: int | None = None,
        **more: Any,
    ) -> memoryview:
        """The next batch for a partition, or one of ``sequence``, which changes nothing."""
        values = values or (b"v",)
        key = topic.name, partition
        if sequence is None:
            sequence = self._next.get(key, 0)
            self._next[key] = sequence + len(values)
        settings = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": sequence,
            "transactional": True,
        }
        return batch(*values, **{**settings, **more})

    def request(self, topic: Named, *data: tuple[int, Any], **more: Any) -> ProduceRequest:
        """A Produce of pairs of partition and batch."""
        settings = {"transactional_id": self.name, **more}
        return produce_request(self.version, topic, *data, **settings)

    def send(self, topic: Named, *values: bytes, **more: Any) -> PartitionProduceResponse:
        """Write one batch to one partition and return what became of it."""
        partition = more.get("partition", 0)
        request = self.request(topic, (partition, self.batch(topic, *values, **more)))
        answer = self.wire.ask(PRODUCE, request, self.version)
        return answer.responses[0].partition_responses[0]

    def ask(self, *topics: Any, **more: Any) -> list[ErrorCode]:
        """Write to several topics at once: errors by topic and partition."""
        request = ProduceRequest(
            more.get("transactional_id", self.name),
            more.get("acks", -1),
            30_000,
            [topic_data(self.version, *each) for each in topics],
        )
        answer = self.wire.ask(PRODUCE, request, self.version)
        # Apache Kafka answers in an order of its own.
        return [
            ErrorCode(result.error_code)
            for topic in answer.responses
            for result in sorted(topic.partition_responses, key=lambda result: result.index)
        ]

    def begin(self, topic: Named, *values: bytes, partition: int = 0) -> int:
        """Begin a transaction with one batch; answers its offset."""
        code = self.add(topic, partition)
        assert code == 0, code
        result = self.send(topic, *values, partition=partition)
        assert result.error_code == 0, ErrorCode(result.error_code)
        return result.base_offset

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        """An EndTxn by what is known now."""
        return EndTxnRequest(self.name, self.producer_id, self.epoch, commit)

    def end(self, *, commit: bool = True) -> None:
        """End the transaction; the next one begins at sequence 0 where it has its own epoch."""
        answer = self.wire.ask(
            END_TXN, self.end_request(commit=commit), 4 if self.is_classic else 5
        )
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        if not self.is_classic:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._next.clear()
