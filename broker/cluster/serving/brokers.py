"""The brokers of the cluster as one client reaches them.

A client is told of every broker the address that belongs to the listener it has come by; of this
one the address that it has dialled, unless the configuration says what to advertise. A broker that
has no listener of that name does not exist for it, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.cluster.metadata_refresh import Misses
from barnabas.broker.cluster.view import NO_NODE, ClusterView


class Broker(NamedTuple):
    """One broker, and where the client finds it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Brokers:
    """Tells clients of the brokers in service."""

    def __init__(self, view: ClusterView, misses: Misses | None = None) -> None:
        """``misses`` finds out what is not in the view yet; None: this broker is alone."""
        self._view = view
        self.misses = misses

    @property
    def view(self) -> ClusterView:
        """Return what is known of them."""
        return self._view

    @property
    def are_several(self) -> bool:
        """Return whether there is another broker than this one."""
        return len(self._view.nodes) > 1

    def reachable(self, context: RequestContext) -> dict[int, Broker]:
        """Return the brokers that a client can reach, by id."""
        found: dict[int, Broker] = {}
        for node in self._view.nodes:
            if node.node_id == self._view.node_id:
                address: tuple[str, int] | None = context.endpoint
            else:
                address = node.endpoints.get(context.connection.listener_name)
            if address is not None:
                found[node.node_id] = Broker(node.node_id, *address, node.rack)
        return found

    def fenced(self, context: RequestContext) -> list[Broker]:
        """Return the fenced brokers that have a listener of the client's name, by id."""
        name = context.connection.listener_name
        return [
            Broker(node.node_id, *node.endpoints[name], node.rack)
            for node in self._view.fenced
            if name in node.endpoints
        ]

    def controller_id(self, reachable: Collection[int]) -> int:
        """Return which of the brokers that a client can reach it is to send changes to.

        The controller, or where that is not known or out of reach another one: all of them take
        changes. NO_NODE only where there is none at all: told of no controller twice, librdkafka
        (2.16) waits with what it has for one until a connection comes or goes, so for a minute.
        """
        for node_id in (self._view.controller_id, self._view.node_id, *reachable):
            if node_id in reachable:
                return node_id
        return NO_NODE

    def reachable_of(self, context: RequestContext, node_ids: Iterable[int]) -> list[Broker]:
        """Return those of some brokers that a client can reach, by id."""
        found = self.reachable(context)
        return [found[node_id] for node_id in sorted(set(node_ids)) if node_id in found]
