"""Log lines about outages of a cluster's stores, and their duration."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer

logger = logging.getLogger(__name__)

LOOK_INTERVAL_MS: Final = 500
LOG_INTERVAL_S: Final = 5.0
PATIENCE_S: Final = 1.0
"""Duration, in seconds, of an outage that is not logged: a failover closes every connection."""


class StoreWatch:
    """Periodic check of the store's errors, on the event loop."""

    def __init__(
        self,
        clock: Clock,
        last_error: Callable[[], str],
        name: str = "the store of the cluster",
        log_interval_s: float | None = None,
    ) -> None:
        """``last_error`` returns "" while the store responds; ``name`` is the store's.

        ``log_interval_s``: interval of log lines, or None for LOG_INTERVAL_S.
        """
        self._name = name
        self._log_interval_s = LOG_INTERVAL_S if log_interval_s is None else log_interval_s
        self._clock = clock
        self._last_error = last_error
        self._timer: Timer | None = None
        self._since_s: float | None = None
        self._logged_s: float | None = None
        self._logged: frozenset[str] = frozenset()
        """Errors of the servers, in any order, as last logged."""

    @property
    def away_s(self) -> float | None:
        """Return the seconds of the outage, or None if the store responds or has just failed."""
        return None if self._logged_s is None else self._for(self._clock.monotonic())

    def start(self) -> None:
        """Start checking."""
        self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self.start)
        self.check()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> None:
        """Log changes, and every few seconds an outage that continues."""
        last_error, now_s = self._last_error(), self._clock.monotonic()
        if not last_error:
            if self._logged_s is not None and self._since_s is not None:
                logger.info("%s answers again after_s=%d", self._name, self._for(now_s))
            self._since_s = self._logged_s = None
            return
        if self._since_s is None:
            self._since_s = now_s
        if self._logged_s is None:
            if self._for(now_s) >= PATIENCE_S:
                self._logged_s, self._logged = now_s, _parts(last_error)
                logger.warning("%s does not answer: %s", self._name, last_error)
        elif now_s - self._logged_s >= self._log_interval_s:
            self._logged_s, logged = now_s, self._logged
            self._logged = _parts(last_error)
            news = "" if self._logged == logged else f" reason={last_error}"
            logger.warning("%s is down for_s=%d%s", self._name, self._for(now_s), news)

    def _for(self, now_s: float) -> float:
        return 0.0 if self._since_s is None else now_s - self._since_s


def _parts(last_error: str) -> frozenset[str]:
    return frozenset(last_error.split("; "))
