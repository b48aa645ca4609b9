"""A broker on a simulated disk, from its pipelines down; its threads are moved step by step."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import ROUTES
from barnabas.broker.cluster.peers.sessions import PeerSessions
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.view import OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import iterate_batches
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import StoreCallbacks, StoreSettings
from tests.broker.harness import CLUSTER_ID, NODE_ID, ROOT
from tests.crash.pipeline_connection import PipelineConnection
from tests.crash.scripted_engine import ScriptedEngine
from tests.history.logs import Place, TransactionHistory

assert handlers, "importing the package registers the routes"

TOPIC = "data"
PARTITIONS = {TOPIC: 3, TRANSACTION_STATE: 2, GROUP_OFFSETS: 2}
CONFIG = BrokerConfig(
    node_id=NODE_ID,
    offsets_topic_num_partitions=PARTITIONS[GROUP_OFFSETS],
    transaction_state_log_num_partitions=PARTITIONS[TRANSACTION_STATE],
    transaction_two_phase_commit_enable=True,
)


def new_metastore() -> SqliteMetaStore:
    return SqliteMetaStore.open(MEMORY, node_id=NODE_ID, new_cluster_id=CLUSTER_ID)


def copy_of(metastore: SqliteMetaStore) -> SqliteMetaStore:
    """Return the MetaStore of the next start: every commit of the MetaStore is durable."""
    copy = new_metastore()
    copy._connection.deserialize(metastore._connection.serialize())
    return copy


class DelayedMarkers(MarkerWriter):
    """Markers that no log takes for as long as a test likes: transactions stay decided."""

    is_delayed = False

    def write(self, topic: str, index: int, marker: TransactionMarker) -> ErrorCode:
        if self.is_delayed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return super().write(topic, index, marker)


class Life:
    """One run of the broker: first its logs, then (``open``) its coordinators."""

    def __init__(self, disk: SimulatedFileSystem, metastore: SqliteMetaStore, now_ms: int) -> None:
        self.disk = disk
        self.metastore = metastore
        self.clock = ManualClock(now_ms)
        self.engine = ScriptedEngine(after=self.flush_answers)
        self._ready: list[PipelineConnection] = []
        self.failures: list[BaseException] = []
        self.logs = LogStore(
            disk,
            ROOT,
            engine=self.engine,
            now_ms=self.clock.now_ms,
            settings=StoreSettings(journal_file_bytes=1 << 16, checkpoint_turn_effort=1),
            callbacks=StoreCallbacks(on_fatal=self.failures.append),
        )
        lock_directory(self.logs)
        self.view = OneBroker(metastore.identity.node_id, None, lambda: self.logs.leader_epoch)
        self.brokers = Brokers(self.view)
        self.catalogue = Catalogue(
            metastore, self.logs, self.view, CONFIG, on_fatal=self.failures.append
        )
        specs = self.catalogue.load(metastore.load())
        open_store(self.logs, specs, leader_epoch=metastore.begin_boot())
        metastore.raise_boot_epoch(self.logs.leader_epoch)
        self.catalogue.open()
        self.logs.checkpoint()
        self.engine.settle()

    def open(self) -> None:
        """Load the coordinators and let them finish what was decided."""
        host: Any = SimpleNamespace(
            catalogue=self.catalogue,
            clock=self.clock,
            config=CONFIG,
            fatal=self.failures.append,
            flush_answers=self.flush_answers,
            logs=self.logs,
            loop=SimpleNamespace(
                call_soon=lambda call, *given: call(*given),
                create_future=lambda: asyncio.get_running_loop().create_future(),
            ),
            spawn=self._spawn,
        )
        self.routes = ROUTES.copy()
        self.groups = Groups(host, self.catalogue)
        self.markers = DelayedMarkers(self.catalogue, self.groups, None)
        self.transactions = Transactions(
            host, self.catalogue, self.logs, self.markers, self.view, None
        )
        self.remote_coordinators = None
        self.groups.log.open()
        self.transactions.log.open()
        self.routes.bind(
            defaultdict(
                lambda: None,
                brokers=self.brokers,
                catalogue=self.catalogue,
                configs=self.catalogue.configs,
                groups=self.groups,
                host=host,
                logs=self.logs,
                markers=self.markers,
                peer_sessions=PeerSessions(),
                producer_ids=self.catalogue.producer_ids,
                routes=self.routes,
                transactions=self.transactions,
            )
        )

    # ----------------------------------------------------------------- its connections' use of it

    def connect(self, client_id: str) -> PipelineConnection:
        return PipelineConnection(self, client_id)

    def queue_delivery(self, connection: PipelineConnection) -> None:
        self._ready.append(connection)

    def flush_answers(self) -> None:
        """Deliver all ready responses, as at the end of a turn of the loop."""
        ready, self._ready = self._ready, []
        for connection in ready:
            connection.deliver()

    def _spawn(self, coroutine: Any, name: str) -> None:
        coroutine.close()
        raise AssertionError(f"{name} took too long for a test")

    # ----------------------------------------------------------------------------- what tests do

    def settle(self) -> None:
        self.engine.settle()
        if self.failures:
            raise self.failures[0]

    def drain(self, timeout_ms: int) -> None:
        """Run until every transaction has ended without any client (C6)."""
        self.settle()
        self.clock.advance(milliseconds=2 * timeout_ms)
        self.settle()

    def end(self) -> None:
        """Release the resources that end with a process."""
        self._ready = []
        if hasattr(self, "transactions"):
            self.groups.close()
            self.transactions.close()
            if self.remote_coordinators is not None:
                self.remote_coordinators.close()

    def log(self, topic: str, index: int) -> PartitionLog:
        partition = self.catalogue.partition(topic, index)
        assert partition is not None
        return partition.log

    def history(self) -> TransactionHistory:
        """Return the history in the logs, as far as they are durable."""
        return TransactionHistory(self.batches())

    def batches(self) -> dict[Place, list[bytes]]:
        """Return the batches of the logs of this broker, as far as they are durable."""
        return {
            (name, partition.index): batches_of(log)
            for name, topic in self.catalogue.topics.items()
            for partition, log in topic.partitions_here()
        }


def batches_of(log: PartitionLog) -> list[bytes]:
    """Every visible batch of a log, by the way a fetch goes."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while (planned := log.plan_read(offset, 1 << 20)) is not None:
        if isinstance(planned, MemorySlice):
            data = b"".join(bytes(chunk) for chunk in planned.chunks)
        else:
            size = planned.end_position - planned.position
            data = planned.file.pread(size, planned.position)
        before = offset
        for position, header in iterate_batches(memoryview(data)):
            if header.base_offset >= offset:
                found.append(bytes(data[position : position + header.size]))
                offset = header.next_offset
        assert offset > before
    return found
