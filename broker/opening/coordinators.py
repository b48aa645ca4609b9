"""The coordinators of one broker, and its requests to those of other brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.cluster.coordinating.remote_coordinators import RemoteCoordinators
from barnabas.broker.cluster.coordinating.verification_guards import Guards
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.runtime.host import Host

if TYPE_CHECKING:
    from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.security.acls.access import Generation
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.store.log_store import LogStore


class CoordinatingHost(Host, Protocol):
    """Parts of the broker that its coordinators use."""

    catalogue: Catalogue
    generation: Generation
    leadership_check: LeadershipCheck | None
    logs: LogStore
    peers: Peers | None
    view: ClusterView


class Coordinators:
    """Coordinators of groups and transactions, and the writer of markers."""

    def __init__(self, host: CoordinatingHost) -> None:
        guards = None if host.peers is None else Guards()
        self.groups = Groups(host, host.catalogue, host.generation)
        self.markers = MarkerWriter(host.catalogue, self.groups, guards)
        self.transactions = Transactions(
            host, host.catalogue, host.logs, self.markers, host.view, host.peers
        )
        self.transactions.leadership_check = host.leadership_check
        self.remote: RemoteCoordinators | None = None
        """Coordinators of other brokers, or None for a standalone broker."""
        if host.peers is not None and guards is not None:
            partition_id_of = self.transactions.log.partition_id_of
            self.remote = RemoteCoordinators(host, host.view, partition_id_of, host.peers, guards)

    def configure(self, config: BrokerConfig) -> None:
        """Apply settings that have changed."""
        self.groups.configure(config)
        self.transactions.configure(config)

    def lose_guards(self, logs: Iterable[PartitionLog]) -> None:
        """Forget the verified transactions of logs that are no longer led here."""
        if self.remote is not None:
            for log in logs:
                self.remote.guards.lose(log)

    def close(self) -> None:
        """Stop all coordinators."""
        self.groups.close()
        self.transactions.close()
        if self.remote is not None:
            self.remote.close()
