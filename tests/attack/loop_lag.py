"""Longest times for which an event loop was blocked: every hostile test prints and bounds them.

For a broker in this process::

    with loop_lag(broker) as lag:
        ...                                 # the attack
    assert lag.busy_ms < LIMIT_MS           # printed at the end, together with ``held_ms``

``busy_ms`` is processor time of the loop's own thread between two looks, which a crowded machine
does not stretch: assert this. Collections of garbage are left out of it: they look through the heap
of the test and of its client, too, on the thread that happens to start them. ``held_ms`` is the
same by the clock: it has waits for disks in it, for the interpreter lock and for a processor.

For a broker in another process, whose loop can only be measured by requests::

    with round_trips(http_address) as lag:
        ...
    assert lag.held_ms < LIMIT_MS           # the slowest /livez; ``failed``: without an answer
"""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LOOK_EVERY_SECONDS = 0.002
ASK_EVERY_SECONDS = 0.02
ANSWER_WITHIN_SECONDS = 60


@dataclass(slots=True)
class LoopLag:
    """The longest times so far, in milliseconds."""

    held_ms: float = 0.0
    busy_ms: float = 0.0
    looks: int = 0
    failed: int = 0


class LoopProbe:
    """Looks at a loop every two milliseconds, from within; for tests that run on that loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lag = LoopLag()
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._seen = (0.0, 0.0)
        self._thread = 0
        self._collecting_since_s = 0.0
        self._collected_s = 0.0
        """Processor time of the collections on this thread since the last look."""

    def start(self) -> None:
        self._thread = threading.get_ident()
        gc.callbacks.append(self._collection)
        self._seen = (time.perf_counter(), time.thread_time())
        self._timer = self._loop.call_later(LOOK_EVERY_SECONDS, self._look)

    def stop(self) -> None:
        """Measure the time since the last measurement, and end."""
        assert self._timer is not None, "started on its loop, stopped there"
        self._timer.cancel()
        self._look()
        self._timer.cancel()
        gc.callbacks.remove(self._collection)

    def _collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting_since_s = time.thread_time()
        else:
            self._collected_s += time.thread_time() - self._collecting_since_s

    def _look(self) -> None:
        now = (time.perf_counter(), time.thread_time())
        held, busy = (after - before for after, before in zip(now, self._seen, strict=True))
        lag = self.lag
        lag.held_ms = max(lag.held_ms, (held - LOOK_EVERY_SECONDS) * 1000)
        lag.busy_ms = max(lag.busy_ms, (busy - self._collected_s) * 1000)
        self._collected_s = 0.0
        lag.looks += 1
        self._seen = now
        self._timer = self._loop.call_later(LOOK_EVERY_SECONDS, self._look)


@contextmanager
def loop_lag(broker: Any, name: str = "") -> Iterator[LoopLag]:
    """Measure the loop of a ``barnabas.testing.Broker`` that has a thread of its own."""
    probe: LoopProbe = broker.call(lambda: LoopProbe(asyncio.get_running_loop()))
    broker.call(probe.start)
    try:
        yield probe.lag
    finally:
        broker.call(probe.stop)
        lag = probe.lag
        print(f"loop lag {name}: held {lag.held_ms:.1f} ms, busy {lag.busy_ms:.1f} ms")


@contextmanager
def round_trips(http_address: tuple[str, int], name: str = "") -> Iterator[LoopLag]:
    """Request ``/livez`` at a broker's HTTP address repeatedly, each time on a new connection."""
    lag = LoopLag()
    over = threading.Event()

    def ask_on() -> None:
        while not over.wait(ASK_EVERY_SECONDS):
            begun = time.perf_counter()
            if not _lives(http_address):
                lag.failed += 1
            lag.looks += 1
            lag.held_ms = max(lag.held_ms, (time.perf_counter() - begun) * 1000)

    asker = threading.Thread(target=ask_on, name="loop-lag", daemon=True)
    asker.start()
    try:
        yield lag
    finally:
        over.set()
        asker.join(ANSWER_WITHIN_SECONDS + 1)
        print(f"loop lag {name}: /livez {lag.held_ms:.1f} ms at most, {lag.failed} without answer")


def _lives(http_address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(http_address, ANSWER_WITHIN_SECONDS) as sock:
            sock.sendall(b"GET /livez HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")
            return sock.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
