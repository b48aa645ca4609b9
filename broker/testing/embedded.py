"""Real broker for tests: real sockets, real logs, started in milliseconds.

In a thread of its own, for tests with blocking clients::

    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

or in the caller's event loop; methods that return an Outcome are then awaited::

    async with Broker(storage=tmp_path) as broker:
        await broker.create_topic("orders")

Data is in memory unless ``storage`` names a directory. A test can cut the power (``crash``), start
again on the same data and port (``restart``), catch requests (``intercept``), move time
(``clock.advance``) and require logins (``security``).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Generic, Self, TypeVar

from barnabas.broker.api.dispatch import ROUTES, RequestContext, Routes
from barnabas.broker.client.topic_reader import ReceivedRecord, read_topic
from barnabas.broker.cluster.leading.leadership import DurableLogs
from barnabas.broker.cluster.membership.base import ClusterBase
from barnabas.broker.cluster.peers.interface import Peers
from barnabas.broker.cluster.view import ClusterView
from barnabas.broker.config.addresses import address_text
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import properties_text
from barnabas.broker.daemon import loop_factory
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.runtime.first import wait_for_first
from barnabas.broker.runtime.loggers import restore_levels
from barnabas.broker.runtime.simulated import simulated_host
from barnabas.broker.security.acls.acls import AclFilter
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.inside import InsideClient, connect_inside
from barnabas.broker.testing.interception import Fault, Interception
from barnabas.broker.testing.security import (
    NO_SECURITY,
    TOKEN_LIFETIME_S,
    TOKENS,
    AccessRule,
    Security,
    Style,
    authority,
    client_config,
    token_of,
)
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.runtime.threads import new_event, start_thread

__all__ = ["KAFKA_3_9", "Broker", "ErrorCode", "Interception", "Outcome", "ReceivedRecord"]

Result = TypeVar("Result")

MEMORY_DIRECTORY = "/data"

DEFAULTS: Mapping[str, str] = {
    "barnabas.http.listener": "",
    # Groups start at once: a test needs its group soon, and clients that leave wait for a
    # rebalance.
    "group.initial.rebalance.delay.ms": "0",
    # Skipping a quarter of an hour must not disconnect clients, whose own time has not moved.
    "connections.max.idle.ms": "-1",
    # Enough for the largest default batch of clients, and quickly allocated.
    "barnabas.journal.file.bytes": str(4 * 1024 * 1024),
    "barnabas.journal.max.bytes": str(256 * 1024 * 1024),
    "barnabas.checkpoint.journal.bytes": str(64 * 1024 * 1024),
    "barnabas.shutdown.timeout.ms": "1000",
}


KAFKA_3_9: Mapping[str, int] = {
    "Produce": 11,
    "Fetch": 17,
    "ListOffsets": 8,
    "Metadata": 12,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "EndTxn": 4,
    "TxnOffsetCommit": 4,
    "WriteTxnMarkers": 1,
    "ListTransactions": 1,
    "DescribeGroups": 5,
    "DescribeCluster": 1,
    "DescribeLogDirs": 4,
    "DescribeQuorum": 1,
    "UpdateFeatures": 1,
    "ListConfigResources": 0,
    "ConsumerGroupHeartbeat": 0,
    "ConsumerGroupDescribe": 0,
}
"""Highest version in Kafka 3.9 of each API that has higher ones in later releases."""


def older_routes(max_versions: Mapping[str, int]) -> Routes:
    """Return all routes, in no higher versions than these, by API name."""
    return Routes(
        route.copy(
            max_version=min(max_versions.get(route.name, route.max_version), route.max_version)
        )
        for route in ROUTES
    )


class Outcome(Generic[Result]):
    """Result of an operation: available at once under ``with``, awaited in an event loop."""

    __slots__ = ("_pending", "_result")

    def __init__(self, pending: Awaitable[Result] | None, result: Result | None = None) -> None:
        self._pending = pending
        self._result = result

    def __await__(self) -> Generator[Any, Any, Result]:
        """Wait for the operation."""
        if self._pending is not None:
            self._result = yield from self._pending.__await__()
            self._pending = None
        return self._result  # type: ignore[return-value]

    @property
    def result(self) -> Result:
        """Return the result of a finished operation."""
        assert self._pending is None, "await it: the broker runs in this loop"
        return self._result  # type: ignore[return-value]


class BrokerClock:
    """Time of the broker: it runs like real time, and can be moved forward."""

    def __init__(self, broker: Broker, clock: ManualClock) -> None:
        self._broker = broker
        self._clock = clock

    def advance(self, **amount: float) -> None:
        """Skip time, and run the timers that are due by then: ``advance(minutes=15)``."""
        self._broker.call(lambda: self._clock.advance(**amount))

    def jump(self, **amount: float) -> None:
        """Set the broker's wall clock, as an operator does: ``jump(hours=-1)``."""
        self._broker.call(lambda: self._clock.jump(**amount))

    def now_ms(self) -> int:
        """Return the broker's time in milliseconds since the epoch."""
        return self._clock.now_ms()


