"""Drain of a broker, so that its clients do not notice its end."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.cluster.membership.drain import LOOK_EVERY_S, Drain
from barnabas.broker.runtime.clock import ManualClock
from tests.waiting import until

FOREVER_MS = 3_600_000


class Scripted:
    """Broker that leads some partitions; the store records a drain when it may."""

    def __init__(self, led_count: int, *, has_others: bool = True) -> None:
        self.led_count = led_count
        self.has_others = has_others
        self.told = 0
        self.store_answers = asyncio.Event()
        self.store_answers.set()
        self.clock = ManualClock()
        self.drain = Drain(self, self._tell, self.clock)

    async def _tell(self) -> None:
        await self.store_answers.wait()
        self.told += 1

    async def run(self, timeout_ms: int = FOREVER_MS) -> asyncio.Task[int]:
        """Begin; return what it comes to."""
        running = asyncio.create_task(self.drain.run(timeout_ms))
        await until(lambda: self.told)
        assert not running.done()
        return running


@pytest.mark.parametrize("led_count", [0, 3])
async def test_drain_without_partitions_or_others_does_not_call_store(led_count):
    scripted = Scripted(led_count, has_others=False)
    assert await scripted.drain.run(FOREVER_MS) == led_count
    scripted = Scripted(0)
    assert await scripted.drain.run(FOREVER_MS) == 0
    assert scripted.told == 0


@pytest.mark.parametrize("is_told", [True, False])
async def test_drain_ends_when_no_partition_is_left(is_told):
    scripted = Scripted(2)
    running = await scripted.run()
    scripted.led_count = 1
    scripted.drain.changed()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done()
    scripted.led_count = 0
    if is_told:
        scripted.drain.changed()
    else:
        scripted.clock.advance(seconds=LOOK_EVERY_S)
    assert await running == 0


async def test_drain_ends_when_last_other_broker_leaves():
    scripted = Scripted(2)
    running = await scripted.run()
    scripted.has_others = False
    scripted.clock.advance(seconds=LOOK_EVERY_S)
    assert await running == 2


async def test_drain_ends_at_timeout(caplog):
    scripted = Scripted(2)
    running = await scripted.run(timeout_ms=1000)
    scripted.clock.advance(seconds=1)
    assert await running == 2
    assert "partitions not handed over in time" in caplog.text
    away = Scripted(2)
    away.store_answers.clear()
    running = asyncio.create_task(away.drain.run(1000))
    await away.clock.sleep(0)
    away.clock.advance(seconds=1)
    assert await running == 2
    assert away.told == 0
