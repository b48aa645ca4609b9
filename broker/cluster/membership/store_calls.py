"""What a broker asks of its cluster's store now and then, one thing after the other.

Rules of this file:

* All of it goes one way there, on one thread. What has to come through in time, whatever else is
  asked, has a way of its own: heartbeats, looks, flushes
  (``broker/cluster/membership/membership.py``).
* An errand waits for a store that is away, be it for ever, and goes on to its end whoever waits for
  it, or nobody. ``close`` ends all of them.
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
    """Run on the loop, made on a thread."""

    def __init__(self, index: ClusterIndex) -> None:
        """``index`` is for this object alone."""
        self._index = index
        self._thread = Pool("errands")

    def run(self, errand: Callable[[ClusterIndex], Result]) -> asyncio.Future[Result]:
        """Return what ``errand`` will; raises IndexClosed out of a wait once this is closed."""
        return self._thread.run(partial(errand, self._index))

    def close(self) -> None:
        """End what is under way, and what waits to be."""
        self._index.close()
        self._thread.close()
