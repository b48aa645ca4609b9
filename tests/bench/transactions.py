"""Transactional producers, each with one transaction after the other: write, commit, again.

They use transaction protocol v2 (KIP-890), as Java's producer does: a write adds the partitions,
and the response to EndTxn has the epoch of the next transaction. On CONCURRENT_TRANSACTIONS, they
sleep as long as Java's producer, and retry.

A plain producer also behaves like Java's: idempotent, and it sends the next requests while earlier
ones are pending. A transaction sends no request while it ends.
"""

from __future__ import annotations

import gc
import select
import socket
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import count
from typing import Any

from crc32c import crc32c

from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import CRC_START, Record, encode_batch
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
"""Time, in seconds, that Java's producer sleeps after CONCURRENT_TRANSACTIONS."""
READY_TIMEOUT_S = 30
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}

Request = tuple[Any, Any, int]
Step = Iterable[Request] | None
"""Requests to send one behind the other, or None: sleep for AGAIN_S."""
_CRC = struct.Struct(">I")
_CRC_AT = 17
_PRODUCER = struct.Struct(">qhi")  # id, epoch, base sequence
_PRODUCER_AT = 43


class Load:
    """Content of one write: a batch for each of some partitions, encoded beforehand."""

    def __init__(
        self, topic: str, partitions: list[int], records: int, *, transactional: bool
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        self.share = max(1, records // len(partitions))
        chosen = [Record(number, now_ms, None, bytes(100), ()) for number in range(self.share)]
        self._batch = bytearray(encode_batch(chosen, transactional=transactional))
        data = [PartitionProduceData(each, memoryview(self._batch)) for each in partitions]
        self._topics = [TopicProduceData(topic, partition_data=data)]

    def write(self, key: str | None, producer: tuple[int, int], base_sequence: int) -> Request:
        """Return the Produce of a producer; encode it before the next call."""
        _PRODUCER.pack_into(self._batch, _PRODUCER_AT, *producer, base_sequence)
        with memoryview(self._batch) as view:
            checksum = crc32c(view[CRC_START:])
        _CRC.pack_into(self._batch, _CRC_AT, checksum)
        return PRODUCE, ProduceRequest(key, -1, TIMEOUT_MS, self._topics), PRODUCE_VERSION


class Producer:
    """A producer with its own connection, as a generator of steps."""

    def __init__(self, port: int, key: str, load: Load, *, plain_in_flight: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=READY_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = ClientConnection("bench")
        self.latencies = array("d")
        if plain_in_flight:
            self.steps = self._live_plainly(load, plain_in_flight)
        else:
            self.steps = self._live(key, load)

    def _live(self, key: str, load: Load) -> Generator[Step, Any, None]:
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[key])
        yield from self._until_taken(
            (FIND_COORDINATOR, find, FIND_COORDINATOR_VERSION),
            lambda answer: answer.coordinators[0].error_code,
        )
        producer = yield from self._begin(key)
        while True:
            started = time.perf_counter()
            # With KIP-890 sequences begin at 0 in each transaction.
            yield from self._until_taken(load.write(key, producer, 0), _worst)
            ended = yield from self._until_taken(
                (END_TXN, EndTxnRequest(key, *producer, True), END_TXN_VERSION),
                lambda answer: answer.error_code,
            )
            producer = ended.producer_id, ended.producer_epoch
            self.latencies.append(time.perf_counter() - started)

    def _live_plainly(self, load: Load, in_flight: int) -> Generator[Step, Any, None]:
        producer = yield from self._begin(None)
        # One is written and awaited first: a partition may not be ready yet.
        yield from self._until_taken(load.write(None, producer, 0), _worst)
        sequences = count(load.share, load.share)
        started: deque[float] = deque()

        def write() -> Request:
            started.append(time.perf_counter())
            return load.write(None, producer, next(sequences))

        answer = yield (write() for _ in range(in_flight))
        while True:
            error = _worst(answer)
            if error:
                raise RequestFailed(f"Produce answered error code {error}")
            self.latencies.append(time.perf_counter() - started.popleft())
            answer = yield [write()]

    def _begin(self, key: str | None) -> Generator[Step, Any, tuple[int, int]]:
        begun = yield from self._until_taken(
            (INIT_PRODUCER_ID, InitProducerIdRequest(key, TIMEOUT_MS), INIT_PRODUCER_ID_VERSION),
            lambda answer: answer.error_code,
        )
        return begun.producer_id, begun.producer_epoch

    def _until_taken(
        self, request: Request, error_of: Callable[[Any], int]
    ) -> Generator[Step, Any, Any]:
        """Send a request until it gets no retriable error."""
        while True:
            answer = yield [request]
            error = error_of(answer)
            if not error:
                return answer
            if error not in AGAIN:
                raise RequestFailed(f"{request[0].name} answered error code {error}")
            yield None


class Transactions:
    """Producers that each write `records` records per transaction, spread over `partitions`.

    With `plain_in_flight` there are no transactions: so many such writes are under way.
    """

    def __init__(
        self,
        port: int,
        topic: str,
        *,
        producers: int,
        partitions: int,
        records: int,
        plain_in_flight: int = 0,
    ) -> None:
        run = time.time_ns()
        self._producers = [
            Producer(
                port,
                f"{topic}-{run}-{number}",
                Load(
                    topic,
                    [(number * partitions + index) for index in range(partitions)],
                    records,
                    transactional=not plain_in_flight,
                ),
                plain_in_flight=plain_in_flight,
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
        """Continue with a response; send the next request, or sleep."""
        producer = self._producers[number]
        self._wake[number] = 0.0
        step = producer.steps.send(answer)
        if step is None:
            self._wake[number] = time.perf_counter() + AGAIN_S
            return
        for api, request, version in step:
            _, frame = producer.connection.request(api, version, request)
            producer.socket.sendall(b"".join(frame))


def _worst(answer: Any) -> int:
    codes = [
        partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
        if partition.error_code
    ]
    return codes[0] if codes else 0
