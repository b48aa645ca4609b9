"""Addresses of clients, each in one form: for ACLs, quotas, limits and connections.

One address has many spellings. ``::ffff:10.0.0.1`` is 10.0.0.1 as an IPv6 socket shows it,
``0:0:0:0:0:0:0:1`` and ``::1`` are one address, and so are a link-local address with and without
its zone (``%eth0``), which means something on one machine only.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96
"""Length of the prefix before an IPv4 address that is written as an IPv6 address."""


def address_of(text: str) -> Address | None:
    """Return an address without a zone, mapped IPv4 as IPv4, or `None` for other text."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


@lru_cache(maxsize=4096)
def network_of(text: str) -> Network | None:
    """Return the network of an address or a CIDR text, or `None` if it is neither."""
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return None
    if isinstance(found, IPv6Network) and found.prefixlen >= _MAPPED_BITS:
        mapped = found.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, found.prefixlen - _MAPPED_BITS))
    return found


def client_network(host: str) -> str:
    """Return the network that counts as one client: the address, or 64 bits of an IPv6 address."""
    if ":" not in host:
        return host
    return str(ip_network(f"{without_zone(host)}/64", strict=False))


def plain_host(host: str) -> str:
    """Return a peer's address, as IPv4 if it came through an IPv6 socket as a mapped address."""
    found = address_of(host) if ":" in host else None
    return str(found) if isinstance(found, IPv4Address) else host


def without_zone(host: str) -> str:
    """Return the address of a peer, as limits use it."""
    return host.partition("%")[0]


def address_text(host: str, port: int) -> str:
    """Return ``host:port``, with brackets around an IPv6 address, as clients and URLs take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
