"""Addresses as text."""


def address_text(host: str, port: int) -> str:
    """Return ``host:port``, with brackets around an IPv6 address, as clients and URLs take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
