"""Occasional calls of the cluster's store, one after the other.

Rules of this file:

* All of them share one connection and one thread. Calls with a time limit have their own
  connections: heartbeats, polls, flushes (``broker/cluster/membership/membership.py``).
* An errand waits while the store is unavailable, without a timeout, and runs to its end even if its
  caller stops waiting. ``close`` ends all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.runtime.threads import Pool

if TYPE_CHECKING:
    from barnabas.storage.replicated.cluster_index import ClusterIndex

Result = TypeVar("Result")


class Errands:
    """Calls of the store that the event loop requests and a thread runs."""

    def __init__(self, index: ClusterIndex) -> None:
        """``index`` is for this object alone."""
        self._index = index
        self._thread = Pool("errands")

    def run(self, errand: Callable[[ClusterIndex], Result]) -> asyncio.Future[Result]:
        """Return the future result of ``errand``; a wait raises IndexClosed once this is closed."""
        return self._thread.run(partial(errand, self._index))

    def close(self) -> None:
        """End the current errand and all waiting ones."""
        self._index.close()
        self._thread.close()
