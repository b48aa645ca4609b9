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
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.storage.replicated.cluster_index import ClusterIndex, Led

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.store_calls import Errands
    from barnabas.storage.replicated.cluster_index import ClusterSnapshot

_Means: TypeAlias = Callable[[ClusterIndex], Callable[[Mapping[int, int | None]], None]]
"""What of the store is asked for leaders."""


class LastPicture(Protocol):
    """The picture that this broker goes by; see ``ClusterSnapshot``."""

    @property
    def picture_version(self) -> int:
        """Return its version."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that is to lead a partition, as the picture says."""

    def pinned(self, partition_id: int) -> int | None:
        """Return the node that a partition is pinned to, as the picture says."""

    def takes_partitions(self, node_id: int) -> bool:
        """Return whether a node is given partitions, as the picture and the settings say."""


class StoredMoves:
    """The wishes of all brokers; all of it on the loop."""

    def __init__(
        self, errands: Errands, snapshot: LastPicture, refresh: Callable[[], None]
    ) -> None:
        """``refresh`` has the next picture be taken soon."""
        self._errands = errands
        self._picture = snapshot
        self._refresh = refresh
        self._own: dict[int, Led] = {}
        """What has come of this broker's wishes since the picture was taken."""
        self._own_version = 0
        """The pictures from this version on show all of it."""

    def wanted(self, partition_id: int) -> int | None:
        """See ``Moves``."""
        own = self._newer(partition_id)
        return self._picture.wanted(partition_id) if own is None else own.wanted_node

    def pinned(self, partition_id: int) -> int | None:
        """See ``Moves``."""
        own = self._newer(partition_id)
        return self._picture.pinned(partition_id) if own is None else own.pinned_node

    def takes_partitions(self, node_id: int) -> bool:
        """See ``Moves``."""
        return self._picture.takes_partitions(node_id)

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """See ``Moves``."""
        await self._ask(lambda index: index.want, wishes)

    async def pin(self, pins: Mapping[int, int | None]) -> None:
        """See ``Moves``."""
        await self._ask(lambda index: index.pin, pins)

    def _newer(self, partition_id: int) -> Led | None:
        """Return what the picture does not show yet of a partition."""
        if self._own and self._picture.picture_version >= self._own_version:
            self._own = {}
        return self._own.get(partition_id)

    async def _ask(self, means: _Means, wishes: Mapping[int, int | None]) -> None:
        since = self._picture.picture_version
        snapshot = await self._errands.run(partial(_tell, means, dict(wishes), since))
        if self._picture.picture_version < snapshot.version:
            changed = {each.partition_id: each for each in snapshot.led}
            own = {each: changed[each] for each in wishes if each in changed}
            self._own = {**self._own, **own}
            self._own_version = max(self._own_version, snapshot.version)
            self._refresh()


def _tell(
    means: _Means, wishes: Mapping[int, int | None], since: int, index: ClusterIndex
) -> ClusterSnapshot:
    """On a thread; return a picture that shows it."""
    means(index)(wishes)
    return index.snapshot(since)
