"""Requests that wait for a transition in flight: for the markers of a decided transaction.

Apache Kafka refuses them with CONCURRENT_TRANSACTIONS, so that its clients sleep and ask again.
Here they wait, for ``barnabas.transaction.wait.ms`` at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.runtime.clock import Timer as ClockTimer

if TYPE_CHECKING:
    from barnabas.broker.coordination.transaction_counts import TransactionCounts
    from barnabas.broker.runtime.host import Host


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits."""

    then: Callable[[], None]
    timer: ClockTimer


class TransitionWaits:
    """Those that wait, by transactional id and in order."""

    def __init__(self, host: Host, counts: TransactionCounts) -> None:
        self._host = host
        self._counts = counts
        self._waiting: dict[str, deque[_Waiting]] = {}

    def __contains__(self, key: str) -> bool:
        """Whether requests wait for a transactional id."""
        return key in self._waiting

    def __len__(self) -> int:
        """How many requests wait now."""
        return sum(map(len, self._waiting.values()))

    def add(self, key: str, then: Callable[[], None]) -> None:
        """Call ``then`` when the transition in flight is over, or when it was waited for enough."""
        queue = self._waiting.setdefault(key, deque())

        def give_up() -> None:
            self._counts.requests_given_up += 1
            queue.remove(waiting)
            if not queue and self._waiting.get(key) is queue:
                del self._waiting[key]
            then()
            self._host.flush_answers()

        timer = self._host.clock.call_later(self._host.config.transaction_wait_ms, give_up)
        waiting = _Waiting(then, timer)
        queue.append(waiting)
        self._counts.requests_held += 1

    def release(self, key: str) -> None:
        """Let those go on who waited for a transition that is over now."""
        for waiting in self._waiting.pop(key, ()):
            waiting.timer.cancel()
            waiting.then()

    def release_lost(self, is_lost: Callable[[str], bool]) -> None:
        """Let those go on who wait for transactional ids that are here no more."""
        for key in [key for key in self._waiting if is_lost(key)]:
            self.release(key)

    def close(self) -> None:
        """Let nothing go on any more: the broker ends."""
        for queue in self._waiting.values():
            for waiting in queue:
                waiting.timer.cancel()
        self._waiting.clear()
