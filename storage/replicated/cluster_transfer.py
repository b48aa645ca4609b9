"""What is asked of a cluster's store to be filled from a broker's own, or to be written out to one.

Rules of this interface:

* **Brokers see all of it or nothing.** None begins a session while an import has not been
  completed, nor once the cluster was, or is being, exported: its topics go on in one place.
* An import that was cut short is begun anew, by whoever; what is there of it goes, and who was at
  it before is told so by ``TransferRefused``.
* Methods wait for an answer, be it for ever, and call again by themselves; ``IndexClosed`` is
  raised out of a wait. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from barnabas.storage.errors import StorageError
from barnabas.storage.metastore.contents import Contents


class TransferRefused(StorageError):
    """The cluster is not in a state for it; the message says what to do."""


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

    def begin_import(self, token: UUID, node_id: int) -> int:
        """Begin to fill a cluster without topics; returns the session that leads what is imported.

        The same token, the same session. Raises TransferRefused.
        """

    def import_logs(self, session: int, epoch: int, bases: Mapping[int, int]) -> None:
        """Make empty logs, which the session leads in an epoch, beginning at offsets by id.

        Raises TransferRefused.
        """

    def fill(self, token: UUID, contents: Contents) -> None:
        """Have the metadata of the cluster be these; raises TransferRefused."""

    def end_import(self, token: UUID) -> None:
        """Let brokers serve what was imported; raises TransferRefused."""

    def begin_export(self, token: UUID) -> None:
        """Keep brokers away from now on; raises TransferRefused."""

    def contents(self) -> Contents:
        """Return the metadata of the cluster."""

    def is_exported(self) -> bool:
        """Whether the cluster was, or is being, exported, and not reopened since."""

    def advance(self, producer_id: int, epoch: int) -> None:
        """Have producer ids and the epochs of leaders begin there, or above what was used here.

        Raises TransferRefused while brokers serve the cluster. A second call is harmless.
        """

    def reopen(self) -> bool:
        """Let brokers serve again what was exported; False: it was not."""

    def close(self) -> None:
        """End whatever waits, on whichever thread."""
