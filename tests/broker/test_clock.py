"""Clocks and their timers."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.runtime.clock import ManualClock, SystemClock
from barnabas.storage.runtime.clock import now_ns
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]


def test_the_system_clock_is_the_machines():
    clock = SystemClock()
    assert abs(clock.now_ms() - now_ns() / 1e6) < 1000
    assert clock.monotonic() <= clock.monotonic()


async def test_a_system_timer_fires_once_unless_cancelled():
    clock, fired = SystemClock(), []
    clock.call_later(1, fired.append, "a")
    clock.call_later(1, fired.append, "b").cancel()
    await asyncio.sleep(0.02)
    assert fired == ["a"]


def test_manual_time_moves_only_by_advance():
    clock = ManualClock(1000)
    assert (clock.now_ms(), clock.monotonic()) == (1000, 0)
    clock.advance(minutes=15, milliseconds=5)
    assert clock.now_ms() == 1000 + 900_005
    assert clock.monotonic() == pytest.approx(900.005)


def test_manual_time_does_not_go_back():
    with pytest.raises(ValueError, match="back"):
        ManualClock().advance(seconds=-1)


def test_timers_fire_in_order_each_at_its_time():
    clock, fired = ManualClock(0), []
    for delay in (300, 100, 200, 100):
        clock.call_later(delay, lambda d=delay: fired.append((d, clock.now_ms())))
    clock.call_later(150, fired.append, "cancelled").cancel()
    clock.advance(milliseconds=250)
    assert fired == [(100, 100), (100, 100), (200, 200)]
    clock.advance(milliseconds=50)
    assert fired[-1] == (300, 300)


def test_a_timer_made_by_a_timer_fires_in_the_same_advance_if_due():
    clock, fired = ManualClock(0), []

    def again() -> None:
        fired.append(clock.now_ms())
        clock.call_later(100, again)

    clock.call_later(100, again)
    clock.advance(milliseconds=350)
    assert fired == [100, 200, 300]


async def test_a_running_clock_fires_by_itself():
    clock, fired = ManualClock(running=True), []
    clock.call_later(5, fired.append, "by itself")
    clock.call_later(60_000, fired.append, "skipped")
    clock.call_later(120_000, fired.append, "not yet")
    before = clock.now_ms()
    await asyncio.sleep(0.03)
    assert fired == ["by itself"]
    clock.advance(seconds=90)
    assert fired == ["by itself", "skipped"]
    assert clock.now_ms() - before >= 90_000


async def test_timer_waits_for_remaining_time_after_skip():
    clock, fired = ManualClock(running=True), []
    clock.call_later(60_000, lambda: fired.append(clock.monotonic()))
    # Most of it. Its rest may be over before the skip where the machine is busy.
    clock.advance(seconds=59.98)
    await until(lambda: fired)
    assert fired[0] > 59.99  # uvloop's timers may be a millisecond early.


def test_timers_that_are_done_are_forgotten():
    clock = ManualClock()
    for _ in range(1000):
        clock.call_later(1000, print).cancel()
    assert len(clock._timers) < 200


async def test_sleep_ends_when_its_time_was_skipped():
    clock, woken = ManualClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.ensure_future(sleep(seconds)) for seconds in (60, 30, 0)]
    await until(lambda: woken == [0])
    clock.advance(seconds=30)
    await until(lambda: woken == [0, 30])
    sleepers[0].cancel()
    clock.advance(seconds=30)  # Before the sleeper has seen that it is cancelled.
    await asyncio.wait(sleepers)
    assert woken == [0, 30]


async def test_timeout_expires_when_its_time_was_skipped():
    clock = ManualClock()

    async def wait() -> None:
        async with clock.timeout(60):
            await asyncio.Event().wait()

    waiting = asyncio.ensure_future(wait())
    await clock.sleep(0)
    clock.advance(seconds=59)
    await clock.sleep(0)
    assert not waiting.done()
    clock.advance(seconds=1)
    with pytest.raises(TimeoutError):
        await waiting


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock(), ManualClock(running=True)])
async def test_timeout_ends_only_a_block_that_takes_longer(clock):
    async with clock.timeout(60):
        await clock.sleep(0)
    with pytest.raises(TimeoutError):
        async with clock.timeout(0):
            await asyncio.Event().wait()


async def test_timeout_leaves_a_block_alone_that_has_ended():
    clock = ManualClock()
    async with clock.timeout(60):
        pass
    clock.advance(seconds=61)
    await clock.sleep(0)
    assert asyncio.current_task().cancelling() == 0
