"""A blocking client on our own codec, for asking any broker anything in any version."""

from __future__ import annotations

import socket
from typing import Any, Self

from barnabas.protocol.client import NEED_DATA, ClientConnection
from tests.counterparts.broker_process import HOST, BrokerProcess

TIMEOUT_S = 90.0


class Disconnected(ConnectionError):
    """The broker closed the connection instead of answering."""


class WireClient:
    """`with WireClient(broker) as client: client.ask(METADATA, MetadataRequest(), 12)`."""

    def __init__(self, broker: BrokerProcess, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection((HOST, broker.port), timeout=timeout_s)
        self._connection = ClientConnection("wire-client")

    def ask(self, api: Any, request: Any, version: int) -> Any:
        """Send a request, return its response; raises Disconnected when there is none."""
        self.send(api, request, version)
        return self.receive()

    def send(self, api: Any, request: Any, version: int) -> None:
        """Send a request; ``receive`` returns the responses in the order of the requests."""
        _, chunks = self._connection.request(api, version, request)
        self._socket.sendall(b"".join(bytes(chunk) for chunk in chunks))

    def receive(self) -> Any:
        """Return the response to the oldest request without one; raises Disconnected."""
        while (answer := self._connection.next_response()) is NEED_DATA:
            received = self._socket.recv(1 << 16)
            if not received:
                raise Disconnected("a request was not answered")
            self._connection.receive_data(received)
        return answer[1]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
