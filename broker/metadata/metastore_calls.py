"""How the MetaStore is called: at once on the loop, or on a thread where an answer may take long.

Rules of this file:

* Who makes the store says which: one in a file on this machine answers within milliseconds, and is
  called where it is needed. One that is reached over a network may be away for hours.
* On the thread there is one call at a time, in the order in which they were asked for: a MetaStore
  has one caller at a time. A call goes on to its end whoever waits for it, or nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from barnabas.broker.runtime.threads import Pool

Result = TypeVar("Result")

PATIENCE_S: Final = 20.0
"""How long a client waits for a change that has no time limit of its own: shorter than what Apache
Kafka's clients wait for an answer (``request.timeout.ms``, 30 s)."""
CLOSING_PATIENCE_S: Final = 2.0
"""How long the end of a broker waits for changes under way: a commit takes milliseconds, so what
takes longer waits for a store that is away."""


class MetaStoreCalls(Protocol):
    """Where calls of one broker's MetaStore are made; all of it is used on the loop."""

    patience_s: float | None
    """How long a change is waited for by default; None: always to its end, which is near."""
    closing_patience_s: float | None
    """How long the end of the broker waits for changes under way; None: to their end."""

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """Make a call, and return or raise what it does."""

    async def give_up(self) -> None:
        """End the call under way and those that wait: they raise MetaStoreError."""

    def close(self) -> None:
        """Make no calls any more. One that is under way ends with the store, or by ``give_up``."""


class CallsHere:
    """Calls on the loop: of a store that always answers within milliseconds."""

    patience_s: float | None = None
    closing_patience_s: float | None = None

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """See ``MetaStoreCalls``; the loop gets no turn meanwhile."""
        return call()

    async def give_up(self) -> None:
        """See ``MetaStoreCalls``: nothing ever waits."""

    def close(self) -> None:
        """See ``MetaStoreCalls``: there is nothing to let go of."""


class CallsAside:
    """Calls on a thread: of a store that may be away."""

    def __init__(
        self,
        close_store: Callable[[], None],
        *,
        patience_s: float = PATIENCE_S,
        closing_patience_s: float = CLOSING_PATIENCE_S,
    ) -> None:
        """``close_store`` ends whatever waits for the store, on whichever thread; may block."""
        self.patience_s: float | None = patience_s
        self.closing_patience_s: float | None = closing_patience_s
        self._close_store = close_store
        self._thread = Pool("metadata")
        self._ending = Pool("metadata-end")

    async def answer_of(self, call: Callable[[], Result]) -> Result:
        """See ``MetaStoreCalls``."""
        return await self._thread.run(call)

    async def give_up(self) -> None:
        """See ``MetaStoreCalls``."""
        # Not on the thread of the calls: it waits for the store.
        await self._ending.run(self._close_store)

    def close(self) -> None:
        """See ``MetaStoreCalls``."""
        self._thread.close()
        self._ending.close()
