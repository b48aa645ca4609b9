"""The end of the command: asked for by signals, and bounded where something goes on and on."""

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
_LOOK_S: Final = 0.02
"""How often it is looked whether the end was asked for."""
_PY4J_FILE: Final = "/py4j/java_gateway.py"
_PY4J_CALLED: Final = ("_garbage_collect_object", "<lambda>")


class Stopped(BaseException):
    """The end was asked for where there is no batch to wait for: no failure, so no Exception."""


class Stop:
    """Whether the pipelines are to end.

    The first signal lets the running batch end, the second does not wait for it. Where no batch
    runs yet there is nothing to wait for. What is cut off the next start writes.
    """

    def __init__(self) -> None:
        self.is_asked = False
        """Whether to end after the running batch. No Event: a signal that comes while its own
        thread waits for an Event would wait for that Event's lock, for ever."""
        self.waits = False
        """Whether there may be a batch that is let end."""

    def ask(self) -> None:
        """Ask for the end, after the running batch."""
        self.is_asked = True

    def on_signals(self) -> None:
        """Take SIGTERM and SIGINT. Again after Spark's start, which takes SIGINT for itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_urgent = self.is_asked or not self.waits
        self.ask()
        if is_urgent and _is_raised_in_vain(frame):
            threading.Timer(_LOOK_S, _signal_again, [number]).start()
        elif is_urgent:
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Sleep, but not past being asked."""
        until_s = monotonic() + seconds
        while not self.is_asked and (left_s := until_s - monotonic()) > 0:
            sleep(min(left_s, _LOOK_S))


def _is_raised_in_vain(frame: FrameType | None) -> bool:
    """Whether Python itself has called what runs: it prints what is raised there, and goes on.

    At any moment it tells Py4J of an object of Java's that is not used any more.
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
    """Do all of this at once; return whether it was done in time, well or not.

    In threads of their own: a call of Spark's that a signal has left in mid-answer makes the
    connection of its thread useless. What goes on past its time ends with the process.
    """
    threads = [start_thread("barnabas-end", partial(_quietly, each)) for each in actions]
    deadline_s = monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline_s - monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _quietly(action: Action) -> None:
    with suppress(Exception):  # Spark itself is gone: what ended it is on its way to the user.
        action()
