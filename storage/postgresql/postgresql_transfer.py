"""The ClusterTransfer in PostgreSQL: each method is one call of a function of ``migrations``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from barnabas.storage.metastore.contents import Contents
from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.replicated.cluster_transfer import (
    IN_USE,
    NOT_EMPTY,
    NOT_WHOLE,
    SUPERSEDED,
    TransferRefused,
)

_REFUSALS: Final = {"in use": IN_USE, "not empty": NOT_EMPTY, "not whole": NOT_WHOLE}


_IS_EXPORTED: Final = "SELECT EXISTS (SELECT 1 FROM barnabas.transfer WHERE direction = 'out')"
_RAISE_EPOCHS: Final = """
UPDATE barnabas.partitions SET leader_epoch = greatest(leader_epoch + 1, %s::integer)
    WHERE NOT is_deleted RETURNING partition_id
"""


class PostgreSqlTransfer:
    """A ClusterTransfer on a connection, and the MetaStore of the cluster on another one."""

    def __init__(self, primary: Primary, metastore: PostgreSqlMetaStore) -> None:
        """Use the connection and the store of a transfer that has started."""
        self._primary = primary
        self._metastore = metastore
        self.warning = metastore.warning
        """Warning for the operator about the server's durability, or None."""

    def begin_import(self, token: UUID, node_id: int, object_store: str | None = None) -> int:
        """Start to fill a cluster without topics; returns the session of the import."""
        statement = "SELECT outcome, session FROM barnabas.begin_import(%s, %s::integer, %s::text)"
        named = (token, node_id, object_store)
        ((outcome, session),) = self._primary.execute(statement, named)
        _require_begun(outcome)
        assert isinstance(session, int), session
        return session

    def import_logs(self, session: int, epoch: int, bases: Mapping[int, int]) -> None:
        """Create the imported partitions' logs, empty and each with its first offset."""
        statement = "SELECT barnabas.import_logs(%s, %s::integer, %s::bigint[], %s::bigint[])"
        columns = (list(bases), list(bases.values()))
        if not self._primary.value(bool, statement, session, epoch, *columns):
            raise TransferRefused(SUPERSEDED)

    def fill(self, token: UUID, contents: Contents) -> None:
        """Replace the cluster's metadata by ``contents``."""
        if not self._metastore.fill(contents, token):
            raise TransferRefused(SUPERSEDED)

    def end_import(self, token: UUID) -> None:
        """Make the imported cluster available to brokers."""
        if not self._primary.value(bool, "SELECT barnabas.end_import(%s)", token):
            raise TransferRefused(SUPERSEDED)

    def begin_export(self, token: UUID) -> None:
        """Exclude brokers until the transfer ends."""
        _require_begun(self._primary.value(str, "SELECT barnabas.begin_export(%s)", token))

    def contents(self) -> Contents:
        """Return the metadata of the cluster."""
        return self._metastore.contents()

    def is_exported(self) -> bool:
        """Whether the cluster was, or is being, exported, and not reopened since."""
        return self._primary.value(bool, _IS_EXPORTED)

    def advance(self, producer_id: int, epoch: int) -> None:
        """Raise the next producer id and the leader epochs to these numbers."""
        if self._primary.value(bool, "SELECT barnabas.is_in_use()"):
            raise TransferRefused(IN_USE)
        self._metastore.raise_producer_ids(producer_id)
        self._metastore.raise_boot_epoch(epoch)
        self._primary.execute(_RAISE_EPOCHS, (epoch,))

    def reopen(self) -> bool:
        """Make an exported cluster available to brokers again."""
        return self._primary.value(bool, "SELECT barnabas.reopen()")

    def close(self) -> None:
        """End every wait, on any thread."""
        self._primary.close()
        self._metastore.close()


def _require_begun(outcome: str) -> None:
    if outcome != "begun":
        raise TransferRefused(_REFUSALS[outcome])
