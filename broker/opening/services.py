"""The parts of a broker that handlers can name as parameters (broker/api/dispatch.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.api.fetch_sessions import FetchSessions
    from barnabas.broker.api.inspector import Inspector
    from barnabas.broker.api.waiting import FetchWaits
    from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
    from barnabas.broker.cluster.coordinating.remote_coordinators import RemoteCoordinators
    from barnabas.broker.cluster.moves import Moves
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.serving.brokers import Brokers
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.markers import MarkerWriter
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.access_rules import AccessRules
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.quota_rules import QuotaRules
    from barnabas.broker.metadata.user_credentials import UserCredentials
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.broker.runtime.disk_readers import DiskReaders
    from barnabas.broker.runtime.pattern_thread import PatternThread
    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.store.log_store import LogStore


class ServingBroker(Protocol):
    """Parts of the broker that its handlers use."""

    access_rules: AccessRules
    catalogue: Catalogue
    fetch_sessions: FetchSessions
    fetch_waits: FetchWaits
    groups: Groups
    inspector: Inspector
    leadership_check: LeadershipCheck | None
    logs: LogStore
    markers: MarkerWriter
    metastore: MetaStore
    moves: Moves | None
    pattern_thread: PatternThread
    peers: Peers | None
    quota_rules: QuotaRules
    readers: DiskReaders
    remote_coordinators: RemoteCoordinators | None
    routes: Routes
    sockets: SocketServer
    transactions: Transactions
    user_credentials: UserCredentials


def services_of(broker: ServingBroker, brokers: Brokers) -> dict[str, object]:
    """Return the parts of a broker, by the names of the parameters of handlers."""
    return {
        "access_rules": broker.access_rules,
        "brokers": brokers,
        "catalogue": broker.catalogue,
        "configs": broker.catalogue.configs,
        "remote_coordinators": broker.remote_coordinators,
        "fetch_sessions": broker.fetch_sessions,
        "fetch_waits": broker.fetch_waits,
        "groups": broker.groups,
        "host": broker,
        "identity": broker.metastore.identity,
        "inspector": broker.inspector,
        "leadership_check": broker.leadership_check,
        "logs": broker.logs,
        "markers": broker.markers,
        "moves": broker.moves,
        "pattern_thread": broker.pattern_thread,
        "peer_sessions": broker.sockets.peer_sessions,
        "peers": broker.peers,
        "quota_rules": broker.quota_rules,
        "producer_ids": broker.catalogue.producer_ids,
        "readers": broker.readers,
        "routes": broker.routes,
        "sockets": broker.sockets,
        "transactions": broker.transactions,
        "user_credentials": broker.user_credentials,
    }
