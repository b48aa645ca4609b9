"""The load client against a toy server: it counts answers, and it notices errors."""

import socket
import struct
import threading

import pytest

from tests.bench.frames import Frames
from tests.bench.load import ClosedLoop, RequestFailed
from tests.counterparts.usage import CpuTime

ERROR_POSITION = 12
FRAMES = Frames([b"request-number-1", b"request-number-2"], ERROR_POSITION)


class ToyServer:
    """Answers each 16-byte request behind the client's introduction with `size` bytes and the error
    code of its turn, 0 unless told otherwise; None closes the connection.
    """

    def __init__(self, size, errors=None):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests = []
        self._size = size
        self._errors = errors or {}
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as stream:
            (introduction_bytes,) = struct.unpack(">i", stream.read(4))
            stream.read(introduction_bytes)
            connection.sendall(struct.pack(">i", 4) + bytes(4))
            while request := stream.read(16):
                error = self._errors.get(len(self.requests), 0)
                if error is None:
                    return
                self.requests.append(request)
                body = bytearray(self._size)
                struct.pack_into(">i", body, 0, self._size - 4)
                struct.pack_into(">h", body, ERROR_POSITION, error)
                try:
                    connection.sendall(body)
                except OSError:
                    return

    def close(self):
        self._listener.close()


@pytest.fixture
def toy_server(request):
    server = ToyServer(*request.param)
    yield server
    server.close()


def idle_broker():
    return CpuTime(0.0, 0.0)


@pytest.mark.parametrize("toy_server", [(40,), (3_000_000,)], indirect=True)
def test_every_request_is_answered_in_turn(toy_server):
    loop = ClosedLoop(toy_server.port, [FRAMES], in_flight=5)
    measured = loop.run(0.05, 0.3, idle_broker)
    assert set(toy_server.requests[::2]) == {b"request-number-1"}
    assert set(toy_server.requests[1::2]) == {b"request-number-2"}
    assert 0 < measured.rate * 0.3 <= len(toy_server.requests)
    assert 0 < measured.p50_s <= measured.p99_s
    assert measured.broker_cpu_s == 0


@pytest.mark.parametrize("toy_server", [(40, {20: 6})], indirect=True)
def test_an_error_code_ends_the_run(toy_server):
    loop = ClosedLoop(toy_server.port, [FRAMES], in_flight=5)
    with pytest.raises(RequestFailed, match="error code 6"):
        loop.run(0.0, 5.0, idle_broker)


@pytest.mark.parametrize("toy_server", [(40, {20: None})], indirect=True)
def test_a_closed_connection_ends_the_run(toy_server):
    loop = ClosedLoop(toy_server.port, [FRAMES], in_flight=5)
    with pytest.raises((RequestFailed, ConnectionError)):
        loop.run(0.0, 5.0, idle_broker)
