"""Brokers of the cluster, as one client can reach them.

A client gets every broker's address of the listener that it has connected to. For this broker that
is the address that it connected to, unless the configuration advertises another one. A broker
without a listener of that name is left out, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.cluster.metadata_refresh import Misses
from barnabas.broker.cluster.view import NO_NODE, ClusterView
from barnabas.storage.objects.object_use import ObjectUse


class Broker(NamedTuple):
    """Broker with its address for a client."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Brokers:
    """Broker list for clients."""

    def __init__(
        self,
        view: ClusterView,
        misses: Misses | None = None,
        object_use: ObjectUse | None = None,
    ) -> None:
        """``misses`` polls for unknown objects. Both are None in a standalone broker."""
        self._view = view
        self.misses = misses
        self._object_use = object_use

    @property
    def view(self) -> ClusterView:
        """Return this broker's view of the cluster."""
        return self._view

    @property
    def are_several(self) -> bool:
        """Whether there are other brokers than this one."""
        return len(self._view.nodes) > 1

    @property
    def lacks_object_store(self) -> list[int] | None:
        """Return the nodes for which the use of the object store waits; None without a store."""
        found = None if self._object_use is None else self._object_use.waits_for
        return None if found is None else [*found]

    def reachable(self, context: RequestContext) -> dict[int, Broker]:
        """Return the brokers that a client can reach, by node ID."""
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
        """Return the fenced brokers that have a listener of the client's name, by node ID."""
        name = context.connection.listener_name
        return [
            Broker(node.node_id, *node.endpoints[name], node.rack)
            for node in self._view.fenced
            if name in node.endpoints
        ]

    def controller_id(self, reachable: Collection[int]) -> int:
        """Return the node ID of the broker that receives the client's changes.

        That is the controller, or another broker if the controller is not known or not reachable:
        all of them take changes. NO_NODE is returned only if no broker is reachable. After two
        responses without a controller, librdkafka (2.16) delays its pending requests until one of
        its connections opens or closes, about a minute.
        """
        for node_id in (self._view.controller_id, self._view.node_id, *reachable):
            if node_id in reachable:
                return node_id
        return NO_NODE

    def reachable_of(self, context: RequestContext, node_ids: Iterable[int]) -> list[Broker]:
        """Return those of ``node_ids`` that a client can reach, by node ID."""
        found = self.reachable(context)
        return [found[node_id] for node_id in sorted(set(node_ids)) if node_id in found]
