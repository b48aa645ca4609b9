"""Brokers in simulated time: without sockets of the kernel, without real waits, and repeatable.

::

    with World(seed=7) as world, Broker() as broker:
        broker.create_topic("orders")
        with WireClient(broker.address) as client:
            ...
        world.run_until(lambda: broker.records("orders").result)

Inside the ``with`` block ``Broker`` and ``Cluster`` run on simulated threads. Time moves only while
all threads wait, so that an hour takes milliseconds. The seed decides the order of the threads, the
latency of the network and all identifiers. Two runs of one seed have the same ``world.digest``.

Use objects of a world only on its threads. A world has no TLS and no descriptors. Clients that open
kernel sockets (kafka-python, librdkafka) need a broker outside of a world.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from barnabas.broker.client.dialing import dialing
from barnabas.broker.testing.world.loop import SimulatedLoop
from barnabas.broker.testing.world.machine import SimulatedThreads
from barnabas.broker.testing.world.network import Network
from barnabas.broker.testing.world.scheduler import Stuck
from barnabas.broker.testing.world.sockets import BlockingSocket
from barnabas.storage.runtime.clock import simulation
from barnabas.storage.runtime.machine import claim, here

if TYPE_CHECKING:
    import asyncio
    import socket

Result = TypeVar("Result")

BEGINS_MS: Final = 1_700_000_000_000
"""Default start of the wall clock: 14 November 2023."""
PATIENCE_S: Final = 600
"""Default timeout of ``run_until`` in simulated seconds."""
LOGGED_MOST: Final = 1000
"""Number of lines in ``World.log``. The digest includes all lines."""
_LOOK_S: Final = 0.001
_NOWHERE: Final = ("127.0.0.1", 0)


class _Machine(SimulatedThreads):
    """Simulated machine of a world."""

    def __init__(self, seed: int, begins_ns: int, log: Callable[[str], object]) -> None:
        super().__init__(seed, begins_ns)
        self.network = Network(self.scheduler, seed, log)
        self._loops_executor = self.executor("loop", 32, None)

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop of the simulation."""
        return SimulatedLoop(self.scheduler, self.network, self._loops_executor)

    def bind(self, host: str, port: int) -> socket.socket:
        """Return a bound socket for an event loop; raises OSError if the address is in use."""
        return cast("socket.socket", self.network.bind(host, port))

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection."""
        ends = [BlockingSocket(self.scheduler, end, None) for end in self.network.pair(_NOWHERE)]
        return cast("tuple[socket.socket, socket.socket]", tuple(ends))


class World:
    """Simulated machine, on which the calling thread runs inside the ``with`` block.

    ``seed`` repeats a run. Without it, ``world.seed`` is a random seed.

    ``begins_ms`` is the start of the wall clock, in milliseconds since the epoch. A client that
    reads timestamps from the real clock needs the current time here, because brokers reject records
    from more than an hour in the future. With the current time, each run has a different digest.
    """

    def __init__(self, seed: int | None = None, *, begins_ms: int = BEGINS_MS) -> None:
        self.seed = Random().getrandbits(32) if seed is None else seed  # noqa: S311
        self._begins_ms = begins_ms
        self.log: deque[str] = deque(maxlen=LOGGED_MOST)
        """Last events, one line for each: the nanoseconds since the start, and the event."""
        self._digest = hashlib.sha256()
        self._machine: _Machine
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        self._machine = _Machine(self.seed, self._begins_ms * 1_000_000, self._note)
        self._machine.scheduler.on_start = lambda name: self._note(f"start {name}")
        with ExitStack() as entering:
            entering.enter_context(simulation())
            entering.enter_context(claim(self._machine))
            entering.enter_context(dialing(self._dial))
            self._entered = entering.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._machine.scheduler.end()
        finally:
            self._entered.close()

    @property
    def now_s(self) -> float:
        """Return the simulated seconds since the start of the world."""
        return self._machine.scheduler.now_ns / 1e9

    @property
    def network(self) -> Network:
        """Return the simulated network."""
        return self._machine.network

    @property
    def digest(self) -> str:
        """Return the digest of all events, which is the same in each run of one seed."""
        return self._digest.hexdigest()

    def run_until(
        self, condition: Callable[[], object], description: str = "", *, seconds: float = PATIENCE_S
    ) -> None:
        """Wait until ``condition`` returns a true value; raises Stuck after ``seconds``."""
        scheduler = self._machine.scheduler
        began_s = self.now_s
        while not condition():
            passed_s = self.now_s - began_s
            if passed_s > seconds:
                raise Stuck(
                    f"{description or 'condition'} not reached within {seconds:g} s;"
                    f" waiting threads:\n{scheduler.report()}"
                )
            # A call of the condition can be expensive, so its interval grows with the waiting time.
            scheduler.wait(description or "a condition of the test", max(_LOOK_S, passed_s / 50))

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` of simulated time."""
        self._machine.sleep(seconds)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on a new event loop of the calling thread; return its result."""
        loop = self._machine.new_loop()
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()

    def start(self, name: str, work: Callable[[], object]) -> Callable[[], None]:
        """Start a thread that runs ``work``; return a function that waits for its end."""
        return self._machine.start(name, work).join

    # --------------------------------------------------------------------------------- private

    def _note(self, event: str) -> None:
        line = f"{self._machine.scheduler.now_ns} {event}"
        self._digest.update(line.encode() + b"\n")
        self.log.append(line[:200])

    def _dial(
        self, address: tuple[str, int], timeout_seconds: float | None
    ) -> socket.socket | None:
        if here() is not self._machine:
            return None
        end = self._machine.network.connect(address)
        found = BlockingSocket(self._machine.scheduler, end, timeout_seconds)
        return cast("socket.socket", found)
