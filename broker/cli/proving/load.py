"""Inputs of a run: a transactional producer, some of whose transactions are aborted.

The topic itself says afterwards which inputs were committed, so the writer keeps no journal: after
an error it begins again, with new ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from barnabas.broker.admin.exchange import Coordinator, Partition, Rejected, check, gathered, send
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.brokers import TRANSACTION
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import ErrorCode
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
from barnabas.protocol.partitioning import partition_of
from barnabas.protocol.records import Record, encode_batch
from barnabas.protocol.versions import (
    ADD_PARTITIONS_BY_CLIENTS,
    END_TXN_CLASSIC,
    INIT_PRODUCER_ID_STABLE,
    PRODUCE_CLASSIC,
)
from barnabas.storage.runtime.clock import now_ns, sleep
from barnabas.storage.runtime.threads import Thread, new_event, start_thread

TIMEOUT_MS: Final = 15_000
"""Timeout of the writer's transactions."""
ABORTS: Final = 0.12
"""Share of its transactions that it aborts."""
_RECORDS: Final = (1, 8)
"""Records of a transaction."""
_SLOW_SHARE: Final = 0.05
_SLOW_S: Final = 0.4
_RETRY_S: Final = 0.1
_ENDS_S: Final = 60.0
_ABANDONED_S: Final = 1.0


class _Identity(NamedTuple):
    producer_id: int
    epoch: int


class Writer:
    """Writes the inputs from a thread of its own, until it is stopped."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        records: Callable[[int], NewRecord],
        *,
        name: str,
        rate: float,
        seed: int,
        limit: int | None = None,
    ) -> None:
        """``records`` makes the input of a number; ``limit``: number of inputs, if any."""
        self.is_held = False
        """Whether it waits, since the program is far behind."""
        self.error: BaseException | None = None
        self.numbers = 0
        """Number of ids used so far."""
        self._cluster = cluster
        self._topic = topic
        self._records = records
        self._name = name
        self._rate = rate
        self._limit = limit
        self._chance = Random(f"{seed} inputs")  # noqa: S311
        self._stopping = new_event()
        self._is_abandoned = False
        self._identity: _Identity | None = None
        self._sequences: dict[int, int] = {}
        self._partitions: list[Partition] = []
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start writing."""
        self._thread = start_thread("barnabas-inputs", self._run)

    def stop(self) -> None:
        """Stop writing; the last transaction is ended. Raises CommandError."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_ENDS_S)
        if self.error is not None:
            raise CommandError(f"the inputs could not be written: {self.error}")

    def abandon(self) -> None:
        """Stop writing soon, even without a broker; the last transaction may stay open."""
        self._is_abandoned = True
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_ABANDONED_S)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and not self._has_enough():
                self._attempt(self._transaction)
            # A response that was lost leaves a transaction open: a new session aborts it.
            while self._identity is None and not self._is_abandoned:
                self._attempt(self._begin_session)
        except BaseException as error:  # noqa: BLE001  Raised again by `stop`.
            self.error = error
        finally:
            self._cluster.close()

    def _has_enough(self) -> bool:
        return self._limit is not None and self.numbers >= self._limit

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Return whether a step succeeded; begin a new session after an error that may pass."""
        try:
            step()
        except (Unreachable, Rejected, CommandError):
            self._identity = None
            self._cluster.close()
            sleep(_RETRY_S)
            return False
        return True

    def _begin_session(self) -> None:
        self._partitions = self._cluster.partitions(self._topic)
        request = InitProducerIdRequest(self._name, TIMEOUT_MS)
        answer = self._cluster.run(
            send(INIT_PRODUCER_ID, request, self._coordinator, INIT_PRODUCER_ID_STABLE)
        )
        check(self._name, answer.error_code)
        self._identity = _Identity(answer.producer_id, answer.producer_epoch)
        self._sequences.clear()

    @property
    def _coordinator(self) -> Coordinator:
        return Coordinator(TRANSACTION, self._name)

    def _transaction(self) -> None:
        if self._identity is None:
            self._begin_session()
        assert self._identity is not None, "a session has begun"
        if self.is_held:
            self._stopping.wait(_RETRY_S)
            return
        count = self._chance.randint(*_RECORDS)
        if self._limit is not None:
            count = min(count, self._limit - self.numbers)
        numbers = range(self.numbers, self.numbers + count)
        if self._limit is None:
            self.numbers += count
        self._write([self._records(number) for number in numbers], self._identity)
        if self._limit is not None:  # Records of a file are written again, unless it is decided.
            self.numbers += count
        if self._chance.random() < _SLOW_SHARE:
            self._stopping.wait(self._chance.uniform(0, _SLOW_S))
        aborts = self._limit is None and self._chance.random() < ABORTS
        request = EndTxnRequest(self._name, *self._identity, not aborts)
        answer = self._cluster.run(send(END_TXN, request, self._coordinator, END_TXN_CLASSIC))
        check(self._name, answer.error_code)
        self._stopping.wait(self._chance.uniform(0, 2 * count / self._rate))

    def _write(self, records: Sequence[NewRecord], identity: _Identity) -> None:
        by_partition = gathered((self._choose(each), each) for each in records)
        self._add_partitions(sorted(by_partition), identity)
        led = gathered((self._partitions[number].leader_id, number) for number in by_partition)
        for leader, numbers in led.items():
            data = [
                PartitionProduceData(
                    number, memoryview(self._batch(number, by_partition[number], identity))
                )
                for number in numbers
            ]
            topic = TopicProduceData(name=self._topic, partition_data=data)
            request = ProduceRequest(self._name, -1, TIMEOUT_MS, [topic])
            answer = self._cluster.node(leader).ask(PRODUCE, request, PRODUCE_CLASSIC)
            for each in answer.responses[0].partition_responses:
                check(f"{self._topic}-{each.index}", each.error_code, each.error_message)

    def _choose(self, record: NewRecord) -> int:
        if record.key is None:
            return self._chance.randrange(len(self._partitions))
        return partition_of(record.key, len(self._partitions))

    def _add_partitions(self, numbers: list[int], identity: _Identity) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(self._topic, numbers)],
        )
        exchange = send(
            ADD_PARTITIONS_TO_TXN, request, self._coordinator, ADD_PARTITIONS_BY_CLIENTS
        )
        while True:
            answer = self._cluster.run(exchange)
            (topic,) = answer.results_by_topic_v3_and_below
            codes = {each.partition_error_code for each in topic.results_by_partition} - {0}
            if codes != {ErrorCode.CONCURRENT_TRANSACTIONS}:
                break
            sleep(0.01)  # The markers of the transaction before are being written.
            exchange = send(
                ADD_PARTITIONS_TO_TXN, request, self._coordinator, ADD_PARTITIONS_BY_CLIENTS
            )
        for code in codes:
            check(self._name, code)

    def _batch(self, number: int, records: Sequence[NewRecord], identity: _Identity) -> bytes:
        base_sequence = self._sequences.get(number, 0)
        self._sequences[number] = base_sequence + len(records)
        now_ms = now_ns() // 1_000_000
        return encode_batch(
            [
                Record(index, each.timestamp or now_ms, each.key, each.value, each.headers)
                for index, each in enumerate(records)
            ],
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=base_sequence,
            transactional=True,
        )
