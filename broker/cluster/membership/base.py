"""Where a cluster keeps what its brokers have in common, and how one of them gets at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.replicated.cluster_index import ClusterIndex
    from barnabas.storage.replicated.cluster_transfer import ClusterTransfer
    from barnabas.storage.replicated.log_index import LogIndex


class ClusterBase(Protocol):
    """Makes one broker's ways to the store of its cluster, each for one caller at a time.

    All of it is called on threads, and waits for a store that is away. Each of the three raises
    ``IndexClosed`` once this is closed, and what the store raises that can not be used at all.
    """

    @property
    def last_error(self) -> str:
        """Return why the store does not answer now; empty: it does. Any thread may ask."""

    @property
    def has_answered(self) -> bool:
        """Return whether the store was found to be there, and good, since this was made."""

    @property
    def warning(self) -> str | None:
        """Return what an operator should be told of how durable the store is, once it is open."""

    def log_index(self) -> LogIndex:
        """Return a new way to what is durable."""

    def cluster_index(self) -> ClusterIndex:
        """Return a new way to who is there and leads."""

    def metastore(self, node_id: int) -> MetaStore:
        """Return the metadata of the cluster as a node has it; made where there is none yet."""

    def close(self) -> None:
        """Close everything that was made here, and end whatever waits."""


class TransferBase(ClusterBase, Protocol):
    """One that can be filled from a data directory, and written out to one."""

    def transfer(self, node_id: int) -> ClusterTransfer:
        """Return a way to do that, as a node."""
