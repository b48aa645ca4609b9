"""What every client has: its settings, its journal, a sign to stop, and somebody who watches it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.torture.journal import Journal
from tests.torture.sessions import patience_s
from tests.torture.settings import HUNG_EXIT_CODE, Settings

HANGS_AFTER_S = 10
"""Once its patience is over: by then a library has given up by itself."""
LOOK_S = 1.0


class Client:
    """One process; SIGTERM makes it finish what it does and end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.journal = Journal(settings.journal, settings.name)
        self.stopping = False
        self._busy_s: float | None = None
        signal.signal(signal.SIGTERM, self._stop)
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do something that has to end: a library that hangs is ended as a supervisor would."""
        self._busy_s = 0.0
        try:
            yield
        finally:
            self._busy_s = None

    def _stop(self, *_signal: object) -> None:
        self.stopping = True

    def _watch(self) -> None:
        hung_s = patience_s(self.settings.transaction_timeout_ms) + HANGS_AFTER_S
        # Counted in looks: time that passed while the process was paused is nobody's fault.
        while True:
            time.sleep(LOOK_S)
            busy_s = self._busy_s
            if busy_s is not None:
                self._busy_s = busy_s + LOOK_S
                if busy_s > hung_s:
                    os._exit(HUNG_EXIT_CODE)
