"""Broker of a cluster in a test, on a thread of its own; see ``cluster.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.topic_reader import ISOLATION, read_partition
from barnabas.broker.cluster.leading.states import State
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.embedded import Broker, ReceivedRecord
from barnabas.broker.testing.inside import InsideClient
from barnabas.broker.testing.links import LinkedNetwork, Links
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.storage.runtime.threads import new_event

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.connection import Transport
    from barnabas.broker.testing.store.base import MemoryBase, MemoryStore
    from barnabas.storage.replicated.log_index import Flush
    from barnabas.storage.runtime.threads import Event

_CUT: Final = "it was cut from the store"
_EXPIRING: Final = "its lease runs out"
_PAUSED: Final = "it stands still"
CONFIG: Final[Mapping[str, str]] = {
    # Each partition of these is a log on every broker that becomes its leader.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class ClusterBroker(Broker):
    """Broker of a cluster; ``Cluster`` creates and controls it."""

    def __init__(
        self,
        store: MemoryStore,
        links: Links,
        node_id: int,
        *,
        config: Mapping[str, str] | None = None,
        commit_ms: float = 0,
        seed: int | None = None,
    ) -> None:
        settings = {**CONFIG, **(config or {}), "node.id": str(node_id)}
        super().__init__(config=settings, seed=seed)
        self.node_id = node_id
        self._store = store
        self._links = links
        self._commit_s = commit_ms / 1000
        self._commit_times = Random(f"{self.seed} {node_id} commits")  # noqa: S311
        self._base: MemoryBase | None = None
        self._cut_reasons: set[str] = set()
        self._network: LinkedNetwork | None = None
        self._skipped_s = 0.0
        """Seconds by which its lease was shortened."""
        self._resumed = new_event()
        self._may_commit = new_event()
        self._may_commit.set()
        self._is_killed = False
        self._is_paused = False
        self._address = ("", 0)

    # ------------------------------------------------------------------------------- lifecycle

    def stop_here(self) -> None:
        """Stop cleanly."""
        assert self._thread is not None
        self._thread.run(self._stop_server())

    def restart_here(self) -> None:
        """Start again, on the same port; stops first if it runs."""
        assert self._thread is not None
        self._thread.run(self._restart())

    def kill(self) -> None:
        """End as ``kill -9`` does, also while paused."""
        assert self._thread is not None
        assert self._base is not None
        self._is_killed = True
        self._is_paused = False
        self._cut_reasons.discard(_PAUSED)
        self._base.close()  # Its threads write nothing from here on.
        self._resumed.set()
        self._may_commit.set()
        self._thread.run(self._crash())

    def end(self) -> None:
        """End the broker and its thread; raises RuntimeError if the broker has failed by itself."""
        if self._thread is None:
            return
        failure = self.failure
        try:
            if self._server is not None:
                self.kill()
        finally:
            self._end_thread()
        if failure is not None:
            raise RuntimeError(f"broker {self.node_id} had stopped by itself") from failure

    # ---------------------------------------------------------------------------------- faults

    def pause(self) -> None:
        """Block its event loop, and the store calls of its threads."""
        assert self._thread is not None
        assert self.is_running, f"broker {self.node_id} does not run"
        standing = new_event()
        self._resumed.clear()
        self._is_paused = True
        self._thread.call_soon(lambda: self._stand_still(standing))
        standing.wait()
        self._cut(_PAUSED)

    def resume(self) -> None:
        """Continue after ``pause``."""
        self._mend(_PAUSED)
        self._is_paused = False
        self._resumed.set()

    def expire(self, fence: Callable[[], None]) -> None:
        """End its lease; ``fence`` ends its session in the store.

        It stops serving before other brokers can take over, as with real leases.
        """
        self._cut(_EXPIRING)
        self._skipped_s += self._config.lease_ms / 1000
        fence()
        self._mend(_EXPIRING)

    def cut_from_store(self) -> None:
        """Block its calls of the store."""
        self._cut(_CUT)

    def mend_to_store(self) -> None:
        """Unblock its calls of the store."""
        self._mend(_CUT)

    def hold_commits(self) -> None:
        """Delay each commit to the store until ``release_commits``."""
        self._may_commit.clear()

    def release_commits(self) -> None:
        """Send the delayed commits to the store."""
        self._may_commit.set()

    def end_cut_links(self) -> None:
        """Close the open connections over cut links, in the next turn of its event loop."""
        network = self._network
        if self._thread is not None and network is not None:
            self._thread.call_soon(network.end_cut)

    # ----------------------------------------------------------------------------- information

    @property
    def is_running(self) -> bool:
        """Whether it runs and is not paused."""
        return self._server is not None and not self._is_paused

    @property
    def failure(self) -> BaseException | None:
        """Return the error that has stopped it, or None."""
        return None if self._server is None else self._server.failure

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of its first listener, also while it is stopped."""
        return self._address

    def serves(self, partition_id: int) -> bool:
        """Whether it leads a partition under its lease, and has loaded its log."""
        if not self.is_running or "lease" in self.call(self.server.cluster_warnings):
            return False
        leadership = self.server.leadership
        assert leadership is not None
        return self.call(lambda: leadership.state_of(partition_id) is State.SERVED)

    def read_partition(self, topic: str, index: int, isolation: str) -> list[ReceivedRecord]:
        """Return the records of a partition that it leads; raises KafkaError."""
        assert self._thread is not None
        with InsideClient(self._thread.run(self._connect_inside())) as client:
            return [*read_partition(client, topic, index, ISOLATION[isolation])]

    # --------------------------------------------------------------------------------- private

    def _open_metastore(self) -> None:
        """Do not open a MetaStore: the metadata is in the store of the cluster."""

    async def _start(self) -> None:
        self._is_killed = False
        self._base = self._store.base(self._commit, self._commit)
        if self._cut_reasons:
            self._base.cut()
        await super()._start()
        self._address = super().address
        self._links.listens(self.node_id, self._address[1])

    def _new_server(self, *_: object, **__: object) -> BrokerServer:
        return BrokerServer(
            self._config,
            clock=self._manual_clock,
            file_system=self._file_system,
            base=self._base,
            over=self._over_links,
            lease_clock=self._lease_clock,
            routes=self._routes,
        )

    def _lease_clock(self) -> float:
        return monotonic() + self._skipped_s

    def _over_links(self, transport: Transport) -> Transport:
        self._network = LinkedNetwork(self.node_id, self._links, transport)
        return self._network

    async def _stop_server(self) -> None:
        try:
            await super()._stop_server()
        finally:
            if self._base is not None:
                self._base.close()

    def _commit(self, _flush_or_key: Flush | str) -> None:
        """Take the time of a commit, or of a put; runs on the thread that waits for it."""
        self._may_commit.wait()
        sleep(self._commit_times.random() * self._commit_s)

    def _stand_still(self, standing: Event) -> None:
        standing.set()
        self._resumed.wait()
        if self._is_killed:
            self.server.sockets.cut_off()  # Before any response to received requests.

    def _cut(self, reason: str) -> None:
        self._cut_reasons.add(reason)
        if self._base is not None:
            self._base.cut()

    def _mend(self, reason: str) -> None:
        self._cut_reasons.discard(reason)
        if self._base is not None and not self._cut_reasons:
            self._base.mend()
