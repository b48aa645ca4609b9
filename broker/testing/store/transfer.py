"""The calls by which one broker imports into a cluster in memory, or exports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.replicated.cluster_transfer import SUPERSEDED, TransferRefused

if TYPE_CHECKING:
    from barnabas.broker.testing.store.index import MemoryIndex
    from barnabas.broker.testing.store.metastore import MemoryMetaStore
    from barnabas.storage.metastore.contents import Contents


class MemoryTransfer(Way):
    """A ``ClusterTransfer`` whose calls are repeated until their result arrives."""

    def __init__(
        self, index: MemoryIndex, metastore: MemoryMetaStore, link: Link | None = None
    ) -> None:
        """``metastore`` has the metadata to fill; ``Way`` describes ``link``."""
        super().__init__(link)
        self._index = index
        self._metastore = metastore

    def begin_import(self, token: UUID, node_id: int, object_store: str | None = None) -> int:
        """See ``ClusterTransfer``."""
        has_topics = bool(self._metastore.load().topics)
        begin = self._index.begin_import
        return self._ask(begin, token, node_id, object_store, has_topics=has_topics)

    def import_logs(self, session: int, epoch: int, bases: Mapping[int, int]) -> None:
        """See ``ClusterTransfer``."""
        self._ask(self._index.import_logs, session, epoch, bases)

    def fill(self, token: UUID, contents: Contents) -> None:
        """See ``ClusterTransfer``."""
        if not self._ask(self._index.is_importing, token):
            raise TransferRefused(SUPERSEDED)
        self._metastore.fill(contents)

    def end_import(self, token: UUID) -> None:
        """See ``ClusterTransfer``."""
        self._ask(self._index.end_import, token)

    def begin_export(self, token: UUID) -> None:
        """See ``ClusterTransfer``."""
        self._ask(self._index.begin_export, token)

    def contents(self) -> Contents:
        """See ``ClusterTransfer``."""
        return self._metastore.contents()

    def is_exported(self) -> bool:
        """See ``ClusterTransfer``."""
        return self._ask(self._index.is_exported)

    def advance(self, producer_id: int, epoch: int) -> None:
        """See ``ClusterTransfer``."""
        self._ask(self._index.raise_epochs, epoch)
        self._metastore.raise_producer_ids(producer_id)
        self._metastore.raise_boot_epoch(epoch)

    def reopen(self) -> bool:
        """See ``ClusterTransfer``."""
        return self._ask(self._index.reopen)

    def close(self) -> None:
        """See ``ClusterTransfer``."""
        super().close()
        self._metastore.close()
