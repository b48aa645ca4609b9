"""Wishes for the leaders of partitions, as stored by the cluster; see ``Moves``.

Rules of this file:

* The wishes of other brokers are read from the newest snapshot of the cluster. This broker's own
  wishes are shown at once, until a later snapshot arrives: so a client that requests a move finds
  it.
* The calls of the store run one at a time. A caller that stops waiting cancels nothing: the wish
  can still be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.storage.replicated.cluster_index import ClusterIndex, Led

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.store_calls import Errands
    from barnabas.storage.replicated.cluster_index import ClusterSnapshot

_Write: TypeAlias = Callable[[ClusterIndex], Callable[[Mapping[int, int | None]], None]]
"""Write operation of the store for leaders."""


class LastPicture(Protocol):
    """Newest snapshot that this broker has applied; see ``ClusterSnapshot``."""

    @property
    def picture_version(self) -> int:
        """Return the snapshot's version."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that must lead a partition by the snapshot, or None."""

    def pinned(self, partition_id: int) -> int | None:
        """Return the node that a partition is pinned to by the snapshot, or None."""

    def takes_partitions(self, node_id: int) -> bool:
        """Whether a node takes partitions, by the snapshot and the settings."""


class StoredMoves:
    """Wishes of all brokers; used on the event loop only."""

    def __init__(
        self, errands: Errands, snapshot: LastPicture, refresh: Callable[[], None]
    ) -> None:
        """``refresh`` requests a poll soon."""
        self._errands = errands
        self._picture = snapshot
        self._refresh = refresh
        self._own: dict[int, Led] = {}
        """Results of this broker's wishes, until the snapshot shows them."""
        self._own_version = 0
        """Version from which on snapshots show all of ``_own``."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the wanted node; see ``Moves``."""
        own = self._newer(partition_id)
        return self._picture.wanted(partition_id) if own is None else own.wanted_node

    def pinned(self, partition_id: int) -> int | None:
        """Return the pinned node; see ``Moves``."""
        own = self._newer(partition_id)
        return self._picture.pinned(partition_id) if own is None else own.pinned_node

    def takes_partitions(self, node_id: int) -> bool:
        """Whether a node takes partitions; see ``Moves``."""
        return self._picture.takes_partitions(node_id)

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """Store wanted leaders; see ``Moves``."""
        await self._request(lambda index: index.want, wishes)

    async def pin(self, pins: Mapping[int, int | None]) -> None:
        """Write pins; see ``Moves``."""
        await self._request(lambda index: index.pin, pins)

    def _newer(self, partition_id: int) -> Led | None:
        """Return the state of a partition that is newer than the snapshot, or None."""
        if self._own and self._picture.picture_version >= self._own_version:
            self._own = {}
        return self._own.get(partition_id)

    async def _request(self, means: _Write, wishes: Mapping[int, int | None]) -> None:
        since = self._picture.picture_version
        snapshot = await self._errands.run(partial(_write, means, dict(wishes), since))
        if self._picture.picture_version < snapshot.version:
            changed = {each.partition_id: each for each in snapshot.led}
            own = {each: changed[each] for each in wishes if each in changed}
            self._own = {**self._own, **own}
            self._own_version = max(self._own_version, snapshot.version)
            self._refresh()


def _write(
    means: _Write, wishes: Mapping[int, int | None], since: int, index: ClusterIndex
) -> ClusterSnapshot:
    """Write the wishes on a thread; return a snapshot that shows them."""
    means(index)(wishes)
    return index.snapshot(since)
