"""Broker that is about to join its cluster; ``join`` creates its ``ClusterMember``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.cluster.peers.settings import security_of_brokers
from barnabas.broker.cluster.start.endpoints import endpoints_of
from barnabas.broker.cluster.start.member import ClusterMember, Surroundings, Ways
from barnabas.broker.cluster.start.store_watch import StoreWatch
from barnabas.broker.runtime.host import Host

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.peers.connection import Transport
    from barnabas.broker.cluster.start.cluster_directory import ClusterHome
    from barnabas.broker.network.socket_server import Listener, SocketServer
    from barnabas.broker.runtime.events import EventRing
    from barnabas.storage.store.log_store import LogStore


class JoiningHost(Host, Protocol):
    """Broker that joins a cluster."""

    logs: LogStore
    events: EventRing
    sockets: SocketServer


class Newcomer:
    """Broker before it is a member of its cluster."""

    def __init__(
        self,
        host: JoiningHost,
        home: ClusterHome,
        base: ClusterBase,
        over: Callable[[Transport], Transport],
        lease_clock: Callable[[], float],
    ) -> None:
        """``home`` opens the data in ``base``, and closes it.

        ``over`` wraps the transport of connections to other brokers. ``lease_clock``: see
        ``Membership``. Raises ConfigError if the configuration does not let brokers connect to each
        other.
        """
        security_of_brokers(host.config)
        self._watch = StoreWatch(host.clock, lambda: base.last_error)
        self._around = Surroundings(
            host,
            home,
            base,
            host.logs,
            self._watch,
            over,
            lease_clock,
            host.events.add,
            host.sockets.brokers_changed,
        )

    def start(self) -> None:
        """Start logging outages of the store."""
        self._watch.start()

    def join(self, listeners: Sequence[Listener]) -> ClusterMember:
        """Take the directory, connect to the store, and register; for a thread.

        ``listeners`` are bound. Raises the errors of ``ClusterHome.enter``.
        """
        home = self._around.home
        node_id = home.enter(self._around.logs)
        with home.until_given_up():
            ways = Ways.open(self._around.base)
            member = ClusterMember(self._around, node_id, endpoints_of(listeners), ways)
            member.register()
        return member

    def close(self) -> None:
        """Stop logging outages of the store."""
        self._watch.stop()
