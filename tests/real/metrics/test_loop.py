import asyncio
import time

from barnabas.broker.metrics import loop as module
from barnabas.broker.metrics.loop import LoopMonitor
from tests.waiting import until

BOTH_LOOPS = True


async def test_a_loop_that_is_held_up_is_late_and_busy(monkeypatch):
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(module, "AVERAGE_SECONDS", 0.1)
    windows = []
    monkeypatch.setattr(module, "TICKS_PER_WINDOW", 2)
    monitor = LoopMonitor(lambda: windows.append(1))
    monitor.start()
    # By the thread's own time: other processes may have the processor meanwhile.
    enough_ns = time.thread_time_ns() + 80_000_000
    while time.thread_time_ns() < enough_ns:
        pass
    await until(lambda: sum(monitor.lag.counts) >= 1)
    assert monitor.lag.sum >= 50_000_000  # It should have come after 20 ms.
    assert monitor.busy_ns >= 80_000_000
    assert monitor.idle_share < 1
    await until(lambda: len(windows) >= 2)
    monitor.stop()
    seen = sum(monitor.lag.counts)
    await asyncio.sleep(0.06)
    assert sum(monitor.lag.counts) == seen


async def test_a_loop_that_sleeps_is_idle(monkeypatch):
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.05)
    monitor = LoopMonitor()
    monitor.start()
    await until(lambda: sum(monitor.lag.counts) >= 3)
    monitor.stop()
    assert monitor.idle_share > 0.5
    assert 0 <= monitor.busy_ns < 150_000_000


def test_stopping_what_was_not_started():
    LoopMonitor().stop()
