"""End of the command: requested by signals, and bounded in time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Final

from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.storage.runtime.threads import start_thread

Action = Callable[[], object]
_INTERVAL_S: Final = 0.02
"""Interval of checks for a requested end."""
_PY4J_FILE: Final = "/py4j/java_gateway.py"
_PY4J_CALLED: Final = ("_garbage_collect_object", "<lambda>")


class Stopped(BaseException):
    """The end was requested while no batch has to finish. It is no failure, so no Exception."""


class Stop:
    """Requests to end the pipelines.

    After the first signal the running batch finishes; the second one interrupts it. If no batch
    runs yet, the first signal interrupts. The next start writes an interrupted batch.
    """

    def __init__(self) -> None:
        self.is_asked = False
        """Whether to end after the running batch. No Event: a signal handler in a thread that
        waits for an Event would deadlock on that Event's lock."""
        self.waits = False
        """Whether a batch may be running, which must finish first."""

    def ask(self) -> None:
        """Request the end after the running batch."""
        self.is_asked = True

    def on_signals(self) -> None:
        """Handle SIGTERM and SIGINT. Call it again after Spark's start, which handles SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_urgent = self.is_asked or not self.waits
        self.ask()
        if is_urgent and _is_exception_ignored(frame):
            threading.Timer(_INTERVAL_S, _signal_again, [number]).start()
        elif is_urgent:
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Sleep for the time, or until the end is requested."""
        until_s = monotonic() + seconds
        while not self.is_asked and (left_s := until_s - monotonic()) > 0:
            sleep(min(left_s, _INTERVAL_S))


def _is_exception_ignored(frame: FrameType | None) -> bool:
    """Return whether Python runs a callback whose exceptions it prints and ignores.

    Python can call Py4J at any moment for an object of Java that is not used any more.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_name in _PY4J_CALLED and code.co_filename.endswith(_PY4J_FILE):
            return True
        frame = frame.f_back
    return False


def _signal_again(number: int) -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None, "it has begun"
    signal.pthread_kill(main_thread, number)


def within(seconds: float, actions: Iterable[Action]) -> bool:
    """Run the actions concurrently; return whether all ended in time, even with an error.

    Each has its own thread: after a signal has interrupted a call of Spark, its thread's connection
    is unusable. An action that takes longer ends with the process.
    """
    threads = [start_thread("barnabas-end", partial(_quietly, each)) for each in actions]
    deadline_s = monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline_s - monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _quietly(action: Action) -> None:
    with suppress(Exception):  # Spark has ended, and the caller reports the reason.
        action()
