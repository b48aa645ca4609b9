"""Where the others of a cluster, and their clients, find a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.network.socket_server import ANY_HOST

if TYPE_CHECKING:
    from barnabas.broker.network.socket_server import Listener


def endpoints_of(listeners: Iterable[Listener]) -> Mapping[str, tuple[str, int]]:
    """Return host and port by the name of the listener, as Apache Kafka's brokers register.

    That is what is advertised; without it the host that is listened on, or this machine's name
    where that is every interface, and the port that was bound. Asks the name service.
    """
    return {each.name: _endpoint_of(each) for each in listeners}


def _endpoint_of(listener: Listener) -> tuple[str, int]:
    if listener.advertised is not None:
        return listener.advertised
    host = socket.getfqdn() if listener.host in ANY_HOST else listener.host
    return host, listener.bound[1]
