"""Says in the log that the store of a cluster is away, and for how long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer

logger = logging.getLogger(__name__)

LOOK_INTERVAL_MS: Final = 500
SAID_EVERY_S: Final = 5.0
PATIENCE_S: Final = 1.0
"""What takes less is no trouble: a server that is failed over closes every connection."""


class StoreWatch:
    """Looks again and again whether there is trouble. On the loop."""

    def __init__(self, clock: Clock, last_error: Callable[[], str]) -> None:
        """``last_error`` is empty while the store answers."""
        self._clock = clock
        self._last_error = last_error
        self._timer: Timer | None = None
        self._since_s: float | None = None
        self._said_s: float | None = None
        self._said: frozenset[str] = frozenset()
        """What each server that was tried failed by, whichever came first, as it was last said."""

    @property
    def away_s(self) -> float | None:
        """Return for how long the store has been away; None: it answers, or is about to."""
        return None if self._said_s is None else self._for(self._clock.monotonic())

    def start(self) -> None:
        """Look from now on."""
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self.start)
        self.look()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Say what has changed, and every few seconds that nothing has."""
        last_error, now_s = self._last_error(), self._clock.monotonic()
        if not last_error:
            if self._said_s is not None and self._since_s is not None:
                logger.info("the store of the cluster answers again after_s=%d", self._for(now_s))
            self._since_s = self._said_s = None
            return
        if self._since_s is None:
            self._since_s = now_s
        if self._said_s is None:
            if self._for(now_s) >= PATIENCE_S:
                self._said_s, self._said = now_s, _parts(last_error)
                logger.warning("the store of the cluster does not answer: %s", last_error)
        elif now_s - self._said_s >= SAID_EVERY_S:
            self._said_s, said = now_s, self._said
            self._said = _parts(last_error)
            news = "" if self._said == said else f" reason={last_error}"
            logger.warning("the store of the cluster is down for_s=%d%s", self._for(now_s), news)

    def _for(self, now_s: float) -> float:
        return 0.0 if self._since_s is None else now_s - self._since_s


def _parts(last_error: str) -> frozenset[str]:
    return frozenset(last_error.split("; "))
