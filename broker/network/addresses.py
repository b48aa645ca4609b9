"""What clients' addresses say."""

from __future__ import annotations

from ipaddress import ip_network


def network_of(host: str) -> str:
    """Return whose address this is: all of an IPv6 network of 64 bits are one client's."""
    return (
        host if ":" not in host else str(ip_network(f"{host.partition('%')[0]}/64", strict=False))
    )
