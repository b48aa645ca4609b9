"""Who last used each transactional id: for operators who look for the owner of a transaction.

In memory only, so after a start an id has no client until one uses it. Nothing is decided by
what stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext


class Client(NamedTuple):
    """A client as Kafka's tools show one: its client id, and its address behind a slash."""

    client_id: str
    host: str


class TransactionClients:
    """The last client of each transactional id that is there."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def of(self, transactional_id: str) -> Client | None:
        """Who last used an id; None if no client has since the start."""
        return self._clients.get(transactional_id)

    def used(self, transactional_id: str, context: RequestContext) -> None:
        """Take note of a request about an id that exists."""
        self._clients[transactional_id] = self.client_of(transactional_id, context)

    def client_of(self, transactional_id: str, context: RequestContext) -> Client:
        """Return the client of a request; the known object where the id's client is unchanged."""
        client_id = context.client_id or ""
        host = "/" + context.connection.peer_host
        known = self._clients.get(transactional_id)
        if known is not None and known.client_id == client_id and known.host == host:
            return known
        return Client(client_id, host)

    def forget(self, transactional_id: str) -> None:
        """Drop an id that exists no more."""
        self._clients.pop(transactional_id, None)
