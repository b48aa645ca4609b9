"""One record at a time from a producer to a consumer that waits in a long poll."""

import gc
import socket
import struct
import time
from array import array
from collections.abc import Callable
from typing import Final

from tests.bench.frames import (
    FetchPlace,
    batch,
    fetch_error_position,
    fetch_frame,
    produce_error_position,
    produce_frame,
)
from tests.bench.load import Measurement, RequestFailed, summarise
from tests.counterparts.broker_process import HOST
from tests.counterparts.usage import CpuTime

FETCH_WAIT_MS = 5_000
PARK_S = 0.0003
"""The time that a broker takes to park a Fetch."""
_ERROR: Final = struct.Struct(">h")
_NEXT_OFFSET: Final = struct.Struct(">q")


class Peer:
    """A blocking connection with a buffer: one frame out, one answer in."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes | bytearray) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """Return one whole answer, its size included."""
        answer = self._socket.recv(65_536)
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            more = self._socket.recv(1 << 20)
            if not more:
                raise RequestFailed("the broker closed the connection")
            answer += more
        return answer

    def ask(self, frame: bytes | bytearray) -> bytes:
        self.send(frame)
        return self.receive()

    def fileno(self) -> int:
        """Return the descriptor of the socket, for ``select``."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


class EndToEnd:
    """A producer and a long-polling consumer on one partition of a fresh topic."""

    def __init__(self, port: int, topic: str) -> None:
        self._producer, self._consumer = Peer(port), Peer(port)
        self._produce = produce_frame(topic, 0, batch(1, 100))
        self._produce_error = produce_error_position(topic)
        place = FetchPlace(topic, 0, 0x0123456789ABCDEF, 1 << 20, FETCH_WAIT_MS)
        self._fetch = bytearray(fetch_frame(place))
        self._fetch_error = fetch_error_position(topic)
        # The offset is patched in place before each Fetch.
        self._offset_position = self._fetch.index(_NEXT_OFFSET.pack(place.offset))
        self._offset = 0

    def run(
        self, warm_up_s: float, duration_s: float, broker_cpu: Callable[[], CpuTime]
    ) -> Measurement:
        """Send one record after the other; the time of one is from its send to its arrival."""
        latencies = array("d")
        gc.disable()
        try:
            self._catch_up()
            self._turn_until(time.perf_counter() + warm_up_s, array("d"))
            cpu_before, own_before = broker_cpu().total_s, time.process_time()
            started = time.perf_counter()
            ended = self._turn_until(started + duration_s, latencies)
            cpu_s, own_s = broker_cpu().total_s - cpu_before, time.process_time() - own_before
        finally:
            gc.enable()
            self._producer.close()
            self._consumer.close()
        return summarise(latencies, ended - started, cpu_s, own_s)

    def _catch_up(self) -> None:
        """Set the consumer behind the last record: one more, whose offset the broker tells."""
        answer = self._producer.ask(self._produce)
        self._check(answer, self._produce_error)
        self._offset = 1 + _NEXT_OFFSET.unpack_from(answer, self._produce_error + 2)[0]

    def _turn_until(self, deadline: float, latencies: "array[float]") -> float:
        now = time.perf_counter()
        while now < deadline:
            _NEXT_OFFSET.pack_into(self._fetch, self._offset_position, self._offset)
            self._consumer.send(self._fetch)
            # The poll should be parked before the record is sent, as with a waiting consumer.
            time.sleep(PARK_S)
            started = time.perf_counter()
            self._producer.send(self._produce)
            fetched = self._consumer.receive()
            now = time.perf_counter()
            latencies.append(now - started)
            self._check(fetched, self._fetch_error)
            self._check(self._producer.receive(), self._produce_error)
            self._offset += 1
        return now

    def _check(self, answer: bytes, error_position: int) -> None:
        (error,) = _ERROR.unpack_from(answer, error_position)
        if error:
            raise RequestFailed(f"error code {error}")
