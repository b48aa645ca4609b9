"""The PostgreSQL that the brokers of a cluster share, as it is configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.start.object_store import opener_of
from barnabas.broker.config.cluster import METADATA
from barnabas.broker.config.types import ConflictingValues
from barnabas.broker.metadata.catalogue import new_cluster_id

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import TransferBase
    from barnabas.broker.config.broker_config import BrokerConfig


_HOST: Final = re.compile(r"[\w.-]+|[0-9a-fA-F:.]+(%[\w.-]+)?|/.*|")
_PORT: Final = re.compile(r"[0-9]*")


def _check_places(address: str, given: Mapping[str, object]) -> None:
    """Raise ConfigError if a part of a password might have become a host, a port or a database.

    PostgreSQL's clients divide a URL at the first ``@`` and the first ``/``, wherever those come
    from, and their errors name hosts, ports and databases. The error here names none.
    """
    location = address.partition("?")[0]
    is_divided = location.count("@") > 1 or "@" in location.partition("://")[2].partition("/")[2]
    hosts = [each for key in ("host", "hostaddr") for each in str(given.get(key, "")).split(",")]
    ports = str(given.get("port", "")).split(",")
    if is_divided or not all(map(_HOST.fullmatch, hosts)) or not all(map(_PORT.fullmatch, ports)):
        reason = f"{METADATA} has a host, a port or a database that is none: escape the characters"
        reason += " @ / ? # % of user and password, @ as %40 and / as %2F"
        raise ConflictingValues(METADATA, "", reason)


def base_of(config: BrokerConfig, patience_s: float | None = None) -> TransferBase:
    """Return the way to the store that ``barnabas.metadata`` names; nothing is connected yet.

    ``patience_s``: timeout, in seconds, of a call on one server, or None for a broker's default.
    Raises ConfigError, which does not repeat the address.
    """
    address = config.metadata
    assert address is not None
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        from barnabas.storage.postgresql.base import PostgreSqlBase
        from barnabas.storage.postgresql.primary import PATIENCE_S
    except ImportError as error:
        reason = (
            f"{METADATA} needs the package psycopg: run pip install '.[postgresql]' in a checkout "
            f"of Barnabas ({error})"
        )
        raise ConflictingValues(METADATA, "", reason) from None
    try:
        given = conninfo_to_dict(address)
    except ProgrammingError:
        reason = f"{METADATA} is not an address as PostgreSQL's clients take it: is a character in"
        reason += " the password not escaped, or a parameter misspelt?"
        raise ConflictingValues(METADATA, "", reason) from None
    _check_places(address, given)
    cluster_id = config.cluster_id or new_cluster_id()
    open_objects = opener_of(config)
    return PostgreSqlBase(
        address,
        new_cluster_id=cluster_id,
        patience_s=PATIENCE_S if patience_s is None else patience_s,
        open_objects=open_objects,
        object_store=config.storage,
    )
