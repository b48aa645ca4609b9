"""Calls of the MetaStore: directly on the event loop, or on a thread if they can take long.

Rules of this file:

* The creator of the store chooses. A store in a local file responds within milliseconds, and is
  called on the event loop. A store across a network can be unavailable for hours.
* The thread runs one call at a time, in the order of the requests, since a MetaStore has one caller
  at a time. A call runs to its end, even if no caller waits for it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from barnabas.broker.runtime.threads import Pool

Result = TypeVar("Result")

PATIENCE_S: Final = 20.0
"""Timeout, in seconds, of a client's change without its own one: shorter than the request timeout
of Apache Kafka's clients (``request.timeout.ms``, 30 s)."""
CLOSING_PATIENCE_S: Final = 2.0
"""Time, in seconds, that a stopping broker waits for changes in progress: a commit takes
milliseconds, so a longer one waits for an unavailable store."""


class MetaStoreCalls(Protocol):
    """Runner of the calls of one broker's MetaStore; used on the event loop only."""

    patience_s: float | None
    """Default timeout of a change in seconds, or None to wait to its end, which is near."""
    closing_patience_s: float | None
    """Time, in seconds, that a stopping broker waits for changes, or None to wait to their end."""

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """Call the function, and return its result or raise its error."""

    async def give_up(self) -> None:
        """End the current call and the waiting ones: they raise MetaStoreError."""

    def close(self) -> None:
        """Stop making calls; the current one ends with the store, or by ``give_up``."""


class CallsHere:
    """Calls on the event loop, for a store that responds within milliseconds."""

    patience_s: float | None = None
    closing_patience_s: float | None = None

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """Call the function; see ``MetaStoreCalls``. It blocks the event loop."""
        return call()

    async def give_up(self) -> None:
        """Return at once, since no call waits; see ``MetaStoreCalls``."""

    def close(self) -> None:
        """Return at once, since no thread exists; see ``MetaStoreCalls``."""


class CallsAside:
    """Calls on a thread, for a store that can be unavailable."""

    def __init__(
        self,
        close_store: Callable[[], None],
        *,
        patience_s: float = PATIENCE_S,
        closing_patience_s: float = CLOSING_PATIENCE_S,
    ) -> None:
        """``close_store`` ends all calls of the store, on any thread; may block."""
        self.patience_s: float | None = patience_s
        self.closing_patience_s: float | None = closing_patience_s
        self._close_store = close_store
        self._thread = Pool("metadata")
        self._ending = Pool("metadata-end")

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """Call the function on the thread; see ``MetaStoreCalls``."""
        return await self._thread.run(call)

    async def give_up(self) -> None:
        """Close the store; see ``MetaStoreCalls``."""
        # On another thread, since the thread of the calls waits for the store.
        await self._ending.run(self._close_store)

    def close(self) -> None:
        """Close the threads; see ``MetaStoreCalls``."""
        self._thread.close()
        self._ending.close()
