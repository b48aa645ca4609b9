"""Tests in a world: brokers and tests run in simulated time.

A conftest.py that imports ``world`` runs each module of its directory in a world.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
import uvloop

from barnabas.broker.runtime.simulated import simulated_host
from barnabas.testing import World
from tests.seeds import SEED


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[World]:
    """Run all tests of a module in one world."""
    with World(SEED) as entered:
        yield entered


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop of this thread's world, or a real event loop outside of a world."""
    host = simulated_host()
    return uvloop.new_event_loop() if host is None else host.new_loop()


def thread_name() -> str:
    """Return the name of the thread that runs, as it was started."""
    return threading.current_thread().name.removesuffix(" (simulated)")


def running_threads() -> set[threading.Thread]:
    """Return the threads of the process, those of a world included."""
    return set(threading.enumerate())
