"""Simulated machine of a thread, with the event loops and the network that a broker needs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from barnabas.storage.runtime import machine
from barnabas.storage.runtime.machine import SimulatedMachine

if TYPE_CHECKING:
    import socket

Result = TypeVar("Result")


class SimulatedHost(SimulatedMachine, Protocol):
    """Simulated machine with a network and event loops."""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return a new event loop of the simulation."""

    def bind(self, host: str, port: int) -> socket.socket:
        """Return a bound socket for an event loop; raises OSError if the address is in use."""

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection."""


def simulated_host() -> SimulatedHost | None:
    """Return the simulated machine of this thread, or None if it runs on the real machine."""
    return cast("SimulatedHost | None", machine.here())


def run_coroutine(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a new event loop of this thread's machine; return its result."""
    host = simulated_host()
    with asyncio.Runner(loop_factory=None if host is None else host.new_loop) as runner:
        return runner.run(coroutine)
