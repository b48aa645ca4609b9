"""The broker as a whole: what is made of what, in which order it starts, and how it ends.

Start: addresses are reserved, the data directory is locked, metadata is opened, logs are recovered,
topics are shown, and only then do sockets listen: no client ever meets a broker that does not know
yet what it holds. Nor one of a cluster that has not seen the others: told of that one alone,
librdkafka (2.16) gives up what it knew of the rest, and may wait for that ever after.

Two ends. ``stop`` is the orderly one: answers in flight leave, a checkpoint makes the next start
read no journal. ``fatal`` is the other: when something durable can no longer be promised (an fsync
failed, memory and disk disagree) nothing more is answered and the process ends at once (D9).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

import barnabas.broker.handlers  # noqa: F401  registers every handler
from barnabas.broker.api.dispatch import ROUTES, Routes
from barnabas.broker.api.fetch_sessions import fetch_sessions_of
from barnabas.broker.api.inspector import Inspector
from barnabas.broker.api.waiting import FetchWaits
from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
from barnabas.broker.cluster.coordinating.moving_shards import MovingShards
from barnabas.broker.cluster.coordinating.remote_coordinators import RemoteCoordinators
from barnabas.broker.cluster.leading.leadership import DurableLogs, Leadership
from barnabas.broker.cluster.membership.base import ClusterBase
from barnabas.broker.cluster.moves import Moves
from barnabas.broker.cluster.peers.connection import Transport
from barnabas.broker.cluster.peers.interface import Peers
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.serving.placement import Placement
from barnabas.broker.cluster.start.cluster_directory import ClusterHome
from barnabas.broker.cluster.start.exit_reasons import words_of_end
from barnabas.broker.cluster.start.join import Newcomer
from barnabas.broker.cluster.start.member import ClusterMember
from barnabas.broker.cluster.start.postgresql import base_of
from barnabas.broker.cluster.view import ClusterView, OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.handlers.transactions.producers import limit_init_producer_id
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.broker.http.server import HttpServer
from barnabas.broker.metadata.access_rules import AccessRules
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.metastore_calls import CallsAside, MetaStoreCalls
from barnabas.broker.metadata.quota_rules import QuotaRules
from barnabas.broker.metadata.user_credentials import UserCredentials
from barnabas.broker.metrics.collectors import (
    register_coordinators,
    register_maintenance,
    register_serving,
    register_storage,
)
from barnabas.broker.metrics.families import Metrics
from barnabas.broker.metrics.history import History
from barnabas.broker.metrics.kafka import TopicTraffic, Windows
from barnabas.broker.metrics.loop import LoopMonitor
from barnabas.broker.network.socket_server import Listener, SocketServer
from barnabas.broker.opening.aside import open_aside
from barnabas.broker.opening.configured_topics import create_configured_topics
from barnabas.broker.opening.coordinators import Coordinators
from barnabas.broker.opening.feature_levels import with_levels
from barnabas.broker.opening.http_port import open_http
from barnabas.broker.opening.local_directory import Home, Opened, OwnDirectory, Progress
from barnabas.broker.opening.services import services_of
from barnabas.broker.opening.store import Checkpoints, new_store
from barnabas.broker.runtime.audit_file import AuditOutput
from barnabas.broker.runtime.clock import Clock, SystemClock
from barnabas.broker.runtime.disk_readers import DiskReaders
from barnabas.broker.runtime.engine import LoopEngine
from barnabas.broker.runtime.events import EventRing
from barnabas.broker.runtime.first import wait_for_first
from barnabas.broker.runtime.pattern_thread import PatternThread
from barnabas.broker.runtime.stage import Stage
from barnabas.broker.runtime.tasks import Tasks
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.acls.authorizer import Authorizer
from barnabas.broker.security.audit import AuditLog
from barnabas.broker.security.listeners.certificate_reload import CertificateReload
from barnabas.broker.security.listeners.listeners import listeners_of
from barnabas.broker.security.listeners.setup import authorizer_of, quotas_of
from barnabas.broker.security.sasl.logins import Logins
from barnabas.broker.upkeep.cleaning import LogCleaner
from barnabas.broker.upkeep.housekeeping import Housekeeping
from barnabas.broker.upkeep.scrubbing import LogScrubber
from barnabas.broker.version import __version__
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.metastore.interface import MetadataImage, MetaStore
from barnabas.storage.runtime.clock import boot_seconds
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import StoreCallbacks

logger = logging.getLogger("barnabas.broker.server")

DRAINING_SHARE: Final = 0.75
"""Of the time for an orderly end, what others have to take over; the rest is for answers."""


class BrokerServer:
    """One broker: build it, ``start`` it, ``stop`` it. All on one event loop.

    ``file_system`` and ``metastore`` are for tests that keep data in memory; the caller
    closes the metastore that it passes. ``view``: of the cluster; None: this broker is alone.
    ``peers`` makes what it asks the other brokers with, on the loop, before storage is opened.
    ``durable_logs``: where logs are read that come from other brokers; None: none ever come.
    ``base``: the store of the cluster that this broker is to join, in place of the one that
    ``barnabas.metadata`` names; the server closes it. ``over`` and ``lease_clock``: see
    ``Newcomer``.
    """

    leadership: Leadership | None = None
    """Which partitions are led here now; None: all whose log is here, for good."""
    peers: Peers | None = None
    """The other brokers; None: there are none. So it is with the next four."""
    remote_coordinators: RemoteCoordinators | None = None
    """Those of the transactions that come here, wherever they are."""
    leadership_check: LeadershipCheck | None = None
    """Whether a partition is led here still."""
    moves: Moves | None = None
    """Who is to lead partitions of the cluster."""
    _newcomer: Newcomer | None = None
    """This broker where it is to join a cluster."""
    _member: ClusterMember | None = None
    """This broker as one of the cluster, once it has joined."""
    metastore_calls: MetaStoreCalls | None = None
    """How the MetaStore is called once the broker has started; None: on the loop. Set it before."""
    asks_for_login = False
    """Whether the console asks who somebody is."""
    changes_refused: str | None = None
    """Why nothing can be changed over HTTP; None where it can."""
    login_closed_reason: str | None = None
    """The reason why every login at the console fails, or ``None`` if a login can succeed."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        file_system: FileSystem | None = None,
        metastore: MetaStore | None = None,
        view: ClusterView | None = None,
        peers: Callable[[BrokerServer], Peers] | None = None,
        durable_logs: DurableLogs | None = None,
        base: ClusterBase | None = None,
        over: Callable[[Transport], Transport] = lambda transport: transport,
        lease_clock: Callable[[], float] = boot_seconds,
        routes: Routes | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.file_system: FileSystem = file_system or LocalFileSystem()
        self.routes = (routes or ROUTES).copy()
        limit_init_producer_id(self.routes, config)
        self.node_id = config.node_id
        self.view: ClusterView = view or OneBroker(
            config.node_id, config.broker_rack, lambda: self.logs.leader_epoch
        )
        self._new_peers = peers
        self._durable_logs = durable_logs
        self._base = base
        self._over = over
        self._lease_clock = lease_clock
        self.cluster_id = ""
        self.loop: asyncio.AbstractEventLoop
        self.metastore: MetaStore
        self.logs: LogStore
        self.catalogue: Catalogue
        self.fetch_waits: FetchWaits
        self.readers: DiskReaders
        self.pattern_thread: PatternThread
        self.scrubber: LogScrubber
        self.fetch_sessions = fetch_sessions_of(config)
        self.generation = Generation()
        self.authorizer: Authorizer | None = None
        self.logins: Logins
        self.certificates: CertificateReload
        self.quotas = quotas_of(config, self.clock, self.generation)
        self.access_rules: AccessRules
        self.quota_rules: QuotaRules
        self.user_credentials: UserCredentials
        self.groups: Groups
        self.markers: MarkerWriter
        self.transactions: Transactions
        self.sockets: SocketServer
        self.metrics = Metrics()
        self.traffic = TopicTraffic()
        self.windows = Windows(self.routes)
        self.loop_monitor = LoopMonitor(self.windows.turn)
        self.history: History | None = None
        self.events = EventRing(self.clock)
        self.stage = Stage.OPENING
        self.http: HttpServer | None = None
        self.answer_memory = AnswerMemory()
        self.failure: BaseException | None = None
        self._home: Home = OwnDirectory(config, self.file_system, self.clock, metastore)
        self._housekeeping: Housekeeping | None = None
        self._coordinators: Coordinators | None = None
        self.audit: AuditLog
        self._audit_output = AuditOutput()
        self._engine: LoopEngine
        self._ended: asyncio.Event
        self._tasks = Tasks(on_error=self.fatal)

    # ------------------------------------------------------------------------------- lifecycle

    async def start(self) -> None:
        """Recover, then listen.

        Raises ConfigError, ListenError, and what storage raises where a directory cannot be used:
        AlreadyLocked, Corrupt, MetaStoreError, OSError. Nothing stays open then, nor when this is
        cancelled: that loses nothing, the next start begins anew.
        """
        self.loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._engine = LoopEngine(self.loop, self.flush_answers)
        self.fetch_waits = FetchWaits(self.loop, self.clock)
        self.fetch_sessions = fetch_sessions_of(self.config)
        self.readers = DiskReaders(self.loop)
        self.pattern_thread = PatternThread(self.loop)
        self.inspector = Inspector(self.loop, lambda: self.config.queued_max_request_bytes)
        self._make_sockets()
        if self._new_peers is not None:
            self.peers = self._new_peers(self)
        self._make_store()
        try:
            self._make_newcomer()
            self._audit_output.open(self.config.audit_log)
            self.sockets.bind()
            await self._open_http()
            if self._newcomer is not None:
                await self._join(self._newcomer)
            opened = await open_aside(self._engine, self._home, self._open_storage)
            self._register_metrics()
            await self._checkpoints.first(self.catalogue.forget_deleted)
            self._require_no_failure()
            self.stage = Stage.RECOVERED
            await create_configured_topics(self.catalogue, Placement(self._brokers(), self.moves))
            self._open_coordinators()
            self.logs.check_space()  # A full disk refuses the first request already.
            self.cleaner = LogCleaner(self, self.logs, self.file_system)
            is_controlled = self.authorizer is not None
            self.routes.bind(services_of(self, self._brokers()), is_controlled=is_controlled)
            if self._member is not None:
                self._member.guard(self.routes, self.catalogue, self.clock.monotonic)
            self.stage = Stage.PREPARED
            await self.logins.open()
            if self._member is not None:
                await wait_for_first(self._member.wait_for_view(), self.wait_for_failure())
                self._require_no_failure()
            await self.sockets.start()
        except BaseException:
            self.abandon()
            raise
        self.stage = Stage.LISTENING
        if self.config.console_history:
            self.history = History(self)
            self.loop_monitor.on_tick = self.history.sample
        register_maintenance(self)
        self._housekeeping = Housekeeping(self)
        self._housekeeping.start()
        self.events.add("started", f"{__version__}, {opened.words}")
        logger.info("storage opened directory=%s %s", self.logs.root, opened.fields)

    async def stop(self) -> bool:
        """Drain, write down where everything stands, close everything.

        The first is bounded by ``barnabas.shutdown.timeout.ms``, the second by
        ``barnabas.shutdown.checkpoint.timeout.ms``: False when it was not done by then, or the
        broker has failed. Threads may still be at it; end the process, or wait for them with
        ``abandon``. Nothing is lost, the next start finds it in the journal.
        """
        self.stage = Stage.STOPPING
        self.events.add("stopping", "no requests are taken any more")
        await self._stop_serving()
        if self._housekeeping is not None:
            self._housekeeping.stop()
        self._close_coordinators()
        await self._close_peers()
        await self._tasks.cancel()
        await self.catalogue.changes.close()
        is_complete = await self._last_checkpoint()
        if self._member is not None:
            await self._member.leave()
        if is_complete and self.failure is None:
            self.scrubber.save()
        self.loop_monitor.stop()
        if self.http is not None:
            await self.http.stop()
        self.logins.close()
        if self.failure is not None:
            return False
        self._engine.dead = True
        if is_complete:
            self.logs.close()
            self._release()
        return is_complete

    async def _stop_serving(self) -> None:
        """Have others of a cluster take over, then answer what is in flight; all of it in time."""
        timeout_ms = self.config.shutdown_timeout_ms
        if self._member is not None:
            begun_s = self.clock.monotonic()
            await self._member.drain(int(timeout_ms * DRAINING_SHARE))
            timeout_ms -= int((self.clock.monotonic() - begun_s) * 1000)
            self._member.stop()
        await self.sockets.stop(max(timeout_ms, 0))

    async def crash(self) -> None:
        """End as ``kill -9`` would: nothing more is written, sent or answered."""
        self._engine.dead = True
        if self._housekeeping is not None:
            self._housekeeping.stop()
        await self.sockets.abort()
        await self._close_peers()
        await self._tasks.cancel()
        if self.http is not None:
            await self.http.stop()
        self.abandon()

    def abandon(self) -> None:
        """Let go of files and threads without writing anything more."""
        self._engine.dead = True
        self.loop_monitor.stop()
        self.sockets.close_listeners()
        if self.http is not None:
            self.http.close()
        self.logins.close()
        self._close_coordinators()
        if hasattr(self, "catalogue"):
            self.catalogue.changes.abandon()
        if self._newcomer is not None:
            self._home.close()  # Nothing waits for it any more: what is on its way is given up.
        if hasattr(self, "logs"):
            self.logs.abandon()
        self._release()

    def fatal(self, error: BaseException) -> None:
        """Stop serving for good: most often something durable can no longer be promised (D9)."""
        if self._engine.dead:
            return
        self._engine.dead = True
        # First it is said why: who sees on another thread that it has failed finds it said.
        logger.critical("broker stops: %s", words_of_end(error))
        self.failure = error
        self.sockets.cut_off()
        self._ended.set()

    async def coordinators_loaded(self) -> None:
        """Return when everything is read that coordinators go by."""
        await self.groups.log.replayed.wait()
        await self.transactions.log.replayed.wait()

    async def wait_for_failure(self) -> BaseException:
        """Return what ended this broker, if anything ever does."""
        await self._ended.wait()
        assert self.failure is not None
        return self.failure

    # ------------------------------------------------------------------------- handlers use these

    @property
    def recovery(self) -> Progress | None:
        """Return how far opening storage has come, once there is something to say."""
        return self._home.progress

    def cluster_warnings(self) -> dict[str, str]:
        """Return what is not as it should be between this broker and its cluster, by what it is."""
        return {} if self._member is None else self._member.warnings()

    @property
    def listeners(self) -> list[Listener]:
        """Return the listeners; ``bound`` of each is its address once the broker has started."""
        return self.sockets.listeners

    def flush_answers(self) -> None:
        """Answer the fetches that are due and write everything that is ready."""
        self.fetch_waits.answer_due()
        self.sockets.delivery.flush()

    def reload_certificates(self) -> None:
        """Look at the stores of all listeners again, once there is a broker."""
        if self.stage is Stage.LISTENING:
            self.certificates.reload()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a background task until the broker ends; an exception in it is fatal."""
        self._tasks.start(self.loop, coroutine, name)

    # --------------------------------------------------------------------------------- private

    async def _open_http(self) -> None:
        port = await open_http(self)
        if port is not None:
            self.http = port.server
            self.asks_for_login = port.asks_for_login
            self.changes_refused = port.changes_refused
            self.login_closed_reason = port.login_closed_reason
            self.loop_monitor.start()

    def _register_metrics(self) -> None:
        register_storage(self)
        register_coordinators(self)
        if self._member is not None:
            assert self.leadership is not None
            self._member.register_metrics(self.metrics, self.leadership)

    def _brokers(self) -> Brokers:
        return Brokers(self.view, None if self._member is None else self._member.misses)

    def _make_sockets(self) -> None:
        """Make the listeners, and what decides who may connect; nothing is bound yet."""
        self.audit = AuditLog(
            self.clock,
            self._audit_output.write,
            allowed_too=self.config.audit_allowed,
            note=self.events.add_audited,
        )
        self.authorizer = authorizer_of(self.config, self.generation, self.audit)
        self.logins = Logins(self.config, self.clock)
        listeners = listeners_of(self.config, self.authorizer, self.generation, self.logins)
        self.sockets = SocketServer(
            self.config,
            self.clock,
            self.routes,
            listeners,
            self.generation,
            self.quotas,
            self.audit,
        )
        self.certificates = CertificateReload(self.sockets.tls_listeners, self.readers.run_then)
        register_serving(self)

    def _make_store(self) -> None:
        """Make the logs, and what belongs to them; nothing of them is touched yet."""
        callbacks = StoreCallbacks(
            on_advanced=self.fetch_waits.advanced,
            on_visible=self.fetch_waits.answer_due,
            on_backlogged=self.sockets.backlog.set,
            on_forgotten=self._logs_forgotten,
            on_fatal=self.fatal,
        )
        self.logs = new_store(self.config, self.file_system, self._engine, self.clock, callbacks)
        self._checkpoints = Checkpoints(self.logs, self.wait_for_failure, self.clock)
        self.scrubber = LogScrubber(self.config, self.logs, self.loop, self.clock)
        self.logs.callbacks.on_suspected = self.scrubber.suspect
        if self._durable_logs is not None:
            self._let_logs_move(self._durable_logs)

    def _make_newcomer(self) -> None:
        """Make what joins a cluster, if there is one; raises ConfigError."""
        base = self._base
        if base is None and self.config.is_of_cluster:
            base = base_of(self.config)
        if base is not None:
            home = self._home = ClusterHome(self.config, self.file_system, base)
            self._newcomer = Newcomer(self, home, base, self._over, self._lease_clock)
            self.metastore_calls = CallsAside(home.close_metadata)

    async def _join(self, newcomer: Newcomer) -> None:
        """Become one of the brokers of a cluster; nothing is led here yet."""
        newcomer.start()
        joining = partial(newcomer.join, self.listeners)
        member = self._member = await open_aside(self._engine, self._home, joining)
        self.node_id = member.node_id
        self.config = replace(self.config, node_id=self.node_id)
        self.view = member.view
        self.peers = member.new_peers()
        self._let_logs_move(member.durable_logs)
        self.logs.callbacks.on_forgotten = member.forgotten
        self.moves, self.leadership_check = member.moves, member.leadership_check

    def _open_storage(self) -> Opened:
        """On a thread: open all that is durable, and show what is in it."""
        self.metastore = self._home.open_metadata(self.logs)
        self.cluster_id = self.metastore.identity.cluster_id
        image = self.metastore.load()
        if self._newcomer is not None:
            image = with_levels(self.metastore, image, self.config)
        self._load_security(image)
        self.catalogue = self._new_catalogue()
        specs = self.catalogue.load(image)
        opened = self._home.open_logs(self.logs, self.catalogue, specs)
        self.scrubber.open(clean=opened.clean)
        self.catalogue.open()
        changes = self.catalogue.changes
        self.access_rules = AccessRules(self.authorizer, self.metastore, changes)
        self.quota_rules = QuotaRules(self.quotas, self.metastore, changes)
        self.user_credentials = UserCredentials(
            self.logins.scram, self.metastore, changes, self.sockets.close_sessions
        )
        self._make_coordinators()
        return opened

    def _load_security(self, image: MetadataImage) -> None:
        if self.authorizer is not None:
            self.authorizer.load(image.acls)
        self.logins.load(image, self.metastore)
        self.quotas.load(image.quotas)

    def _new_catalogue(self) -> Catalogue:
        return Catalogue(
            self.metastore,
            self.logs,
            self.view,
            self.config,
            keeper=self.leadership,
            may_serve=None if self._member is None else self._member.may_serve,
            calls=self.metastore_calls,
            clock=self.clock,
            on_log_removed=self._log_removed,
            on_topic_deleted=lambda topic: self.groups.forget_topic(topic.name),
            on_config_changed=self._use_config,
            on_event=lambda kind, resource, words: self.events.add(kind, words, resource=resource),
            check_config=lambda config, is_same: self.certificates.check(config, is_same=is_same),
            on_fatal=self.fatal,
        )

    def _make_coordinators(self) -> None:
        """Make the coordinators of this broker, and what asks those of others if there are any."""
        self._coordinators = made = Coordinators(self)
        self.groups, self.markers, self.transactions = made.groups, made.markers, made.transactions
        self.remote_coordinators = made.remote

    def _let_logs_move(self, durable_logs: DurableLogs) -> None:
        """Have logs come and go with what this broker leads."""
        self.leadership = Leadership(self, self.logs, self.view, durable_logs, self._log_removed)
        self.logs.callbacks.on_forgotten = self.leadership.forgotten
        self.logs.callbacks.on_session_lost = self.leadership.session_lost
        self.scrubber.on_damaged_copy = self.leadership.read_anew

    def _require_no_failure(self) -> None:
        """Raise what has ended this broker."""
        if self.failure is not None:
            raise self.failure

    async def _last_checkpoint(self) -> bool:
        return await self._checkpoints.last(self.config.shutdown_checkpoint_timeout_ms)

    def _open_coordinators(self) -> None:
        """Coordinate, and in a cluster lead, what the view says."""
        self.groups.log.open()
        self.transactions.log.open()
        if self.leadership is not None:
            self.leadership.open(MovingShards(self.groups, self.transactions))
            if self._member is not None:
                assert self.peers is not None
                self._member.serve(self.peers, self.leadership, self.catalogue.changes)

    def _close_coordinators(self) -> None:
        if self.leadership_check is not None:
            self.leadership_check.close()
        if self.leadership is not None:
            self.leadership.close()
        if self._coordinators is not None:
            self._coordinators.close()

    async def _close_peers(self) -> None:
        if self.peers is not None:
            await self.peers.close()

    def _release(self) -> None:
        self._audit_output.close()
        self._engine.close()
        if self._newcomer is not None:
            self._newcomer.close()
        if self._member is not None:
            self._member.abandon()
        self.readers.close()
        self.pattern_thread.close()
        self.inspector.close()
        self._home.close()

    def _log_removed(self, log: PartitionLog) -> None:
        self.fetch_waits.wake(log)
        self.traffic.log_removed(log)
        if self._coordinators is not None:
            self._coordinators.lose_guards([log])

    def _logs_forgotten(self, logs: list[PartitionLog], _moved: frozenset[int]) -> None:
        if self._coordinators is not None:
            self._coordinators.lose_guards(logs)

    def _use_config(self, config: BrokerConfig) -> None:
        self.certificates.use(config)
        self.config = config
        self.sockets.configure(config)
        if self._member is not None:
            self._member.plan_by(config, self.catalogue.configs.broker_overrides)
        if self._coordinators is not None:
            self._coordinators.configure(config)
