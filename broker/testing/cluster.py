"""Cluster of real brokers for tests: real sockets, real logs, one store in memory.

Each broker has its own thread and event loop, so that one can be paused while the others continue::

    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=6)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        cluster.kill(cluster.leader("orders", 0))

or in the caller's event loop; methods that return an Outcome are then awaited::

    async with Cluster(brokers=3) as cluster:
        await cluster.create_topic("orders")

Brokers are numbered from 0; the number is the node ID. All brokers share one store with the durable
data and the leaders. The store never fails, but a broker can be cut off from it
(``cut_from_store``). It ends with the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Self, TypeVar

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.testing.cluster_broker import ClusterBroker
from barnabas.broker.testing.embedded import Outcome, ReceivedRecord
from barnabas.broker.testing.links import Links
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.runtime.clock import monotonic, sleep

if TYPE_CHECKING:
    from barnabas.storage.replicated.cluster_index import ClusterSnapshot

Result = TypeVar("Result")

PATIENCE_S: Final = 60
"""Timeout, in seconds, of every wait."""
_PAUSE_S: Final = 0.003


class Cluster:
    """Brokers for tests; see the head of this module.

    ``config`` holds settings by Kafka's keys, of all brokers. ``commit_ms`` is the maximum time of
    a commit to the store; each one takes a random part of it. ``seed`` makes random times, and the
    data that crashes lose, repeatable; by default it is drawn, and is ``cluster.seed``. Raises
    ConfigError for a key or a value that cannot be used.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, str] | None = None,
        commit_ms: float = 0,
        seed: int | None = None,
    ) -> None:
        self._store = MemoryStore(new_cluster_id())
        self._base = self._store.base()
        self._links = Links()
        self._config = config
        self._commit_ms = commit_ms
        self.seed = seed
        self.brokers: list[ClusterBroker] = []
        for _ in range(brokers):
            self._append(config)
        self.clock = ClusterClock(self)
        self._is_awaited = False

    # ------------------------------------------------------------------------------- lifecycle

    def __enter__(self) -> Self:
        try:
            for broker in self.brokers:
                broker.__enter__()
            self._until(lambda: len(self._node_ids()) == len(self.brokers), "all are there")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    async def __aenter__(self) -> Self:
        self._is_awaited = True
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._end)

    def kill(self, number: int, *, expire: bool = True) -> Outcome[None]:
        """End a broker as ``kill -9`` does: it writes and sends nothing more.

        With ``expire`` its lease ends at once, otherwise when its time is up.
        """
        return self._do(lambda: self._kill(number, expire=expire))

    def stop(self, number: int) -> Outcome[None]:
        """Stop a broker cleanly: its partitions move to the others."""
        return self._do(self.brokers[number].stop_here)

    def restart(self, number: int) -> Outcome[None]:
        """Start a broker again on the same port; stops it first unless killed or stopped."""
        return self._do(self.brokers[number].restart_here)

    def add(self, config: Mapping[str, str] | None = None) -> Outcome[int]:
        """Start another broker that joins the cluster; the result is its number.

        ``config`` holds its settings, or ``None`` for those of the first brokers.
        """

        def add() -> int:
            broker = self._append(self._config if config is None else config)
            broker.__enter__()
            self._until(lambda: broker.node_id in self._node_ids(), "the new broker has joined")
            return broker.node_id

        return self._do(add)

    # ---------------------------------------------------------------------------------- faults

    def pause(self, number: int, *, expire: bool = False) -> Outcome[None]:
        """Pause a broker, as SIGSTOP does: it keeps its connections and sends no responses.

        ``expire``: whether its lease ends at once; otherwise it ends by itself. The broker does not
        notice.
        """

        def pause() -> None:
            self.brokers[number].pause()
            if expire:
                self._expire(number)

        return self._do(pause)

    def resume(self, number: int) -> Outcome[None]:
        """Continue a paused broker."""
        return self._do(self.brokers[number].resume)

    def expire(self, number: int) -> Outcome[None]:
        """End a broker's lease now; if the broker is alive, it continues in another session."""
        return self._do(lambda: self._expire(number))

    def cut(self, one: int, other: int) -> Outcome[None]:
        """Cut the link between two brokers, in both directions; clients and the store reach
        both.
        """

        def cut() -> None:
            self._links.cut(one, other)
            for number in (one, other):
                self.brokers[number].end_cut_links()

        return self._do(cut)

    def mend(self, one: int, other: int) -> Outcome[None]:
        """Restore the link between two brokers."""
        return self._do(lambda: self._links.mend(one, other))

    def cut_from_store(self, number: int, *, expire: bool = False) -> Outcome[None]:
        """Cut a broker off from the store; ``expire``: whether its lease ends during that."""

        def cut() -> None:
            self.brokers[number].cut_from_store()
            if expire:
                self._expire(number)

        return self._do(cut)

    def mend_to_store(self, number: int) -> Outcome[None]:
        """Connect a broker to the store again."""
        return self._do(self.brokers[number].mend_to_store)

    def hold_commits(self, number: int) -> Outcome[None]:
        """Delay each commit of a broker to the store; its lease and its moves continue."""
        return self._do(self.brokers[number].hold_commits)

    def release_commits(self, number: int) -> Outcome[None]:
        """Send the delayed commits of a broker to the store."""
        return self._do(self.brokers[number].release_commits)

    # ------------------------------------------------------------------------------ partitions

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> Outcome[str]:
        """Create a topic, and wait until all of its partitions are served; the result is its name.
        Raises KafkaError.
        """

        def create() -> str:
            self.brokers[self.running[0]].create_topic(name, partitions, configs)
            for index in range(partitions):
                self._until_served(name, index)
            return name

        return self._do(create)

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the number of a partition's live leader, or None; callable on any thread."""
        return self._leader(self._partition_ids(topic)[partition])

    def move(self, topic: str, partition: int, to: int) -> Outcome[None]:
        """Move a partition to another broker, and wait until that broker serves it."""

        def move() -> None:
            partition_id = self._partition_ids(topic)[partition]
            self.want(topic, partition, to)
            wanted = self.brokers[to]
            condition_text = f"{topic}-{partition} is served by {to}"
            self._until(lambda: self._serving(partition_id) is wanted, condition_text)

        return self._do(move)

    def want(self, topic: str, partition: int, to: int | None) -> None:
        """Request a move without waiting, or withdraw it by None; callable on any thread."""
        self._base.cluster_index().want({self._partition_ids(topic)[partition]: to})

    def wait_until_served(self) -> Outcome[None]:
        """Wait until all partitions of all topics are served, internal ones included."""

        def wait() -> None:
            for topic in self._base.metastore(NO_NODE).load().topics:
                for index in range(len(topic.partitions)):
                    self._until_served(topic.name, index)

        return self._do(wait)

    # ----------------------------------------------------------------------------- information

    @property
    def bootstrap_servers(self) -> str:
        """Return "host:port,host:port" of all brokers for clients, whether or not they run."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def running(self) -> list[int]:
        """Return the numbers of the brokers that run and are not paused."""
        return [broker.node_id for broker in self.brokers if broker.is_running]

    def records(
        self, topic: str, isolation: str = "read_uncommitted"
    ) -> Outcome[list[ReceivedRecord]]:
        """Return all records of a topic, as a consumer with this isolation level reads them."""

        def read() -> list[ReceivedRecord]:
            count = len(self._partition_ids(topic))
            return [each for index in range(count) for each in self._read(topic, index, isolation)]

        return self._do(read)

    # --------------------------------------------------------------------------------- private

    def _append(self, config: Mapping[str, str] | None) -> ClusterBroker:
        broker = ClusterBroker(
            self._store,
            self._links,
            len(self.brokers),
            config=config,
            commit_ms=self._commit_ms,
            seed=self.seed,
        )
        self.seed = broker.seed
        self.brokers.append(broker)
        return broker

    def _node_ids(self) -> set[int]:
        return {each.node_id for each in self._picture().members}

    def _do(self, operation: Callable[[], Result]) -> Outcome[Result]:
        if self._is_awaited:
            return Outcome(asyncio.to_thread(operation))
        return Outcome(None, operation())

    def _until(self, condition: Callable[[], bool], condition_text: str) -> None:
        deadline = monotonic() + PATIENCE_S
        while not condition():
            self._raise_failures()
            if monotonic() > deadline:
                raise TimeoutError(f"not within {PATIENCE_S} s: {condition_text}")
            sleep(_PAUSE_S)

    def _raise_failures(self) -> None:
        for broker in self.brokers:
            if broker.failure is not None:
                raise RuntimeError(f"broker {broker.node_id} has stopped") from broker.failure

    def _kill(self, number: int, *, expire: bool) -> None:
        self.brokers[number].kill()
        if expire:
            self._expire(number)

    def _expire(self, number: int) -> None:
        index = self._base.cluster_index()
        sessions = [each.session for each in index.snapshot(0).members if each.node_id == number]

        def fence() -> None:
            for session in sessions:
                index.fence(session)

        self.brokers[number].expire(fence)

    def _end(self) -> None:
        try:
            for broker in self.brokers:
                broker.end()
        finally:
            self._base.close()
            self._store.close()

    def _picture(self) -> ClusterSnapshot:
        return self._base.cluster_index().snapshot(0)

    def _partition_ids(self, topic: str) -> list[int]:
        for each in self._base.metastore(NO_NODE).load().topics:
            if each.name == topic:
                return [row.partition_id for row in each.partitions]
        raise KeyError(topic)

    def _leader(self, partition_id: int) -> int | None:
        snapshot = self._picture()
        nodes: Mapping[int | None, int] = {each.session: each.node_id for each in snapshot.members}
        for each in snapshot.led:
            if each.partition_id == partition_id:
                return nodes.get(each.session)
        return None

    def _serving(self, partition_id: int) -> ClusterBroker | None:
        """Return the leader of a partition that it serves, or None."""
        number = self._leader(partition_id)
        if number is None or not self.brokers[number].serves(partition_id):
            return None
        return self.brokers[number]

    def _until_served(self, topic: str, index: int) -> ClusterBroker:
        partition_id = self._partition_ids(topic)[index]
        found: list[ClusterBroker] = []

        def is_served() -> bool:
            broker = self._serving(partition_id)
            found[:] = [] if broker is None else [broker]
            return broker is not None

        self._until(is_served, f"{topic}-{index} is served")
        return found[0]

    def _read(self, topic: str, index: int, isolation: str) -> list[ReceivedRecord]:
        """Read a partition at its leader, which can change during the read."""
        while True:
            try:
                return self._until_served(topic, index).read_partition(topic, index, isolation)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    raise


class ClusterClock:
    """Time of all brokers: it runs like real time, and can be moved forward. Leases do not end."""

    def __init__(self, cluster: Cluster) -> None:
        """Move the brokers that run at the call of ``advance``."""
        self._cluster = cluster

    def advance(self, **amount: float) -> None:
        """Skip time, and run the timers that are due by then: ``advance(minutes=15)``."""
        for broker in self._cluster.brokers:
            if broker.is_running:
                broker.clock.advance(**amount)
