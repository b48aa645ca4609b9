"""Addresses at which other brokers and clients reach a broker of a cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.network.socket_server import ANY_HOST

if TYPE_CHECKING:
    from barnabas.broker.network.socket_server import Listener


def endpoints_of(listeners: Iterable[Listener]) -> Mapping[str, tuple[str, int]]:
    """Return host and port by listener name, as Apache Kafka's brokers register them.

    That is the advertised address. Without one it is the bound port and the listener's host, or
    this machine's name if it listens on every interface. The call queries the name service.
    """
    return {each.name: _endpoint_of(each) for each in listeners}


def _endpoint_of(listener: Listener) -> tuple[str, int]:
    if listener.advertised is not None:
        return listener.advertised
    host = socket.getfqdn() if listener.host in ANY_HOST else listener.host
    return host, listener.bound[1]
