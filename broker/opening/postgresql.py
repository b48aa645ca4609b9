"""The PostgreSQL that the brokers of a cluster share, as it is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.cluster import METADATA
from barnabas.broker.config.types import ConflictingValues
from barnabas.broker.topics.catalogue import new_cluster_id

if TYPE_CHECKING:
    from barnabas.broker.cluster.base import TransferBase
    from barnabas.broker.config.broker_config import BrokerConfig


def base_of(config: BrokerConfig, patience_s: float | None = None) -> TransferBase:
    """Return the way to the store that ``barnabas.metadata`` names; nothing is connected yet.

    ``patience_s``: how long each of its answers is waited for on one server; None: as a broker
    does. Raises ConfigError, which does not repeat the address.
    """
    address = config.metadata
    assert address is not None
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        from barnabas.storage.postgresql.base import PostgreSqlBase
    except ImportError as error:
        reason = f"{METADATA} needs the package psycopg: install barnabas[postgresql] ({error})"
        raise ConflictingValues(METADATA, "", reason) from None
    try:
        conninfo_to_dict(address)
    except ProgrammingError:
        reason = f"{METADATA} is not an address as PostgreSQL's clients take it: is a character in"
        reason += " the password not escaped, or a parameter misspelt?"
        raise ConflictingValues(METADATA, "", reason) from None
    cluster_id = config.cluster_id or new_cluster_id()
    if patience_s is None:
        return PostgreSqlBase(address, new_cluster_id=cluster_id)
    return PostgreSqlBase(address, new_cluster_id=cluster_id, patience_s=patience_s)
