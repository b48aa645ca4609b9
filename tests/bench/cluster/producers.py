"""Transactional producers of a cluster: each speaks with its coordinator and with every leader.

The behaviour is that of Java's producer: the records for several brokers leave at once, and EndTxn
follows when all are acknowledged. Requests with a retriable error are sent again after the wait of
Java's producer.
"""

from __future__ import annotations

import gc
import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from tests.bench.load import Measurement, RequestFailed, summarise
from tests.bench.transactions import (
    AGAIN,
    AGAIN_S,
    END_TXN_VERSION,
    INIT_PRODUCER_ID_VERSION,
    READY_TIMEOUT_S,
    TIMEOUT_MS,
    Load,
    Request,
)
from tests.counterparts.broker_process import HOST
from tests.counterparts.usage import CpuTime

NOT_YET = AGAIN | {ErrorCode.NOT_LEADER_OR_FOLLOWER}


class Call(NamedTuple):
    """A request to one of the brokers."""

    port: int
    request: Request


Step = list[Call] | None
"""Requests that leave together, or None: sleep for AGAIN_S. Answers come in the same order."""


class Place(NamedTuple):
    """Coordinator and partitions of one producer's transactions."""

    key: str
    coordinator_port: int
    partitions: dict[int, list[int]]
    """By the port of their leader."""


class Transactions(NamedTuple):
    """Measurements: whole transactions, their ends alone, and the number of retries."""

    whole: Measurement
    ends: Sequence[float]
    again: int


class Producer:
    """One producer as a generator of steps, with a connection to each broker that it needs."""

    def __init__(self, topic: str, place: Place) -> None:
        self.latencies, self.ends = array("d"), array("d")
        self.again = 0
        self.connections: dict[int, tuple[socket.socket, ClientConnection]] = {}
        self._slots: dict[int, deque[int]] = {}
        self._answers: list[Any] = []
        self._missing = 0
        loads = {
            port: Load(topic, partitions, 1, transactional=True)
            for port, partitions in place.partitions.items()
        }
        self._steps = self._live(place, loads)

    def begin(self) -> bool:
        """Take the first step; returns False to be called again after AGAIN_S."""
        return self._take(next(self._steps))

    def go_on(self) -> bool:
        """Continue after a sleep."""
        return self._take(self._steps.send(None))

    def receive(self, port: int) -> bool:
        """Read a broker's response; return False for a sleep."""
        connected, connection = self.connections[port]
        data = connected.recv(1 << 16)
        if not data:
            raise RequestFailed("the broker closed the connection")
        connection.receive_data(data)
        while (found := connection.next_response()) is not NEED_DATA:
            self._answers[self._slots[port].popleft()] = found[1]
            self._missing -= 1
        if self._missing:
            return True
        return self._take(self._steps.send(self._answers))

    def close(self) -> None:
        """Close its connections."""
        for connected, _ in self.connections.values():
            connected.close()

    def _take(self, step: Step) -> bool:
        if step is None:
            self.again += 1
            return False
        self._answers, self._missing = [None] * len(step), len(step)
        for slot, (port, (api, request, version)) in enumerate(step):
            connected, connection = self._connected(port)
            self._slots[port].append(slot)
            _, frame = connection.request(api, version, request)
            connected.sendall(b"".join(frame))
        return True

    def _connected(self, port: int) -> tuple[socket.socket, ClientConnection]:
        if port not in self.connections:
            connected = socket.create_connection((HOST, port), timeout=READY_TIMEOUT_S)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[port] = connected, ClientConnection("bench")
            self._slots[port] = deque()
        return self.connections[port]

    def _live(self, place: Place, loads: dict[int, Load]) -> Generator[Step, Any, None]:
        init = InitProducerIdRequest(place.key, TIMEOUT_MS)
        begun = yield from _until_taken(
            [Call(place.coordinator_port, (INIT_PRODUCER_ID, init, INIT_PRODUCER_ID_VERSION))]
        )
        producer = begun.producer_id, begun.producer_epoch
        # All connections are open before the measurement.
        for port in loads:
            self._connected(port)
        while True:
            started = time.perf_counter()
            yield from _until_taken(
                [Call(port, load.write(place.key, producer, 0)) for port, load in loads.items()]
            )
            written = time.perf_counter()
            end = EndTxnRequest(place.key, *producer, True)
            ended = yield from _until_taken(
                [Call(place.coordinator_port, (END_TXN, end, END_TXN_VERSION))]
            )
            now = time.perf_counter()
            producer = ended.producer_id, ended.producer_epoch
            self.latencies.append(now - started)
            self.ends.append(now - written)


