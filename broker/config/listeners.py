"""Listeners: from ``listeners``, ``advertised.listeners`` and the protocol map to endpoints.

Names are free-form (``PLAINTEXT_HOST``, ``BROKER``, ``TC-0``) and say nothing by themselves; the
map gives each its security protocol. A client receives the advertised address *of the listener it
came in on*, or, without one, the address it dialled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from barnabas.broker.config.security_protocols import PROTOCOLS, has_login, has_tls
from barnabas.broker.config.types import ConfigError

_ADDRESS = re.compile(r"(?:\[([^\]]*)\]|([0-9A-Za-z%._-]*)):([0-9]{1,5})")
HTTP_LISTENER = rf"|{_ADDRESS.pattern}"
_LISTENER = re.compile(rf"([A-Za-z0-9_.-]+)://{_ADDRESS.pattern}")
_NOT_AN_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - looked for, not bound


class Endpoint(NamedTuple):
    """One listener to open."""

    name: str
    host: str
    """Host to bind, or empty for every interface."""
    port: int
    """Port to bind, or 0 for any free port."""
    security_protocol: str
    advertised: tuple[str, int] | None
    """Address for clients, or None for the address that the client connected to."""

    @property
    def has_tls(self) -> bool:
        """Whether its connections are encrypted."""
        return has_tls(self.security_protocol)

    @property
    def has_login(self) -> bool:
        """Whether its clients log in."""
        return has_login(self.security_protocol)


def parse_listeners(key: str, items: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return host and port by listener name, in order; raises ConfigError."""
    result: dict[str, tuple[str, int]] = {}
    for item in items:
        match = _LISTENER.fullmatch(item)
        if match is None or int(match[4]) > 65535:
            raise ConfigError(key, item, "Value must be NAME://host:port")
        name = match[1].upper()
        if name in result:
            raise ConfigError(key, ",".join(items), f"Listener name {name} is used twice")
        result[name] = (match[2] if match[2] is not None else match[3], int(match[4]))
    return result


def parse_http_listener(text: str) -> tuple[str, int] | None:
    """Return host and port of the HTTP port, or None if it is off; raises ConfigError."""
    if not text:
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ConfigError("barnabas.http.listener", text, "Value must be host:port, or empty")
    return match[1] if match[1] is not None else match[2], int(match[3])


@lru_cache(maxsize=16)
def parse_protocol_map(text: str) -> Mapping[str, str]:
    """Return the security protocol by listener name; raises ConfigError."""
    result = {}
    for item in text.split(","):
        name, colon, protocol = (part.strip().upper() for part in item.partition(":"))
        if not item.strip():
            continue
        if not name or not colon or protocol not in PROTOCOLS:
            expected = f"Value must be NAME:PROTOCOL,... with protocols {', '.join(PROTOCOLS)}"
            raise ConfigError("listener.security.protocol.map", text, expected)
        result[name] = protocol
    return result


def endpoints_of(
    listeners: Sequence[str],
    advertised_listeners: Sequence[str],
    protocol_map: str,
    controller_names: Sequence[str],
) -> tuple[Endpoint, ...]:
    """Return the endpoints that these four keys describe; raises ConfigError.

    Controller listeners are left out: there is no controller to talk to.
    """
    bound = parse_listeners("listeners", listeners)
    advertised = parse_listeners("advertised.listeners", advertised_listeners)
    protocols = parse_protocol_map(protocol_map)
    controllers = {name.upper() for name in controller_names}
    _check_ports(bound, listeners)
    _check_advertised(bound, advertised, advertised_listeners)
    endpoints = tuple(
        Endpoint(name, host, port, _protocol(name, protocols, listeners), advertised.get(name))
        for name, (host, port) in bound.items()
        if name not in controllers
    )
    if not endpoints:
        raise ConfigError("listeners", ",".join(listeners), "There must be one for clients")
    return endpoints


def _protocol(name: str, protocols: Mapping[str, str], listeners: Sequence[str]) -> str:
    protocol = protocols.get(name)
    if protocol is None:
        expected = f"Listener name {name} is missing in listener.security.protocol.map"
        raise ConfigError("listeners", ",".join(listeners), expected)
    return protocol


def _check_ports(bound: dict[str, tuple[str, int]], listeners: Sequence[str]) -> None:
    taken: dict[int, set[str]] = {}
    for host, port in bound.values():
        hosts = taken.setdefault(port, set())
        if port and (host in hosts or "" in hosts or (hosts and not host)):
            raise ConfigError("listeners", ",".join(listeners), f"Port {port} is used twice")
        hosts.add(host)


def _check_advertised(
    bound: dict[str, tuple[str, int]],
    advertised: dict[str, tuple[str, int]],
    advertised_listeners: Sequence[str],
) -> None:
    text = ",".join(advertised_listeners)
    for name, (host, port) in advertised.items():
        if name not in bound:
            raise ConfigError("advertised.listeners", text, f"{name} is not one of the listeners")
        if host in _NOT_AN_ADDRESS:
            expected = f"{host} is not an address that a client can connect to"
            raise ConfigError("advertised.listeners", text, expected)
        if not host or not port:
            raise ConfigError("advertised.listeners", text, "Host and port must be given")
