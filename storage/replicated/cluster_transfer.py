"""The store's interface to fill a cluster from a broker's own store, or to export it to one.

Rules of this interface:

* **Brokers see all of it or nothing.** No broker starts a session before an import is complete, nor
  once an export of the cluster has started: its topics continue in one place only.
* An interrupted import is started again, by any caller. Its earlier content is removed, and the
  earlier importer gets ``TransferRefused``.
* Methods wait for the store without limit, and repeat their calls; ``IndexClosed`` is raised out of
  a wait. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from barnabas.storage.errors import StorageError
from barnabas.storage.metastore.contents import Contents


class TransferRefused(StorageError):
    """The state of the cluster does not allow the transfer; the message says what to do."""


IN_USE = "brokers serve this cluster: stop them first (one that died counts until its lease ends)"
NOT_EMPTY = "this cluster has topics: only an empty one takes a data directory"
NOT_WHOLE = "the import into this cluster was not completed: there is nothing whole to export"
NOT_COMPLETED = "the import of a data directory was not completed: import it again"
EXPORTED = (
    "this cluster was exported to a data directory, which may have gone on since: 'barnabas cluster"
    " reopen' has it served here again"
)
SUPERSEDED = "another import into this cluster has begun meanwhile"


class ClusterTransfer(Protocol):
    """Imports and exports; see the rules at the head of this module."""

    def begin_import(self, token: UUID, node_id: int, object_store: str | None = None) -> int:
        """Begin to fill a cluster without topics; return the session that leads the imported
        partitions.

        ``object_store`` names the store that large flushes go into, if any; brokers need it from
        then on. The same token returns the same session. Raises TransferRefused.
        """

    def import_logs(self, session: int, epoch: int, bases: Mapping[int, int]) -> None:
        """Make empty logs, which the session leads in an epoch, beginning at offsets by id.

        Raises TransferRefused.
        """

    def fill(self, token: UUID, contents: Contents) -> None:
        """Replace the cluster's metadata by ``contents``; raises TransferRefused."""

    def end_import(self, token: UUID) -> None:
        """Make the imported cluster available to brokers; raises TransferRefused."""

    def begin_export(self, token: UUID) -> None:
        """Keep brokers away from now on; raises TransferRefused."""

    def contents(self) -> Contents:
        """Return the metadata of the cluster."""

    def is_exported(self) -> bool:
        """Whether the cluster was, or is being, exported, and not reopened since."""

    def advance(self, producer_id: int, epoch: int) -> None:
        """Raise the next producer id and the leader epochs to these numbers, or above those used
        here.

        Raises TransferRefused while brokers serve the cluster. A second call is harmless.
        """

    def reopen(self) -> bool:
        """Make an exported cluster available to brokers again; False if it was not exported."""

    def close(self) -> None:
        """End every wait, on any thread."""
