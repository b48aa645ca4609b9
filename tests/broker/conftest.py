"""Tests of the broker run on uvloop; modules with ``BOTH_LOOPS = True`` run on asyncio too.

Tests in a World run on the loop of the World.
"""

from __future__ import annotations

import asyncio

from tests.worlds import new_event_loop


def pytest_asyncio_loop_factories(config, item):
    factories = {"uvloop": new_event_loop}
    if getattr(item.module, "BOTH_LOOPS", False) and "world" not in item.fixturenames:
        factories["asyncio"] = asyncio.new_event_loop
    return factories
