"""Transactional producers, each with one transaction after the other: write, commit, again.

They speak the protocol of KIP-890 as Java's producer does: writing adds the partitions, the answer
to EndTxn brings the epoch of the next transaction. Where the broker says that the transaction
before is still ending, they sleep as long as Java's producer sleeps, and ask again.
"""

from __future__ import annotations

import gc
import select
import socket
import time
from array import array
from collections.abc import Callable, Generator
from typing import Any

from protocol.client import NEED_DATA, ClientConnection
from protocol.errors import ErrorCode
from protocol.messages.end_txn import END_TXN, EndTxnRequest
from protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from protocol.records import Record, encode_batch
from tests.bench.load import Measurement, RequestFailed, summarise
from tests.counterparts.broker_process import HOST
from tests.counterparts.usage import CpuTime

PRODUCE_VERSION = 12
END_TXN_VERSION = 5
INIT_PRODUCER_ID_VERSION = 4
FIND_COORDINATOR_VERSION = 4
TRANSACTION = 1
TIMEOUT_MS = 60_000
AGAIN_S = 0.02
"""How long Java's producer sleeps after CONCURRENT_TRANSACTIONS."""
READY_TIMEOUT_S = 30
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}

Request = tuple[Any, Any, int]
Step = Request | None
"""A request to send, or None: sleep for AGAIN_S."""


class Producer:
    """One transactional id on a connection of its own, as the steps of its life."""

    def __init__(
        self, port: int, key: str, topic: str, partitions: list[int], records: int
    ) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=READY_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = ClientConnection("bench")
        self.latencies = array("d")
        self.steps = self._live(key, topic, partitions, records)

    def _live(
        self, key: str, topic: str, partitions: list[int], records: int
    ) -> Generator[Step, Any, None]:
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[key])
        yield from self._until_taken(
            (FIND_COORDINATOR, find, FIND_COORDINATOR_VERSION),
            lambda answer: answer.coordinators[0].error_code,
        )
        begun = yield from self._until_taken(
            (INIT_PRODUCER_ID, InitProducerIdRequest(key, TIMEOUT_MS), INIT_PRODUCER_ID_VERSION),
            lambda answer: answer.error_code,
        )
        producer = begun.producer_id, begun.producer_epoch
        while True:
            started = time.perf_counter()
            written = (PRODUCE, _write(key, topic, partitions, records, producer), PRODUCE_VERSION)
            yield from self._until_taken(written, _worst)
            ended = yield from self._until_taken(
                (END_TXN, EndTxnRequest(key, *producer, True), END_TXN_VERSION),
                lambda answer: answer.error_code,
            )
            producer = ended.producer_id, ended.producer_epoch
            self.latencies.append(time.perf_counter() - started)

    def _until_taken(
        self, request: Request, error_of: Callable[[Any], int]
    ) -> Generator[Step, Any, Any]:
        """Ask until the broker does not say "later" any more."""
        while True:
            answer = yield request
            error = error_of(answer)
            if not error:
                return answer
            if error not in AGAIN:
                raise RequestFailed(f"{request[0].name} answered error code {error}")
            yield None


class Transactions:
    """Producers that each write `records` records per transaction, spread over `partitions`."""

    def __init__(
        self, port: int, topic: str, *, producers: int, partitions: int, records: int
    ) -> None:
        run = time.time_ns()
        self._producers = [
            Producer(
                port,
                f"{topic}-{run}-{number}",
                topic,
                [(number * partitions + index) for index in range(partitions)],
                records,
            )
            for number in range(producers)
        ]

    def run(
        self, warm_up_s: float, duration_s: float, broker_cpu: Callable[[], CpuTime]
    ) -> Measurement:
        """Commit one transaction after the other; the time of one is from write to answer."""
        self._wake = [0.0] * len(self._producers)
        gc.disable()
        try:
            for number in range(len(self._producers)):
                self._step(number, None)
            self._turn_until(time.perf_counter() + READY_TIMEOUT_S, until_all_have_one=True)
            self._turn_until(time.perf_counter() + warm_up_s)
            for producer in self._producers:
                del producer.latencies[:]
            cpu_before, own_before = broker_cpu().total_s, time.process_time()
            started = time.perf_counter()
            ended = self._turn_until(started + duration_s)
            cpu_s, own_s = broker_cpu().total_s - cpu_before, time.process_time() - own_before
        finally:
            gc.enable()
            for producer in self._producers:
                producer.socket.close()
        latencies = array("d")
        for producer in self._producers:
            latencies.extend(producer.latencies)
        return summarise(latencies, ended - started, cpu_s, own_s)

    def _turn_until(self, deadline: float, *, until_all_have_one: bool = False) -> float:
        sockets = {producer.socket: number for number, producer in enumerate(self._producers)}
        now = time.perf_counter()
        while now < deadline:
            if until_all_have_one and all(producer.latencies for producer in self._producers):
                return now
            sleeping = [at for at in self._wake if at]
            wait_s = max(0.0, min([*sleeping, deadline]) - now)
            ready, _, _ = select.select(list(sockets), [], [], wait_s)
            for each in ready:
                self._receive(sockets[each])
            now = time.perf_counter()
            for number, at in enumerate(self._wake):
                if at and at <= now:
                    self._step(number, None)
        if until_all_have_one:
            raise RequestFailed("no transaction was committed")
        return now

    def _receive(self, number: int) -> None:
        producer = self._producers[number]
        data = producer.socket.recv(1 << 16)
        if not data:
            raise RequestFailed("the broker closed the connection")
        producer.connection.receive_data(data)
        while (found := producer.connection.next_response()) is not NEED_DATA:
            self._step(number, found[1])

    def _step(self, number: int, answer: object) -> None:
        """Go on with what was answered; send what comes next, or sleep."""
        producer = self._producers[number]
        self._wake[number] = 0.0
        step = producer.steps.send(answer)
        if step is None:
            self._wake[number] = time.perf_counter() + AGAIN_S
            return
        api, request, version = step
        _, frame = producer.connection.request(api, version, request)
        producer.socket.sendall(b"".join(frame))


def _write(
    key: str, topic: str, partitions: list[int], records: int, producer: tuple[int, int]
) -> ProduceRequest:
    """One batch for each partition; with KIP-890 sequences begin at 0 in each transaction."""
    now_ms = time.time_ns() // 1_000_000
    share = max(1, records // len(partitions))
    chosen = [Record(number, now_ms, None, bytes(100), ()) for number in range(share)]
    batch = encode_batch(
        chosen,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    data = [PartitionProduceData(partition, memoryview(batch)) for partition in partitions]
    return ProduceRequest(key, -1, TIMEOUT_MS, [TopicProduceData(topic, partition_data=data)])


def _worst(answer: Any) -> int:
    codes = [
        partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
        if partition.error_code
    ]
    return codes[0] if codes else 0
