"""Ctrl-C and SIGTERM in the middle of work that must come to a clean end.

A KeyboardInterrupt between two lines of code would leave it open whether a record was printed, or
whether a response is outstanding. So the first signal only sets a flag; long waits are interrupted,
and all other code checks the flag. The second signal ends the command at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final, Self

Wait = Callable[[], AbstractContextManager[None]]
"""Context manager for a wait that Ctrl-C may interrupt."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """``with Interruption() as interruption:`` signals are noted instead of raised."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """The signal that arrived first."""
        self._waits = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if current_thread() is not main_thread():
            return self  # Signals go to the main thread.
        self._before = {number: signal.signal(number, self._noted) for number in _SIGNALS}
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def has_come(self) -> bool:
        """Return whether the work should come to its end."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code that a shell expects after a signal, or 0 without one."""
        return 0 if self.signal is None else 128 + self.signal

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Wait; raise KeyboardInterrupt if a signal arrives or has arrived before."""
        self._waits = True
        try:
            if self.has_come():
                raise KeyboardInterrupt
            yield
        finally:
            self._waits = False

    def _noted(self, number: int, frame: FrameType | None) -> None:
        del frame
        is_second = self.has_come()
        self.signal = self.signal or number
        if is_second or self._waits:
            raise KeyboardInterrupt
