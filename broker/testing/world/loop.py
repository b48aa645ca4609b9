"""Event loop of a simulation: its selector waits in the scheduler, its transports are in memory.

The rest is asyncio's own event loop. Only public methods of that loop are replaced.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar

from barnabas.broker.testing.world.network import BoundSocket, End, Network
from barnabas.broker.testing.world.scheduler import Scheduler, SimulatedThread
from barnabas.broker.testing.world.sockets import BlockingSocket
from barnabas.broker.testing.world.transport import SimulatedTransport

Result = TypeVar("Result")


class _Selector(selectors.BaseSelector):
    """Selector that waits until another thread schedules a callback, or until a timeout."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waits: SimulatedThread | None = None
        self._is_woken = False
        self._registered: dict[Any, selectors.SelectorKey] = {}

    def wake(self) -> None:
        """Wake the loop, so that it runs its callbacks."""
        self._is_woken = True
        if self._waits is not None:
            self._scheduler.wake(self._waits)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for ``wake``, or ``timeout`` seconds; return no ready descriptor."""
        if not self._is_woken and (timeout is None or timeout > 0):
            self._waits = self._scheduler.running
            try:
                self._scheduler.wait("a callback of its event loop", timeout)
            finally:
                self._waits = None
        self._is_woken = False
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401
        """Register a descriptor. A registered descriptor never becomes ready."""
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._registered[number] = selectors.SelectorKey(fileobj, number, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401
        """Unregister a descriptor."""
        return self._registered.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return all registered descriptors."""
        return self._registered

    def close(self) -> None:
        """Unregister all descriptors."""
        self._registered.clear()


class _Server(asyncio.AbstractServer):
    """Server that listens on one address."""

    def __init__(self, bound: BoundSocket, loop: asyncio.AbstractEventLoop) -> None:
        self._bound = bound
        self._loop = loop
        self.sockets = (bound,)

    def close(self) -> None:
        """Stop listening and free the address."""
        self._bound.close()

    async def wait_closed(self) -> None:
        """Return immediately."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that serves the connections."""
        return self._loop

    async def start_serving(self) -> None:
        """Return immediately: the server listens from its creation."""

    async def serve_forever(self) -> None:
        """Wait forever: the server listens from its creation."""
        await asyncio.Event().wait()

    def is_serving(self) -> bool:
        """Return whether the server listens."""
        return self._bound.accept is not None


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Event loop of a simulated thread."""

    def __init__(self, scheduler: Scheduler, network: Network, executor: Executor) -> None:
        self._scheduler = scheduler
        self._network = network
        self._executor = executor
        self._simulated = _Selector(scheduler)
        super().__init__(self._simulated)
        # A stack for each callback doubles the processor time of a whole test suite.
        self.set_debug(enabled=False)

    def time(self) -> float:
        """Return the seconds since the simulation started."""
        return self._scheduler.read_ns() / 1e9

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback from any thread, and wake the loop."""
        handle = self.call_soon(callback, *args, context=context)
        self._simulated.wake()
        return handle

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Result], *args: object
    ) -> asyncio.Future[Result]:
        """Run a function on a thread of ``executor``, or of the loop's executor if it is None."""
        return super().run_in_executor(executor or self._executor, func, *args)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Return immediately: the simulation ends the threads of the executor."""

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: Any = None,  # noqa: ANN401  a BoundSocket
        **_: object,
    ) -> _Server:
        """Listen on an address of the simulated network."""
        bound: BoundSocket = sock if sock is not None else self._network.bind(host or "", port or 0)

        def accept(end: End) -> None:
            self.call_soon_threadsafe(self._accept, protocol_factory, end)

        bound.accept = accept
        return _Server(bound, self)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,  # noqa: ANN401
        **_: object,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """Connect to an address of the simulated network; raises OSError."""
        if ssl is not None:
            raise NotImplementedError(
                "a World does not support TLS between brokers: use real brokers"
            )
        end = self._network.connect((host or "", port or 0))
        protocol = protocol_factory()
        transport = SimulatedTransport(self, end, protocol)
        await asyncio.sleep(0)
        return transport, protocol

    async def connect_accepted_socket(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: Any,  # noqa: ANN401  a BlockingSocket
        **_: object,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """Attach a protocol to one end of a socket pair."""
        assert isinstance(sock, BlockingSocket)
        protocol = protocol_factory()
        transport = SimulatedTransport(self, sock.end, protocol)
        await asyncio.sleep(0)
        return transport, protocol

    def _accept(self, protocol_factory: Callable[[], asyncio.BaseProtocol], end: End) -> None:
        SimulatedTransport(self, end, protocol_factory())
