"""The blocking client, for any request to a broker in any version."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from barnabas.broker.client import wire_client

TIMEOUT_S = 90.0


class Addressed(Protocol):
    """A broker, embedded or as a process."""

    @property
    def bootstrap_servers(self) -> str: ...


class WireClient(wire_client.WireClient):
    """`with WireClient(broker) as client: client.ask(METADATA, MetadataRequest(), 12)`."""

    def __init__(
        self, broker: Addressed, timeout_s: float = TIMEOUT_S, client_id: str = "wire-client"
    ) -> None:
        host, _, port = broker.bootstrap_servers.partition(":")
        super().__init__((host, int(port)), client_id, timeout_s)
        self._asked: deque[Any] = deque()

    def send(self, api: Any, request: Any, version: int) -> None:
        """Send a request; ``receive`` returns the responses in the order of the requests."""
        self._asked.append(api)
        super().send(api, request, version)

    def receive(self, _api: Any = None) -> Any:
        """Return the response to the oldest request without one."""
        return super().receive(self._asked.popleft())
