"""Settings of how many connections there may be, and how quickly they may come."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.addresses import address_of
from barnabas.broker.config.cluster import ClusterConfig
from barnabas.broker.config.fields import setting
from barnabas.broker.config.types import INT_MAX, ConfigType, UpdateMode, Value, at_least

STRING, INT = ConfigType.STRING, ConfigType.INT
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE


def address_limits(text: str) -> dict[str, int]:
    """Return the connection limits of single addresses; raises ValueError."""
    limits: dict[str, int] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        address, _, number = entry.rpartition(":")
        limit = int(number)
        if limit < 0:
            raise ValueError(f"{entry}: {limit} is less than 0")
        found = address_of(address.strip().strip("[]"))
        if found is None:
            raise ValueError(f"{address!r} does not appear to be an IPv4 or IPv6 address")
        limits[str(found)] = limit
    return limits


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """The validator of ``max.connections.per.ip.overrides``.

    Host names are refused: their addresses can change, and the limit would not hold.
    """

    def problem(self, value: Value) -> str | None:
        """Return the error of the value, or None."""
        try:
            address_limits(str(value))
        except ValueError as error:
            return f"{error}; write ADDRESS:NUMBER, separated by commas; host names are not taken"
        return None

    @property
    def accepted(self) -> str:
        """Description of the accepted form."""
        return "address:number, separated by commas"


@dataclass(frozen=True, slots=True)
class ConnectionLimitsConfig(ClusterConfig):
    """Limits on the number of connections."""

    max_connections: int = setting(
        "max.connections", INT, INT_MAX, at_least(0), update=CLUSTER_WIDE
    )
    """Maximum number of connections at a time, of all listeners or, with its prefix, of one. Beyond
    it, a new connection replaces the oldest one that never completed a request or has not logged
    in, if there is one."""
    max_connections_per_ip: int = setting(
        "max.connections.per.ip", INT, INT_MAX, at_least(0), update=CLUSTER_WIDE
    )
    """Maximum number of connections at a time from one address."""
    max_connections_per_ip_overrides: str = setting(
        "max.connections.per.ip.overrides", STRING, "", AddressLimits(), update=CLUSTER_WIDE
    )
    """The same for single addresses."""
    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate", INT, INT_MAX, at_least(0), update=CLUSTER_WIDE
    )
    """Maximum number of new connections in a second, of all listeners or, with its prefix, of one.
    Others wait for their turn."""