def _until_taken(calls: list[Call]) -> Generator[Step, Any, Any]:
    """Send the calls until none gets a retriable error; return the last response."""
    while True:
        answers = yield calls
        left = []
        for call, answer in zip(calls, answers, strict=True):
            error = _error_of(call, answer)
            if error in NOT_YET:
                left.append(call)
            elif error:
                raise RequestFailed(f"{call.request[0].name} answered error code {error}")
        if not left:
            return answers[-1]
        yield None
        calls = left


def _error_of(call: Call, answer: Any) -> int:
    """Return the error of an answer; of several the one that is no "later"."""
    if call.request[0] is not PRODUCE:
        return int(answer.error_code)
    errors = {
        partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
        if partition.error_code
    }
    return next(iter(errors - NOT_YET or errors), 0)


def run_transactions(
    topic: str,
    places: Sequence[Place],
    warm_up_s: float,
    duration_s: float,
    broker_cpu: Callable[[], CpuTime],
) -> Transactions:
    """Commit one transaction after the other at each place."""
    return _Loop([Producer(topic, place) for place in places]).run(
        warm_up_s, duration_s, broker_cpu
    )


class _Loop:
    """All producers in one thread."""

    def __init__(self, producers: Sequence[Producer]) -> None:
        self._producers = producers
        self._wake: dict[int, float] = {}
        self._poll = select.epoll()
        self._known: dict[int, tuple[int, int]] = {}

    def run(
        self, warm_up_s: float, duration_s: float, broker_cpu: Callable[[], CpuTime]
    ) -> Transactions:
        gc.disable()
        try:
            for number, producer in enumerate(self._producers):
                self._note(number, is_going=producer.begin())
            self._turn_until(time.perf_counter() + READY_TIMEOUT_S, until_all_have_one=True)
            self._turn_until(time.perf_counter() + warm_up_s)
            for producer in self._producers:
                del producer.latencies[:], producer.ends[:]
                producer.again = 0
            cpu_before, own_before = broker_cpu().total_s, time.process_time()
            started = time.perf_counter()
            ended = self._turn_until(started + duration_s)
            cpu_s, own_s = broker_cpu().total_s - cpu_before, time.process_time() - own_before
        finally:
            gc.enable()
            for producer in self._producers:
                producer.close()
            self._poll.close()
        latencies, ends = array("d"), array("d")
        for producer in self._producers:
            latencies.extend(producer.latencies)
            ends.extend(producer.ends)
        whole = summarise(latencies, ended - started, cpu_s, own_s)
        return Transactions(whole, sorted(ends), sum(each.again for each in self._producers))

    def _turn_until(self, deadline: float, *, until_all_have_one: bool = False) -> float:
        now = time.perf_counter()
        while now < deadline:
            if until_all_have_one and all(each.latencies for each in self._producers):
                return now
            until = min([*self._wake.values(), deadline])
            for descriptor, _ in self._poll.poll(max(0.0, until - now)):
                number, port = self._known[descriptor]
                self._note(number, is_going=self._producers[number].receive(port))
            now = time.perf_counter()
            for number in [number for number, at in self._wake.items() if at <= now]:
                del self._wake[number]
                self._note(number, is_going=self._producers[number].go_on())
        if until_all_have_one:
            raise RequestFailed("no transaction was committed")
        return now

    def _note(self, number: int, *, is_going: bool) -> None:
        """Wake a producer later that wants to sleep; hear new connections."""
        if not is_going:
            self._wake[number] = time.perf_counter() + AGAIN_S
        producer = self._producers[number]
        for port, (connected, _) in producer.connections.items():
            if connected.fileno() not in self._known:
                self._known[connected.fileno()] = number, port
                self._poll.register(connected, select.EPOLLIN)