class Broker:
    """Broker for tests; see the head of this module.

    ``config`` holds settings by Kafka's keys. ``port`` 0 chooses a free one, and ``restart`` keeps
    it. ``security`` sets logins and permissions (barnabas.testing.Security). ``seed`` makes the
    loss of data in a crash repeatable; by default it is drawn, and is ``broker.seed``.
    ``max_versions`` limits the served versions, by API name, to imitate an older broker; KAFKA_3_9
    is one such table. Raises ConfigError for a key or a value that cannot be used.
    """

    def __init__(
        self,
        *,
        storage: str | os.PathLike[str] | None = None,
        port: int = 0,
        config: Mapping[str, str] | None = None,
        security: Security | None = None,
        seed: int | None = None,
        max_versions: Mapping[str, int] | None = None,
    ) -> None:
        self._security = security or NO_SECURITY
        settings = {**DEFAULTS, **self._security.settings(port), **(config or {})}
        directory = MEMORY_DIRECTORY if storage is None else os.fspath(storage)
        settings["log.dirs"] = directory
        self._config = load_config(overrides=[f"{k}={v}" for k, v in settings.items()]).config
        self._file_system: FileSystem = (
            SimulatedFileSystem() if storage is None else LocalFileSystem()
        )
        self._metastore: SqliteMetaStore | None = None
        self._routes = older_routes(max_versions) if max_versions else ROUTES
        self.seed = Random().getrandbits(32) if seed is None else seed  # noqa: S311
        self._random = Random(self.seed)  # noqa: S311
        self._manual_clock = ManualClock(running=True)
        self.clock = BrokerClock(self, self._manual_clock)
        self._server: BrokerServer | None = None
        self._thread: LoopThread | None = None

    # ------------------------------------------------------------------------------- lifecycle

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        try:
            self._thread.run(self._start_or_leave_nothing())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        try:
            self._thread.run(self._stop())
        finally:
            self._end_thread()

    async def __aenter__(self) -> Self:
        await self._start_or_leave_nothing()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def crash(self) -> Outcome[None]:
        """End as in a power failure: connections stay open at the clients, and unsynced data is
        lost.

        With ``storage`` on a real disk it is a ``kill -9``: the kernel keeps all that was written.
        """
        return self._do(self._crash())

    def stop(self) -> Outcome[None]:
        """Stop cleanly; ``restart`` starts again."""
        return self._do(self._stop_server())

    def restart(self) -> Outcome[None]:
        """Start again on the same data and the same port; stops first unless crashed or stopped."""
        return self._do(self._restart())

    # -------------------------------------------------------------------------------- information

    @property
    def server(self) -> BrokerServer:
        """Return the internal server, for tests of the broker itself. Use it on its loop only."""
        assert self._server is not None, "the broker is not running"
        return self._server

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of the first listener."""
        return self.server.listeners[0].bound

    @property
    def bootstrap_servers(self) -> str:
        """Return "host:port" for clients."""
        host, port = self.address
        return address_text(host, port)

    # ------------------------------------------------------------------------------------ security

    def client_config(
        self,
        user: str | None = None,
        style: Style = "kafka-python",
        *,
        mechanism: str | None = None,
        password: str | None = None,
    ) -> dict[str, Any]:
        """Return all that a client needs to connect as a user, in the client's own words.

        Keywords for ``kafka-python`` and ``aiokafka``, settings for ``confluent`` and all other
        users of ``librdkafka``, properties for ``java``, options of Spark's ``kafka`` format for
        ``spark``. ``password`` is
        another one than the user's, ``mechanism`` another one than the broker's first. Raises
        ValueError where the broker knows no such user.
        """
        servers = self.bootstrap_servers
        settings = self._security.client_settings(servers, user, password, mechanism)
        token = None
        if settings.mechanism == TOKENS:
            token = self.token(settings.user)
        return client_config(settings, style, token)

    def client_properties(
        self, user: str | None = None, *, mechanism: str | None = None, password: str | None = None
    ) -> str:
        """Return ``java``'s settings as the text of a file, for ``--command-config``."""
        found = self.client_config(user, "java", mechanism=mechanism, password=password)
        return properties_text(found)

    def token(self, user: str, lifetime_s: float = TOKEN_LIFETIME_S) -> str:
        """Return a token of the issuer that an OAUTHBEARER listener of this broker trusts."""
        return token_of(user, lifetime_s)

    @property
    def authority_pem(self) -> str:
        """Return the certificate of the broker's authority, which other clients need."""
        return authority().certificate_pem

    def add_acls(self, *rules: AccessRule) -> Outcome[None]:
        """Add rules of ``allow`` and ``deny``, from the next request on. Raises KafkaError."""

        async def add() -> None:
            await self.server.access_rules.add([acl for rule in rules for acl in rule.acls])

        return self._do(add())

    def remove_acls(self, *rules: AccessRule) -> Outcome[None]:
        """Remove rules, from the next request on."""
        filters = [AclFilter(*acl) for rule in rules for acl in rule.acls]

        async def remove() -> None:
            await self.server.access_rules.remove(filters, len(filters))

        return self._do(remove())

    # --------------------------------------------------------------------------------- operations

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> Outcome[str]:
        """Create a topic; the result is its name. Raises KafkaError."""

        async def create() -> str:
            await self.server.catalogue.create_topic(name, partitions, dict(configs or {}))
            return name

        return self._do(create())

    def records(
        self, topic: str, isolation: str = "read_uncommitted"
    ) -> Outcome[list[ReceivedRecord]]:
        """Return all records of a topic, as a consumer with this isolation level; needs no
        login.
        """

        def read(end: socket.socket) -> list[ReceivedRecord]:
            with InsideClient(end) as client:
                return read_topic(client, topic, isolation)

        if self._thread is not None:
            return Outcome(None, read(self._thread.run(self._connect_inside())))

        async def read_aside() -> list[ReceivedRecord]:
            return await asyncio.to_thread(read, await self._connect_inside())

        return Outcome(read_aside())

    @contextmanager
    def intercept(
        self,
        api: Api[Any, Any],
        *,
        fail: ErrorCode | None = None,
        answer: Callable[[RequestContext, Any], Any] | None = None,
        drop: bool = False,
        lose_answer: bool = False,
        delay_ms: float = 0,
        times: int | None = None,
    ) -> Iterator[Interception]:
        """Catch requests of ``api`` inside the ``with`` block; see interception.py."""
        original = self.server.routes.get(api.key)
        assert original is not None, f"{api.name} is not served"
        server = self.server
        fault = Fault(fail, answer, drop, lose_answer, delay_ms)
        interception = Interception(original, fault, times, self._manual_clock)
        self.call(lambda: server.sockets.replace_route(interception.route()))
        try:
            yield interception
        finally:
            self.call(lambda: server.sockets.replace_route(original))

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function on the broker's loop and return its result."""
        if self._thread is None:
            return function()

        async def run() -> Result:
            return function()

        return self._thread.run(run())

    # ------------------------------------------------------------------------------------- private

    def _do(self, operation: Coroutine[Any, Any, Result]) -> Outcome[Result]:
        if self._thread is None:
            return Outcome(operation)
        return Outcome(None, self._thread.run(operation))

    async def _connect_inside(self) -> socket.socket:
        return await connect_inside(self.server.sockets)

    async def _start_or_leave_nothing(self) -> None:
        try:
            await self._start()
            if acls := self._security.rules:
                await self.server.access_rules.add(acls)
        except BaseException:
            await self._stop()
            raise

    async def _start(self) -> None:
        self._open_metastore()
        server = self._new_server()
        await server.start()
        self._server = server
        self._keep_ports(server)
        # A start loads part of its data beside the first requests. On a busy machine, that must not
        # affect a test.
        await wait_for_first(server.coordinators_loaded(), server.wait_for_failure())

    def _open_metastore(self) -> None:
        in_memory = isinstance(self._file_system, SimulatedFileSystem)
        if in_memory and self._metastore is None:
            self._metastore = SqliteMetaStore.open(
                MEMORY, node_id=self._config.node_id, new_cluster_id=new_cluster_id()
            )

    def _new_server(
        self,
        view: ClusterView | None = None,
        peers: Callable[[BrokerServer], Peers] | None = None,
        durable_logs: DurableLogs | None = None,
        base: ClusterBase | None = None,
    ) -> BrokerServer:
        return BrokerServer(
            self._config,
            clock=self._manual_clock,
            file_system=self._file_system,
            metastore=self._metastore,
            view=view,
            peers=peers,
            durable_logs=durable_logs,
            base=base,
            routes=self._routes,
        )

    def _keep_ports(self, server: BrokerServer) -> None:
        """Keep the ports for a restart, since clients know them."""
        listeners = tuple(
            f"{listener.name}://{address_text(listener.host, listener.bound[1])}"
            for listener in server.listeners
        )
        self._config = replace(self._config, listeners=listeners)

    async def _stop(self) -> None:
        restore_levels()
        await self._stop_server()
        if self._metastore is not None:
            self._metastore.close()
            self._metastore = None

    async def _stop_server(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        if not await server.stop():
            server.abandon()
        if server.failure is not None:
            raise RuntimeError("the broker had stopped by itself") from server.failure

    async def _crash(self) -> None:
        server, self._server = self.server, None
        file_system = self._file_system
        survivor = file_system.kill() if isinstance(file_system, SimulatedFileSystem) else None
        await server.crash()
        if survivor is not None:
            self._file_system = survivor.crash(self._random)

    async def _restart(self) -> None:
        await self._stop_server()
        await self._start()

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()


class LoopThread:
    """Event loop in a thread of its own, which runs coroutines of other threads."""

    def __init__(self) -> None:
        host = simulated_host()
        self._loop = loop_factory()() if host is None else host.new_loop()
        self._thread = start_thread("barnabas", self._run)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run ``coroutine`` in the loop, and return its result or raise its error."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        is_done = new_event()
        running.add_done_callback(lambda _: is_done.set())
        is_done.wait()
        return running.result()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule ``function`` on the loop, without waiting."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
