"""A broker's part in its cluster: it joins, follows what the others do, loses sessions, leaves.

Rules of this file:

* All of it is on the loop, but for what its threads are asked, which may wait for ever: each has
  ways to the store of its own.
* A session that has ended ends everything that this broker led. The next one is registered when all
  of it is forgotten, and logs are read for it only once the committer flushes for it
  (``StoredLogs.begin``): the view may name it before.
* Nobody takes a partition from a broker that serves it, but by fencing its session. A planned move
  is made by who leads: it lets go, then hands over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.cluster.assigner import Rules
from barnabas.broker.cluster.drain import Drain
from barnabas.broker.cluster.durable_logs import StoredLogs
from barnabas.broker.cluster.handovers import HandOvers
from barnabas.broker.cluster.membership import REFRESH_EVERY_S, Membership
from barnabas.broker.cluster.misses import Misses
from barnabas.broker.cluster.stored_moves import StoredMoves
from barnabas.broker.cluster.upkeep import Upkeep
from barnabas.broker.coordination.leadership_check import LeadershipCheck
from barnabas.broker.metrics.cluster import Standing
from barnabas.broker.metrics.collectors import register_cluster, register_cluster_store
from barnabas.broker.opening.endpoints import endpoints_of
from barnabas.broker.opening.store_watch import StoreWatch
from barnabas.broker.peers.client import PeerClient
from barnabas.broker.peers.connection import Network
from barnabas.broker.peers.settings import limits_of, listener_of_brokers, security_of_brokers

if TYPE_CHECKING:
    from barnabas.broker.cluster.base import ClusterBase
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.metrics.families import Metrics
    from barnabas.broker.network.socket_server import Listener
    from barnabas.broker.opening.cluster_home import ClusterHome
    from barnabas.broker.peers.connection import Transport
    from barnabas.broker.peers.interface import Peers
    from barnabas.broker.runtime.host import Host
    from barnabas.broker.topics.changes import Changes
    from barnabas.broker.topics.leadership import Leadership
    from barnabas.storage.cluster_index import ClusterIndex, HandOver
    from barnabas.storage.log_index import LogIndex
    from barnabas.storage.log_store import LogStore
    from barnabas.storage.metastore.interface import MetaStore
    from barnabas.storage.partition_log import PartitionLog

logger = logging.getLogger("barnabas.broker.cluster")

Result = TypeVar("Result")

CORDONED: Final = "cordoned.log.dirs"
"""The setting of a broker that is to lead nothing."""
LEAVE_TIMEOUT_S: Final = 3.0
"""How long a broker that ends tries to tell the others; else they find out by its lease."""


class ClusterMember:
    """One broker as one of several."""

    def __init__(
        self,
        host: Host,
        home: ClusterHome,
        base: ClusterBase,
        logs: LogStore,
        over: Callable[[Transport], Transport],
        lease_clock: Callable[[], float],
        on_event: Callable[[str, str], object],
    ) -> None:
        """``home`` opens what is on ``base``, and closes it.

        ``over`` returns what connections to other brokers are made with, given what makes them.
        ``lease_clock``: see ``Membership``. ``on_event`` is told what becomes of this broker and
        the others: a kind, and words. Raises ConfigError where brokers could not ask each other.
        """
        self._on_event = on_event
        security_of_brokers(host.config)
        self._over = over
        self._lease_clock = lease_clock
        self._host = host
        self._home = home
        self._base = base
        self._logs = logs
        self.durable_logs = StoredLogs(base)
        self._watch = StoreWatch(host.clock, lambda: base.trouble)
        self._membership: Membership
        self.moves: StoredMoves
        """Who is to lead what, once this broker has joined."""
        self.leadership_check: LeadershipCheck
        """Whether a partition is led here still, once this broker has joined."""
        self._upkeep: Upkeep | None = None
        """Of the store's copy of the logs, once any is led here."""
        self._upkeep_index: LogIndex
        self.misses: Misses
        """Who asks for what is not known here, once this broker has joined."""
        self._images: MetaStore
        self._index: ClusterIndex
        self._peers: PeerClient
        self._leadership: Leadership | None = None
        self._changes: Changes
        self._followed_version = 0
        """Every image up to that of this version of the metadata was looked at."""
        self._is_following = False
        self._hand_overs: HandOvers
        """What others are to lead, once anything is led here."""
        self._nodes: frozenset[int] = frozenset()
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._ended_session: int | None = None
        """One that the store has ended, be it before anything is led."""
        self._drain: Drain | None = None
        """Once this broker gives up what it leads."""
        self._is_stopping = False
        """Whether this broker has begun to end: it leads, and shows, nothing more."""
        self._is_closed = False

    # ----------------------------------------------------------------------------------- the start

    def start(self) -> None:
        """Say from now on when the store is away."""
        self._watch.start()

    def join(self, listeners: Sequence[Listener]) -> int:
        """On a thread: take the directory, and register; return the node id.

        ``listeners`` are bound. Raises what ``ClusterHome.enter`` raises.
        """
        config = self._host.config
        node_id = self._home.enter(self._logs)
        with self._home.until_given_up():
            self._images = self._base.metastore(node_id)
            self._index = self._base.cluster_index()
            self._membership = Membership(
                self._base,
                node_id=node_id,
                rack=config.broker_rack,
                endpoints=endpoints_of(listeners),
                lease_ms=config.lease_ms,
                loop=self._host.loop,
                on_changed=self._changed,
                on_ended=self._session_ended,
                on_fatal=self._host.fatal,
                on_looked=self._looked,
                clock=self._lease_clock,
            )
            self._home.session = self._membership.open()
            self._make_services()
        return node_id

    def _make_services(self) -> None:
        """Make what handlers ask; each has a way to the store of its own."""
        membership = self._membership
        self.misses = Misses(
            membership, lambda: self._is_following, lambda: bool(self._base.trouble)
        )
        self.moves = StoredMoves(self._base.cluster_index(), membership.view, membership.refresh)
        self.leadership_check = LeadershipCheck(
            self._host,
            self._base.log_index(),
            self._logs,
            self._session_now,
            membership.may_serve,
        )
        self._upkeep_index = self._base.log_index()

    def _session_now(self) -> int | None:
        """Return the session in which logs are led here; None: it is over, or has not begun."""
        committer = self._home.committer
        return None if committer is None else committer.session

    def may_serve(self) -> bool:
        """Return whether what is led here may be read."""
        return self._membership.may_serve()

    @property
    def view(self) -> ClusterView:
        """Return what is known of the cluster, once this broker has joined."""
        return self._membership.view

    def new_peers(self, node_id: int) -> Peers:
        """Begin to hear of the others, and return what asks them; raises ConfigError."""
        config = self._host.config
        if self._base.warning is not None:
            logger.warning("%s", self._base.warning)
        listener, limits = listener_of_brokers(config).name, limits_of(config)

        def address_of(node_id: int) -> tuple[str, int] | None:
            found = {each.node_id: each.endpoints for each in self.view.nodes}
            return found.get(node_id, {}).get(listener)

        self._peers = PeerClient(
            node_id=node_id,
            session=self._home.session,
            address_of=address_of,
            transport=self._over(Network(lambda: security_of_brokers(self._host.config), limits)),
            clock=self._host.clock,
            limits=limits,
        )
        self._membership.start()
        return self._peers

    def serve(self, leadership: Leadership, changes: Changes) -> None:
        """Lead, and show, what the store says; ``leadership`` is open, ``changes`` are loaded."""
        self._leadership = leadership
        self._changes = changes
        self._hand_overs = HandOvers(
            self._membership,
            lambda: self._home.session,
            leadership.release,
            self._hand_over,
            self._host.spawn,
        )
        leadership.on_taking_over = self._taking_over
        view = self._membership.view
        words = f"node {view.node_id}, session {self._home.session}"
        self._on_event("cluster_joined", words)
        self._nodes = frozenset(each.node_id for each in view.nodes)
        self.durable_logs.begin(self._home.session)
        self._upkeep = Upkeep(self._host, self._logs, self._upkeep_index, self._session_now)
        self._upkeep.start()
        if self._ended_session == self._home.session:
            self._session_ended(self._home.session)
        self._changed()

    def register_metrics(self, metrics: Metrics, leadership: Leadership) -> None:
        """Register what is counted of this broker as one of several; its logs are open."""
        committer, membership = self._home.committer, self._membership
        assert committer is not None
        standing = Standing(
            self._host.config.lease_ms, membership.lease_age_s, membership.may_serve
        )
        register_cluster(metrics, standing, leadership)
        register_cluster_store(metrics, committer.counts, lambda: self._base.trouble)

    # ------------------------------------------------------------------------------- what it hears

    def _changed(self) -> None:
        """Do what follows from a change of the view, or of the metadata."""
        if self._leadership is None or self._is_stopping:
            return
        nodes = frozenset(each.node_id for each in self.view.nodes)
        for node_id in sorted(nodes - self._nodes - {self.view.node_id}):
            self._on_event("broker_came", f"node {node_id} is in service")
        for node_id in sorted(self._nodes - nodes):
            self._peers.forget(node_id)
            if node_id != self.view.node_id:
                self._on_event("broker_gone", f"node {node_id} is out of service")
        self._nodes = nodes
        self._leadership.look()
        self._hand_overs.look()
        if self._drain is not None:
            self._drain.changed()
        if not self._is_following:
            self._is_following = True
            self._host.spawn(self._follow(), "follow the metadata")

    def _taking_over(self, count: int) -> None:
        self._on_event("taking_over", f"{count} partitions are to be led here")

    def _looked(self) -> None:
        self.misses.wake()

    async def _follow(self) -> None:
        """Show what the others have committed."""
        while self._seen_version < self._membership.metadata_version:
            asked = self._membership.metadata_version
            image = await self._aside("images", self._images.load)
            await self._changes.follow(image)
            self._followed_version = image.version
            if image.version < asked:
                # What was seen of a primary is gone with it; another change will have its number.
                await asyncio.sleep(REFRESH_EVERY_S)
        self._is_following = False
        self.misses.wake()

    @property
    def _seen_version(self) -> int:
        return max(self._followed_version, self._changes.shown_version)

    def plan_by(self, config: BrokerConfig, overrides: Mapping[str, Mapping[str, str]]) -> None:
        """Take note of settings; ``overrides``: those of all brokers, by node id in decimal."""
        if hasattr(self, "_membership"):
            cordoned = {
                int(entity)
                for entity, settings in overrides.items()
                if entity and settings.get(CORDONED, "").strip()
            }
            levels = config.auto_leader_rebalance_enable
            self._membership.plan_by(Rules(levels, frozenset(cordoned)))

    # ------------------------------------------------------------------------------------ sessions

    def _session_ended(self, session: int) -> None:
        """Take note that the store has ended a session of ours, before a flush has found out."""
        self._ended_session = session
        if self._leadership is not None and not self._is_closed:
            committer = self._home.committer
            assert committer is not None
            committer.end_session(session)
            self._logs.journal.add_operation(lambda: None)  # A group, with which it is told.

    def forgotten(self, logs: Sequence[PartitionLog], moved: frozenset[int]) -> None:
        """See ``StoreCallbacks.on_forgotten``; begin anew where the session is lost."""
        committer = self._home.committer
        assert committer is not None
        assert self._leadership is not None
        self._leadership.forgotten(logs, moved)
        if committer.session is None and not self._is_stopping and self._drain is None:
            self.durable_logs.end()
            self._host.spawn(self._begin_session(), "register again")

    async def _begin_session(self) -> None:
        committer, former = self._home.committer, self._home.session
        assert committer is not None
        logger.warning("session lost, all that was led here is forgotten session=%d", former)
        self._on_event("session_lost", f"session {former}: all that was led here is forgotten")
        session = await self._aside("session", self._membership.new_session)
        committer.begin_session(session)
        self._home.session = session
        self.durable_logs.begin(session)
        logger.info("session begun session=%d", session)
        self._on_event("session_begun", f"session {session}")
        self._changed()

    # --------------------------------------------------------------------------------------- moves

    async def _hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        await self._aside("moves", partial(self._index.hand_over, session, partitions))
        self._membership.refresh()

    # ------------------------------------------------------------------------------------- the end

    @property
    def led_count(self) -> int:
        """See ``Leading``."""
        return 0 if self._leadership is None else self._leadership.led_count

    @property
    def has_others(self) -> bool:
        """See ``Leading``."""
        view = self._membership.view
        others = (each.node_id for each in view.nodes if each.node_id != view.node_id)
        return any(map(view.takes_partitions, others))

    async def drain(self, timeout_ms: int) -> None:
        """Have others lead what is led here, as far as they do in time."""
        self._drain = Drain(self, self._take_no_more)
        await self._drain.run(timeout_ms)

    async def _take_no_more(self) -> None:
        await self._aside("moves", partial(self._index.drain, self._home.session))
        self._membership.refresh()

    def stop(self) -> None:
        """Follow nothing any more: this broker ends, and gives up what it leads by ``leave``."""
        self._is_stopping = True
        self._stop_moving()

    def _stop_moving(self) -> None:
        if self._leadership is not None:
            self._hand_overs.stop()

    async def leave(self) -> None:
        """End the session, so that others take over at once instead of after its lease.

        Everything that was placed here is durable, or given up.
        """
        if self._is_closed:
            return
        self.close()
        if hasattr(self, "_index"):
            leaving = self._aside("moves", partial(self._index.fence, self._home.session))
            try:
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await leaving
            except TimeoutError:
                logger.warning("left without a word: the store of the cluster does not answer")

    def close(self) -> None:
        """Hear of nothing any more; what waits for the store ends when ``home`` is closed."""
        self._is_stopping = self._is_closed = True
        self._stop_moving()
        self._watch.stop()
        self.durable_logs.close()
        if self._upkeep is not None:
            self._upkeep.stop()
        if hasattr(self, "moves"):
            self.moves.close()

    def abandon(self) -> None:
        """Let go of the threads, whose ways to the store are closed."""
        self.close()
        if hasattr(self, "_membership"):
            self._membership.close()
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    def _aside(self, purpose: str, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run what waits for the store on the thread of a purpose, one after the other."""
        threads = self._threads.get(purpose)
        if threads is None:
            threads = ThreadPoolExecutor(1, f"barnabas-{purpose}")
            self._threads[purpose] = threads
        return self._host.loop.run_in_executor(threads, work)
