"""Member of a cluster: its parts that a standalone broker does not have, and how it leaves.

Rules of this file:

* ``register`` (``Newcomer.join``) makes the broker a member, ``new_peers`` starts its view of the
  others, and ``serve`` starts to lead partitions and to apply metadata (``leading.py``,
  ``sessions.py``).
* All of it runs on the event loop, except calls of its threads, which may wait without a timeout:
  each thread has its own connection to the store.
* The store's server has a limited number of connections. Calls that must not wait for others have
  their own: heartbeats, polls, flushes, metadata changes, and the rows of leadership checks. Upkeep
  has one too, since no other call may wait for it. All other calls are errands.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
from barnabas.broker.cluster.endpoints import Place
from barnabas.broker.cluster.leading import packer
from barnabas.broker.cluster.leading.object_upkeep import ObjectUpkeep
from barnabas.broker.cluster.leading.packer import Packer
from barnabas.broker.cluster.leading.upkeep import Upkeep
from barnabas.broker.cluster.membership.assigner import Rules
from barnabas.broker.cluster.membership.base import open_blob_store
from barnabas.broker.cluster.membership.drain import Drain
from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.cluster.membership.handovers import HandOvers
from barnabas.broker.cluster.membership.membership import Membership
from barnabas.broker.cluster.membership.store_calls import Errands
from barnabas.broker.cluster.membership.stored_moves import StoredMoves
from barnabas.broker.cluster.metadata_refresh import Misses
from barnabas.broker.cluster.peers.client import PeerClient
from barnabas.broker.cluster.peers.connection import Network
from barnabas.broker.cluster.peers.settings import (
    limits_of,
    listener_of_brokers,
    security_of_brokers,
)
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.serving.lease_gate import gate
from barnabas.broker.cluster.serving.refused_produce import note_refused_produce
from barnabas.broker.cluster.serving.stale_metadata import poll_before_refusing
from barnabas.broker.cluster.start.leading import Service
from barnabas.broker.cluster.start.metadata_follower import MetadataFollower
from barnabas.broker.cluster.start.object_access import ObjectAccess
from barnabas.broker.cluster.start.sessions import Sessions
from barnabas.broker.cluster.start.store_watch import StoreWatch
from barnabas.broker.config.cluster import CORDONED
from barnabas.broker.config.features import FEATURES
from barnabas.broker.metrics.cluster import Standing
from barnabas.broker.metrics.collectors import (
    register_cluster,
    register_cluster_store,
    register_cold_reads,
    register_object_store,
    register_object_upkeep,
    register_packing,
    register_uploads,
)
from barnabas.storage.replicated.block_cache import BlockCache
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.segment_packing import PackLimits

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.cluster.leading.leadership import Leadership
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.peers.connection import Transport
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.start.cluster_directory import ClusterHome
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.metrics.families import Metrics
    from barnabas.broker.runtime.disk_readers import DiskReaders
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.replicated.cluster_index import ClusterIndex, HandOver
    from barnabas.storage.replicated.log_index import LogIndex
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger("barnabas.broker.cluster")

_MS_PER_S: Final = 1000
CACHE_DISTANCE_BYTES: Final = 256 * 1024 * 1024
"""Free space, on top of the disk's reserve, below which the cache of old records shrinks. It is as
much as producers may write until upkeep checks again: without it they would reach the reserve, and
appends would be refused."""
NAMED_MOST: Final = 10
"""Maximum number of damaged partitions that are named."""
OBJECT_STORE_LOG_INTERVAL_S: Final = 60.0
"""Interval, in seconds, of log lines about an object store that does not respond."""
LEAVE_TIMEOUT_S: Final = 3.0
"""Timeout, in seconds, for ending the session at a stop; without it the lease expires."""


class Surroundings(NamedTuple):
    """Parts of the broker that a member uses; see ``Newcomer``."""

    host: Host
    home: ClusterHome
    base: ClusterBase
    logs: LogStore
    watch: StoreWatch
    over: Callable[[Transport], Transport]
    lease_clock: Callable[[], float]
    on_event: Callable[[str, str], object]
    on_brokers_changed: Callable[[], object]


class Ways(NamedTuple):
    """Connections to the store, in addition to those for heartbeats and polls."""

    errands: ClusterIndex
    checks: LogIndex
    upkeep: LogIndex

    @classmethod
    def open(cls, base: ClusterBase) -> Ways:
        """Open the connections on a thread; raises the errors of ``ClusterBase``."""
        return cls(base.cluster_index(), base.log_index(), base.log_index())


class ClusterMember:
    """Member of a cluster, from its registration on."""

    def __init__(
        self,
        around: Surroundings,
        node_id: int,
        endpoints: Mapping[str, tuple[str, int]],
        ways: Ways,
    ) -> None:
        """Prepare the member; ``endpoints`` has host and port by listener name."""
        host = around.host
        self._around = around
        self._ways = ways
        self._errands = Errands(ways.errands)
        self._cold = self._new_cold_store()
        self.durable_logs = StoredLogs(around.base, self._cold)
        self._membership = Membership(
            around.base,
            node_id=node_id,
            place=Place(
                host.config.broker_rack, endpoints, bool(host.config.cordoned_log_dirs), FEATURES
            ),
            lease_ms=host.config.lease_ms,
            loop=host.loop,
            on_changed=self._changed,
            on_ended=self._session_ended,
            on_fatal=host.fatal,
            on_polled=self._polled,
            on_gained=self.durable_logs.bring,
            clock=around.lease_clock,
        )
        self._sessions = Sessions(
            host,
            around.home,
            around.logs,
            self.durable_logs,
            self._until_ready,
            lambda: self._errands.run(self._membership.new_session),
            self._changed,
            around.on_event,
        )
        self.misses = Misses(
            self._membership, self._is_following, lambda: bool(around.base.last_error), host.clock
        )
        """Polls for names that this broker does not know."""
        self.moves = StoredMoves(self._errands, self._membership.view, self._membership.refresh)
        """Wanted and pinned leaders of partitions."""
        self.leadership_check = LeadershipCheck(
            host, ways.checks, around.logs, self._sessions.leading, self.may_serve
        )
        """Check whether this broker still leads a partition."""
        self._upkeep = Upkeep(
            host,
            around.logs,
            ways.upkeep,
            self._sessions.leading,
            cold=self._cold,
            packs=around.base.has_object_store,
        )
        """Upkeep of the store's copy of the logs that are led here."""
        self._object_upkeep = ObjectUpkeep(
            host,
            around.base.log_index,
            around.base.blob_stores,
            around.base.object_rows if around.base.has_object_store else None,
            around.base.object_counts.by_operation,
        )
        self._objects_watch = self._new_objects_watch()
        """Watch of the object store, or None without one."""
        self._access = self._new_access()
        """Check of the object store, or None without one."""
        self._packer = self._new_packer()
        self._service: Service | None = None
        """Service, once this broker leads partitions, or None."""
        self._drain: Drain | None = None
        """Drain, once this broker gives up its partitions, or None."""
        self._has_looked = asyncio.Event()
        self._is_closed = False

    def _new_cold_store(self) -> ColdStore | None:
        """Return the store for old records, or None if logs are loaded whole."""
        host, logs, base = self._around.host, self._around.logs, self._around.base
        max_bytes = host.config.cache_max_bytes
        if not max_bytes:
            return None
        free_bytes_min = host.config.disk_reserve_bytes + CACHE_DISTANCE_BYTES
        cache = BlockCache(logs.file_system, logs.root, max_bytes, free_bytes_min)
        timeout_s = host.config.cold_read_timeout_ms / _MS_PER_S
        return ColdStore(
            base.log_index,
            partial(open_blob_store, base),
            cache,
            host.clock.now_ms,
            timeout_s=timeout_s,
            is_throttled=lambda: base.object_counts.is_throttled,
        )

    def _new_objects_watch(self) -> StoreWatch | None:
        base = self._around.base
        if not base.has_object_store:
            return None
        name, every_s = "the object store of the cluster", OBJECT_STORE_LOG_INTERVAL_S
        return StoreWatch(
            self._around.host.clock, lambda: base.object_counts.last_error, name, every_s
        )

    def _new_access(self) -> ObjectAccess | None:
        around, base = self._around, self._around.base
        if not base.has_object_store:
            return None
        return ObjectAccess(
            around.host,
            base,
            self._membership,
            self._errands,
            self._sessions.leading,
            around.on_event,
        )

    def _new_packer(self) -> Packer | None:
        """Return the packer of the logs that are led here, or None without an object store."""
        around, base = self._around, self._around.base
        if not base.has_object_store:
            return None
        config = around.host.config
        settings = packer.PackerSettings(PackLimits(config.pack_bytes), config.pack_ms)
        return Packer(
            around.host,
            around.logs,
            self._sessions.leading,
            self._upkeep.snapshot_offset,
            base.log_index,
            partial(open_blob_store, base),
            settings,
            lambda session: (
                base.object_use.may_put(session) and not base.object_counts.is_throttled
            ),
        )

    def register(self) -> None:
        """Register the first session, on a thread; raises the errors of ``ClusterBase``."""
        self._around.home.session = self._membership.open(self._ways.errands)

    def brokers(self) -> Brokers:
        """Return the broker list for clients."""
        return Brokers(self.view, self.misses, self._around.base.object_use)

    @property
    def node_id(self) -> int:
        """Return this broker's node ID."""
        return self.view.node_id

    @property
    def view(self) -> ClusterView:
        """Return this broker's view of the cluster."""
        return self._membership.view

    def may_serve(self) -> bool:
        """Whether partitions that are led here may be read."""
        return self._membership.may_serve()

    async def wait_for_view(self) -> None:
        """Wait until the view shows the other brokers, even while the store is unavailable."""
        await self._has_looked.wait()

    def new_peers(self) -> Peers:
        """Start polling the cluster, and return the client of the peers; raises ConfigError."""
        host, view = self._around.host, self.view
        if self._around.base.warning is not None:
            logger.warning("%s", self._around.base.warning)
        listener, limits = listener_of_brokers(host.config).name, limits_of(host.config)

        def address_of(node_id: int) -> tuple[str, int] | None:
            found = {each.node_id: each.endpoints for each in view.nodes}
            return found.get(node_id, {}).get(listener)

        network = Network(lambda: security_of_brokers(host.config), limits)
        peers = PeerClient(
            node_id=self.node_id,
            session=self._sessions.newest,
            address_of=address_of,
            transport=self._around.over(network),
            clock=host.clock,
            limits=limits,
        )
        self._membership.start()
        return peers

    def guard(self, routes: Routes, catalogue: Catalogue, monotonic_s: Callable[[], float]) -> None:
        """Make ``routes`` serve only under the lease, and poll the store before some refusals."""
        note_refused = partial(note_refused_produce, catalogue, monotonic_s)
        gate(routes, self.may_serve, note_refused)
        poll_before_refusing(routes, catalogue, self.misses)

    def serve(self, peers: Peers, leadership: Leadership, changes: Changes) -> None:
        """Start to lead and to apply metadata; ``leadership`` is open, ``changes`` are loaded."""
        host, on_event = self._around.host, self._around.on_event
        on_brokers_changed = self._around.on_brokers_changed
        on_event("cluster_joined", f"node {self.node_id}, session {self._sessions.newest}")
        membership, sessions = self._membership, self._sessions
        hand_overs = HandOvers(
            membership,
            lambda: sessions.newest,
            leadership.release,
            self._hand_over,
            host.spawn,
            sleep=host.clock.sleep,
        )
        follower = MetadataFollower(host, membership, changes, self.misses.wake)
        self._service = Service(
            self.view,
            peers,
            leadership,
            hand_overs,
            follower,
            on_event,
            on_brokers_changed,
            membership.view.session_of,
        )
        sessions.lead()
        self._upkeep.start()
        self._object_upkeep.start()
        if self._objects_watch is not None:
            self._objects_watch.start()
        if self._access is not None:
            self._access.start()
        if self._packer is not None:
            self._packer.rounds.start()
        self._changed()

    def register_metrics(
        self, metrics: Metrics, leadership: Leadership, readers: DiskReaders
    ) -> None:
        """Register the metrics of a cluster member; its logs are open."""
        committer, base, membership = (
            self._around.home.committer,
            self._around.base,
            self._membership,
        )
        assert committer is not None
        lease_ms = self._around.host.config.lease_ms
        standing = Standing(lease_ms, membership.lease_age_s, membership.may_serve)
        register_cluster(metrics, standing, leadership)
        register_cluster_store(
            metrics, committer.counts, self._upkeep.counts, lambda: base.last_error
        )
        register_object_upkeep(metrics, self._object_upkeep.counts)
        if committer.uploads is not None:
            register_uploads(metrics, base.object_counts, committer.uploads)
        if self._cold is not None:
            register_cold_reads(metrics, self._cold, readers)
        watch = self._objects_watch
        if watch is not None:
            register_object_store(
                metrics, base.object_use, lambda: watch.away_s, lambda: self._has_given_up
            )
        if self._packer is not None:
            register_packing(metrics, self._packer)

    def warnings(self) -> dict[str, str]:
        """Return warnings for operators, in texts that any user may read."""
        away_s, found = self._around.watch.away_s, {}
        if away_s is not None:
            found["store"] = f"away for {away_s:.0f} s: nothing is acknowledged, nothing changes"
        watch, counts = self._objects_watch, self._around.base.object_counts
        if self._has_given_up:
            found["objects"] = (
                "object store fails at this broker only: the other brokers lead its partitions "
                f"until it works here: {counts.last_error}"
            )
        elif watch is not None and watch.away_s is not None:
            found["objects"] = (
                f"object store away for {watch.away_s:.0f} s: large flushes and reads of old "
                f"records wait: {counts.last_error}"
            )
        if self._has_given_up:
            found["lease"] = "given up: this broker leads nothing"
        elif not self.may_serve():
            found["lease"] = "not renewed in time: what is led here is not read either"
        damaged = [] if self._service is None else self._service.leadership.damaged()
        if damaged:
            more = f" and {len(damaged) - NAMED_MOST} more" if len(damaged) > NAMED_MOST else ""
            found["partitions"] = (
                f"damaged in the store, not served: {', '.join(damaged[:NAMED_MOST])}{more}"
            )
        return found

    def plan_by(self, config: BrokerConfig, overrides: Mapping[str, Mapping[str, str]]) -> None:
        """Apply cordons and levelling; ``overrides``: all brokers' settings by decimal node ID."""
        by_node = {
            int(entity): bool(settings[CORDONED].strip())
            for entity, settings in overrides.items()
            if entity and CORDONED in settings
        }
        cordoned = frozenset(node_id for node_id, is_cordoned in by_node.items() if is_cordoned)
        levels = config.auto_leader_rebalance_enable
        self._membership.plan_by(Rules(levels, cordoned, frozenset(by_node)))

    def forgotten(self, logs: Sequence[PartitionLog], moved: frozenset[int]) -> None:
        """Drop lost logs, and replace a lost session; see ``StoreCallbacks.on_forgotten``."""
        assert self._service is not None, "nothing is placed before"
        self._service.leadership.forgotten(logs, moved)
        self._sessions.forgotten()

    # -------------------------------------------------------------------------------------- events

    def _changed(self) -> None:
        if self._service is not None:
            self._service.changed()
            if self._drain is not None:
                self._drain.changed()

    def _polled(self) -> None:
        self._has_looked.set()
        self.misses.wake()

    def _session_ended(self, session: int) -> None:
        self._sessions.ended(session)

    async def _until_ready(self, session: int) -> None:
        if self._access is not None:
            await self._access.until_ready(session)

    @property
    def _has_given_up(self) -> bool:
        """Whether this broker leads nothing until the object store works for it."""
        return self._access is not None and self._access.has_given_up

    def _is_following(self) -> bool:
        return self._service is not None and self._service.follower.is_under_way

    async def _hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        await self._errands.run(lambda index: index.hand_over(session, partitions))
        self._membership.refresh()

    # ------------------------------------------------------------------------------------- the end

    @property
    def led_count(self) -> int:
        """Return the number of partitions led here; see ``Leading``."""
        return 0 if self._service is None else self._service.led_count

    @property
    def has_others(self) -> bool:
        """Whether other brokers can take partitions; see ``Leading``."""
        view = self._membership.view
        others = (each.node_id for each in view.nodes if each.node_id != view.node_id)
        return any(map(view.could_lead, others))

    async def drain(self, timeout_ms: int) -> None:
        """Hand all partitions over to other brokers, until ``timeout_ms`` has passed."""
        self._sessions.begin_no_other()
        self._drain = Drain(self, self._take_no_more, self._around.host.clock)
        await self._drain.run(timeout_ms)

    async def _take_no_more(self) -> None:
        await self._errands.run(lambda index: index.drain(self._sessions.newest))
        self._membership.refresh()

    def stop(self) -> None:
        """Stop applying changes and all rounds: this broker ends.

        It gives up its partitions in ``leave``.
        """
        self._sessions.begin_no_other()
        self._upkeep.stop()
        self._object_upkeep.stop()
        if self._access is not None:
            self._access.stop()
        if self._packer is not None:
            self._packer.rounds.stop()
        if self._service is not None:
            self._service.stop()

    def _fence(self, index: ClusterIndex) -> None:
        """End the newest registered session, even if it was not started here."""
        session = self._membership.session
        assert session is not None, "registered"
        index.fence(session)

    async def leave(self) -> None:
        """End the session, so that others take over at once instead of after its lease.

        All appended records are durable or lost by now.
        """
        if self._is_closed:
            return
        self.close()
        leaving = self._errands.run(self._fence)
        try:
            async with self._around.host.clock.timeout(LEAVE_TIMEOUT_S):
                await leaving
        except TimeoutError:
            logger.warning("session not closed, the store is silent for_s=%d", LEAVE_TIMEOUT_S)

    def close(self) -> None:
        """Stop all parts; calls that wait for the store end when it is closed."""
        self._is_closed = True
        self.stop()
        self._around.watch.stop()
        if self._objects_watch is not None:
            self._objects_watch.stop()
        self._sessions.close()
        if self._cold is not None:
            self._cold.close()

    def abandon(self) -> None:
        """Drop the threads, whose connections to the store are closed."""
        self.close()
        self._membership.close()
        self._errands.close()
