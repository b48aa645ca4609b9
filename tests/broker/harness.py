"""A broker without sockets: real catalogue, logs and MetaStore on a simulated disk.

``ask`` takes a request through the codec in both directions, so that each response of a handler
is encodable in the version of the request.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from barnabas.broker import handlers
from barnabas.broker.api.direct_call import response_to
from barnabas.broker.api.dispatch import ROUTES
from barnabas.broker.api.refusals import refusal
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.view import ClusterView, OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.metadata.access_rules import AccessRules
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.metastore_calls import MetaStoreCalls
from barnabas.broker.metadata.quota_rules import QuotaRules
from barnabas.broker.metadata.user_credentials import UserCredentials
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.security.acls.access import OPEN, Generation
from barnabas.broker.security.acls.authorizer import Authorizer
from barnabas.broker.security.quotas.quotas import Quotas
from barnabas.broker.security.sasl.scram_users import ScramUsers
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.errors import KafkaError
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import StoreCallbacks, StoreSettings
from tests.storage.engines import InlineEngine

LISTENER = "PLAINTEXT"
"""The listener of the client's connection."""

assert handlers, "importing the package registers the routes"

NODE_ID = 1
CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
ROOT = "/data"


class LoopEngine(InlineEngine):
    """Commits in the loop's own thread, at the end of its turn; or at ``step`` without a loop."""

    def schedule(self, callback) -> None:
        try:
            asyncio.get_running_loop().call_soon(callback)
        except RuntimeError:
            super().schedule(callback)


class Administration:
    """One run of a broker over a disk and a MetaStore that may outlive it."""

    def __init__(
        self,
        file_system: SimulatedFileSystem | None = None,
        metastore: Any = None,
        config: BrokerConfig | None = None,
        engine: InlineEngine | None = None,
        view: ClusterView | None = None,
        authorizer: Authorizer | None = None,
        calls: MetaStoreCalls | None = None,
    ) -> None:
        self.file_system = file_system or SimulatedFileSystem()
        self.metastore = metastore or SqliteMetaStore.open(
            MEMORY, node_id=NODE_ID, new_cluster_id=CLUSTER_ID
        )
        self.engine = engine or LoopEngine()
        self.fatal: list[BaseException] = []
        self.logs = LogStore(
            self.file_system,
            ROOT,
            engine=self.engine,
            now_ms=lambda: 1_700_000_000_000,
            settings=StoreSettings(journal_file_bytes=1 << 16, synced_alone_max=0),
            callbacks=StoreCallbacks(on_fatal=self.fatal.append),
        )
        self.removed_logs: list[Any] = []
        self.tasks: list[asyncio.Task[Any]] = []
        lock_directory(self.logs)
        config = config or BrokerConfig(node_id=NODE_ID)
        view = view or OneBroker(NODE_ID, config.broker_rack, lambda: self.logs.leader_epoch)
        self.catalogue = Catalogue(
            self.metastore,
            self.logs,
            view,
            config,
            calls=calls,
            on_log_removed=self.removed_logs.append,
            on_fatal=self.fatal.append,
        )
        image = self.metastore.load()
        specs = self.catalogue.load(image)
        self.report = open_store(
            self.logs,
            specs,
            leader_epoch=self.metastore.begin_boot(),
            removable=self.catalogue.deleted_directories,
            deleted_ids=self.catalogue.deleted_partition_ids,
        )
        self.metastore.raise_boot_epoch(self.logs.leader_epoch)
        self.catalogue.open()
        self.logs.checkpoint(self.catalogue.forget_deleted)
        self.step()
        self.users = ScramUsers()
        self.ended_sessions: list[Any] = []
        self.users.load(image.scram_credentials)
        self.quotas = Quotas(SystemClock(), Generation())
        self.quotas.load(image.quotas)
        if authorizer is not None:
            authorizer.load(image.acls)
        self.authorizer = authorizer
        changes = self.catalogue.changes
        self.access_rules = AccessRules(authorizer, self.metastore, changes)
        self.quota_rules = QuotaRules(self.quotas, self.metastore, changes)
        self.user_credentials = UserCredentials(
            self.users, self.metastore, changes, self.ended_sessions.append
        )
        self.routes = ROUTES.copy()
        self.routes.bind(
            defaultdict(
                lambda: None,
                brokers=Brokers(view),
                catalogue=self.catalogue,
                configs=self.catalogue.configs,
                producer_ids=self.catalogue.producer_ids,
                host=SimpleNamespace(
                    config=self.catalogue.configs.broker_config, spawn=self._spawn
                ),
                identity=self.metastore.identity,
                logs=self.logs,
                routes=self.routes,
                quota_rules=self.quota_rules,
                access_rules=self.access_rules,
                sockets=SimpleNamespace(
                    close_sessions=lambda ended, _asker: self.ended_sessions.append(ended)
                ),
                user_credentials=self.user_credentials,
            )
        )

    def _spawn(self, coroutine, name) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine, name=name))

    async def ask(self, api, request, version: int):
        """Send ``request`` through codec and handler, return the response as a client reads it."""
        route = self.routes.get(api.key)
        assert route is not None
        assert route.min_version <= version <= route.max_version
        context = SimpleNamespace(
            api_key=api.key,
            api_version=version,
            client_id="test",
            connection=SimpleNamespace(listener_name=LISTENER),
            access=OPEN,
            quota=None,
            endpoint=("dialled.example", 4711),
        )
        wire = b"".join(api.encode_request(request, version))
        received = api.decode_request(memoryview(wire), 0, version)
        try:
            response = await response_to(route.handler(context, received), route)
        except KafkaError as error:
            response = refusal(route, received, error)
        answer = b"".join(bytes(chunk) for chunk in api.encode_response(response, version))
        return api.decode_response(memoryview(answer), 0, version)

    def step(self) -> None:
        """Commit what was queued; raise what that met on the simulated disk."""
        self.engine.step()
        if self.fatal:
            raise self.fatal[0]

    def stop(self) -> None:
        """End in order: a clean checkpoint, then everything closed."""
        self.logs.checkpoint(clean=True)
        self.engine.step()
        self.logs.close()
