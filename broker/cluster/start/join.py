"""Broker that is about to join its cluster; ``join`` creates its ``ClusterMember``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.cluster.peers.settings import security_of_brokers
from barnabas.broker.cluster.start.endpoints import endpoints_of
from barnabas.broker.cluster.start.member import ClusterMember, Surroundings, Ways
from barnabas.broker.cluster.start.store_watch import StoreWatch

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.peers.connection import Transport
    from barnabas.broker.cluster.start.cluster_directory import ClusterHome
    from barnabas.broker.network.socket_server import Listener
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.store.log_store import LogStore


class Newcomer:
    """Broker before it is a member of its cluster."""

    def __init__(
        self,
        host: Host,
        home: ClusterHome,
        base: ClusterBase,
        logs: LogStore,
        over: Callable[[Transport], Transport],
        lease_clock: Callable[[], float],
        on_event: Callable[[str, str], object],
        on_brokers_changed: Callable[[], object],
    ) -> None:
        """``home`` opens the data in ``base``, and closes it.

        ``over`` wraps the transport of connections to other brokers. ``lease_clock``: see
        ``Membership``. ``on_event`` receives events of this broker and the others: a kind, and a
        text. ``on_brokers_changed`` is called when this broker is in service, and when another one
        starts or stops. Raises ConfigError if the configuration does not let brokers connect to
        each other.
        """
        security_of_brokers(host.config)
        self._watch = StoreWatch(host.clock, lambda: base.last_error)
        self._around = Surroundings(
            host, home, base, logs, self._watch, over, lease_clock, on_event, on_brokers_changed
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
