"""Wishes for leaders of partitions, as they are kept in the cluster's store; see ``Moves``.

Rules of this file:

* What others wish is seen in the picture of the cluster that this broker was given last. What this
  broker has wished itself is told at once, until a picture is given that was taken later: so who
  has asked for a move and looks for it finds it.
* The store is asked by errands, one at a time. Whoever gives up waiting ends nothing: the wish may
  be made all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.cluster.errands import Errands
    from barnabas.storage.cluster_index import ClusterIndex


class LastPicture(Protocol):
    """The picture that this broker goes by; see ``Picture``."""

    @property
    def picture_version(self) -> int:
        """Return its version."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that is to lead a partition, as the picture says."""


class StoredMoves:
    """The wishes of all brokers; all of it on the loop."""

    def __init__(self, errands: Errands, picture: LastPicture, refresh: Callable[[], None]) -> None:
        """``refresh`` has the next picture be taken soon."""
        self._errands = errands
        self._picture = picture
        self._refresh = refresh
        self._own: dict[int, int | None] = {}
        """What this broker has wished since the picture was taken."""
        self._own_version = 0
        """The pictures from this version on show all of it."""

    def wanted(self, partition_id: int) -> int | None:
        """See ``Moves``."""
        if self._own and self._picture.picture_version >= self._own_version:
            self._own = {}
        if partition_id in self._own:
            return self._own[partition_id]
        return self._picture.wanted(partition_id)

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """See ``Moves``."""
        since = self._picture.picture_version
        version = await self._errands.run(partial(_want, wishes=dict(wishes), since=since))
        if self._picture.picture_version < version:
            self._own = {**self._own, **wishes}
            self._own_version = max(self._own_version, version)
            self._refresh()


def _want(index: ClusterIndex, wishes: Mapping[int, int | None], since: int) -> int:
    """On a thread; return the version of a picture that shows it."""
    index.want(wishes)
    return index.picture(since).version
