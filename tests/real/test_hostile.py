"""Bad input from raw sockets: no hang, no traceback, memory and files back where they were.

Everything here talks to a whole broker in its own thread, and looks at the process afterwards.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import resource
import select
import socket
import struct
import time
from contextlib import ExitStack

import pytest

from barnabas.broker.api.dispatch import ROUTES
from barnabas.broker.client.dialing import connect
from barnabas.protocol.client import ClientConnection
from barnabas.testing import Broker
from tests.broker.sample_requests import SAMPLES
from tests.broker.toy import request
from tests.protocol.mutilation import MUTATORS
from tests.seeds import SEED
from tests.waiting import wait_until

ECHO = request(18, version=0, correlation_id=77)
"""ApiVersions v0, which needs no body."""

MUTILATED_PER_VERSION = 6
IDLE_CONNECTIONS = 2000


@pytest.fixture(scope="module")
def running():
    with Broker(config={"barnabas.request.receive.timeout.ms": "400"}) as broker:
        broker.create_topic("kept")
        yield broker


@pytest.fixture(scope="module")
def patient():
    """A broker that waits long for the rest of a request; a disconnect has another reason."""
    settings = {
        "barnabas.request.receive.timeout.ms": "600000",
        "queued.max.request.bytes": "8000000",
    }
    with Broker(config=settings) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _no_trace_is_left(running, caplog, monkeypatch):
    """Check that no line above WARNING is logged, and no file descriptor stays open."""
    assert alive(running)
    before = open_files()
    yield
    assert alive(running)
    wait_until(lambda: connections(running) == 0)
    wait_until(lambda: open_files() <= before)
    # A warning for each broken rule is right; an error or a traceback would be a bug of Barnabas.
    records = caplog.get_records("call")
    bad = [r for r in records if r.levelno > logging.WARNING or r.exc_info]
    assert not bad, f"seed {SEED}: {bad[0].getMessage()} {bad[0].exc_info}"
    sockets = running.server.sockets
    assert sockets.ring_pool.borrowed == 0
    # A thread may still decode the frame of a client that has left.
    wait_until(lambda: sockets.frame_budget.used_bytes == 0)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def connections(running) -> int:
    return running.call(lambda: len(running.server.sockets.connections))


def alive(running) -> bool:
    with connect(running.address, 60) as sock:
        sock.sendall(ECHO)
        return receive(sock, 8)[4:] == struct.pack(">i", 77)


def receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            return data
        data += more
    return data


def hung_up(sock: socket.socket, seconds: float = 60) -> bool:
    """Whether the broker closes; what it still sends is read and dropped."""
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def dial(running) -> socket.socket:
    return connect(running.address, 60)


def valid_frames(running):
    topic_id = running.call(lambda: running.server.catalogue.topic("kept").topic_id)
    for route in ROUTES:
        for version in range(route.min_version, route.max_version + 1):
            message = SAMPLES[route.name]("kept", topic_id, "gone", bytes(16))
            chunks = ClientConnection("hostile").request(route.api, version, message)[1]
            yield b"".join(chunks)


def test_mutilated_requests_are_answered_or_refused(running):
    rng = random.Random(SEED)
    frames = list(valid_frames(running))
    for frame in frames:
        for _ in range(MUTILATED_PER_VERSION):
            payload = rng.choice(MUTATORS)(frame[4:], rng)
            with dial(running) as sock:
                sock.sendall(struct.pack(">i", len(payload)) + payload)
                sock.shutdown(socket.SHUT_WR)
                assert hung_up(sock), f"seed {SEED}: {payload!r}"


def test_noise_is_refused(running):
    rng = random.Random(SEED)
    for size in (1, 3, 4, 5, 10, 100, 5000, 300_000):
        for _ in range(5):
            with dial(running) as sock:
                try:
                    sock.sendall(rng.randbytes(size))
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    continue  # refused before all of it was sent
                assert hung_up(sock)


@pytest.mark.parametrize(
    "greeting", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"SSH-2.0-x\n"]
)
def test_other_protocols_are_refused_at_once(patient, greeting):
    with dial(patient) as sock:
        sock.sendall(greeting)
        assert hung_up(sock)


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 9, 2**31 - 1, 100 * 1024 * 1024 + 1])
def test_absurd_lengths_are_refused_before_anything_is_allocated(patient, size):
    before = resident_bytes()
    with dial(patient) as sock:
        sock.sendall(struct.pack(">i", size))
        assert hung_up(sock)
    assert resident_bytes() - before < 50_000_000


def test_absurd_array_lengths_are_refused(running):
    for count in (0x7FFFFFFF, -2, 1_000_001):
        with dial(running) as sock:
            sock.sendall(request(3, struct.pack(">i", count), version=1))
            assert hung_up(sock)


@pytest.mark.parametrize(
    ("key", "version"), [(4, 0), (71, 0), (999, 0), (-1, 0), (0, 2), (1, 3), (3, 14), (3, -1)]
)
def test_unknown_keys_and_versions_are_refused(running, key, version):
    with dial(running) as sock:
        sock.sendall(request(key, version=version, tags=b"\0"))
        assert hung_up(sock)


def test_a_good_request_before_a_bad_one_is_answered(running):
    with dial(running) as sock:
        sock.sendall(ECHO + struct.pack(">i", -5) + ECHO)
        (size,) = struct.unpack(">i", receive(sock, 4))
        assert receive(sock, size)[:4] == struct.pack(">i", 77)
        assert sock.recv(1) == b""


def test_half_a_request_runs_out_of_time(running):
    for sent in (ECHO[:3], ECHO[:4], ECHO[:9], struct.pack(">i", 5_000_000) + b"x" * 10_000):
        with dial(running) as sock:
            sock.sendall(sent)
            assert hung_up(sock)


def test_a_trickle_runs_out_of_time(running):
    with dial(running) as sock:
        sock.sendall(struct.pack(">i", 1000))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                sock.sendall(b"x")
            except OSError:
                break
            if select.select([sock], [], [], 0.02)[0]:
                break
        assert hung_up(sock)


def test_one_who_never_reads_costs_a_bounded_amount(running):
    before = resident_bytes()
    with dial(running) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(0.5)
        with pytest.raises(TimeoutError):  # noqa: PT012  any of these calls
            while True:
                sock.sendall(ECHO * 1000)
        assert resident_bytes() - before < 30_000_000
        assert alive(running)


def test_resets_in_every_stage(running):
    fetch = next(frame for frame in valid_frames(running) if frame[4:6] == b"\0\1")
    produce = next(frame for frame in valid_frames(running) if frame[4:6] == b"\0\0")
    for sent in (b"", ECHO[:5], ECHO, fetch, produce, produce * 20, fetch + ECHO, produce + fetch):
        for _ in range(10):
            sock = dial(running)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(sent)
            sock.close()


def announce(sock: socket.socket, size: int, sent: int) -> None:
    """Begin a request of ``size`` bytes and send so much of it."""
    sock.sendall(struct.pack(">i", size) + bytes(sent))


def greet(sock: socket.socket) -> None:
    """Complete a request: a client without one is a stranger, and strangers share little memory."""
    sock.sendall(ECHO)
    receive(sock, 26)


def large_request_is_answered(running) -> bool:
    """Whether a well-behaved client is served: a request of 540 KB, too large for a ring."""
    with dial(running) as sock:
        greet(sock)
        sock.sendall(request(18, bytes(540_000), version=3, correlation_id=78, tags=b"\0"))
        return hung_up(sock)


def test_announced_frames_cost_nothing(patient):
    before = resident_bytes()
    with ExitStack() as stack:
        for _ in range(300):
            announce(stack.enter_context(dial(patient)), 100 * 1024 * 1024, 10)
        budget = patient.server.sockets.frame_budget
        wait_until(lambda: budget.used_bytes == 300 * 10)
        assert resident_bytes() - before < 20_000_000
        assert large_request_is_answered(patient)
        assert budget.waiting == 0
    wait_until(lambda: budget.used_bytes == 0)


@pytest.mark.parametrize(("size", "sent"), [(2_000_000, 1_000_000), (1_000_000, 999_999)])
def test_unfinished_frames_that_fill_memory_are_closed_when_others_wait(patient, size, sent):
    with ExitStack() as stack:
        for _ in range(8):
            announce(sock := stack.enter_context(dial(patient)), size, sent)
            sock.settimeout(0.1)
        budget = patient.server.sockets.frame_budget
        wait_until(lambda: budget.used_bytes > 2_000_000)
        assert large_request_is_answered(patient)
        assert budget.used_bytes <= 8_000_000 + 2_000_000
    wait_until(lambda: budget.used_bytes == 0)


def test_incomplete_small_frames_are_bounded_together(patient):
    with ExitStack() as stack:
        for _ in range(100):
            greet(sock := stack.enter_context(dial(patient)))
            announce(sock, 255_000, 250_000)
        budget = patient.server.sockets.frame_budget
        wait_until(lambda: budget.evicted)
        assert budget.used_bytes <= 8_000_000
        assert large_request_is_answered(patient)
        assert alive(patient)
    wait_until(lambda: budget.used_bytes == 0)


def test_thousands_of_idle_connections_are_cheap(patient):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * IDLE_CONNECTIONS + 500
    if hard < wanted:
        pytest.fail(f"this test needs {wanted} open files, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    patient.call(lambda: patient.server.sockets.configure(patient.server.config))
    try:
        gc.collect()
        before = resident_bytes()
        with ExitStack() as stack:
            idle = [stack.enter_context(dial(patient)) for _ in range(IDLE_CONNECTIONS)]
            for sock in idle:
                sock.sendall(ECHO)
            for sock in idle:
                assert receive(sock, 8)[4:] == struct.pack(">i", 77)
            wait_until(lambda: connections(patient) == IDLE_CONNECTIONS)
            grown = resident_bytes() - before
            assert grown / IDLE_CONNECTIONS < 12_000, f"{grown} bytes"
            assert alive(patient)
        wait_until(lambda: connections(patient) == 0)
        assert resident_bytes() - before < 30_000_000  # they all ended in one turn of the loop
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
