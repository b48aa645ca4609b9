"""Cost of an open page: the browser's main thread and memory, the broker's processor."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

from tests.browser.console_broker import ConsoleBroker

NOTE_LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longTasks.push(duration);
}).observe({ type: "longtask", buffered: true });
"""
"""An init script: the browser calls a task long that keeps the page from answering for 50 ms."""


class Cost(NamedTuple):
    """The measurements of a page over some time."""

    seconds: float
    broker_share: float
    """The share of one core that the broker used in this time."""
    heap_bytes: int
    """Bytes of the page's objects, after garbage collection."""
    long_tasks_ms: list[float]

    def __str__(self) -> str:
        tasks = " ".join(f"{each:.0f}" for each in sorted(self.long_tasks_ms, reverse=True)[:5])
        return (
            f"{self.seconds:.0f} s: broker {self.broker_share:.2%} of a core, heap"
            f" {self.heap_bytes / 1e6:.1f} MB, {len(self.long_tasks_ms)} long tasks"
            f"{f' (ms: {tasks})' if tasks else ''}"
        )


def share_of(broker: ConsoleBroker, seconds: float) -> float:
    """Return the share of a core that the broker uses during ``seconds``."""
    started, used = time.monotonic(), _used_s(broker)
    time.sleep(seconds)
    return (_used_s(broker) - used) / (time.monotonic() - started)


def _used_s(broker: ConsoleBroker) -> float:
    """Return the processor's time that all threads of a broker have had; in finer steps than
    the hundredths of a second of `cpu_time`, one of which is much for a page.
    """
    used_ns = 0
    for each in Path(f"/proc/{broker.pid}/task").glob("*/schedstat"):
        # Threads may end during the reads.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            used_ns += int(each.read_text().split()[0])
    return used_ns / 1e9


def watch(page: Page, broker: ConsoleBroker, seconds: float) -> Cost:
    """Measure a page for ``seconds``; NOTE_LONG_TASKS was its init script."""
    page.evaluate("window.longTasks.length = 0")
    started, used = time.monotonic(), _used_s(broker)
    # Not time.sleep: the page may have much to say to the driver.
    page.wait_for_timeout(seconds * 1000)
    share = (_used_s(broker) - used) / (time.monotonic() - started)
    tasks = page.evaluate("window.longTasks")
    return Cost(seconds, share, heap_bytes(page), tasks)


def heap_bytes(page: Page) -> int:
    """Return the bytes of a page's objects, after garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used
