"""A client that runs on a thread of this process."""

from __future__ import annotations

from barnabas.storage.runtime.threads import start_thread
from tests.workload.client import Client

JOIN_S = 180


class ThreadClient(Client):
    """A client on a thread of its own, with its journal in memory."""

    error: BaseException | None = None

    def start(self) -> None:
        self._thread = start_thread(self.settings.name, self._run_noting_error)

    def stop(self) -> None:
        """Stop the client after its present operation, and wait for the end of its thread."""
        self.is_stopping = True
        self._thread.join(JOIN_S)
        assert not self._thread.is_alive(), f"{self.settings.name} has not ended"

    def _run_noting_error(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001  raised by the test's own thread
            self.error = error
