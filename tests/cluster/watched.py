"""A ``Cluster`` that shows what its brokers lead, and clients that write and read whole numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Cluster
from tests.broker.data_plane import batch
from tests.broker.moves import STAYS, has_loaded
from tests.waiting import wait_until
from tests.workload.routing import Led
from tests.workload.wire_client import WireClient

Result = TypeVar("Result")


class WatchedCluster(Cluster):
    """Cluster whose state a test can read. All methods can be called from any thread."""

    def __init__(self, brokers: int = 3, *, store: Any = None, **options: Any) -> None:
        """``store`` holds the data of the cluster, or ``None`` for a new store."""
        super().__init__(0, **options)
        self._is_store_given = store is not None
        if store is not None:
            self._base.close()
            self._store.close()
            self._store, self._base = store, store.base()
        for _ in range(brokers):
            self._append(self._config)

    def _end(self) -> None:
        given = self._store
        if self._is_store_given:
            self._store = MemoryStore(new_cluster_id())  # Closed in place of the given one.
        super()._end()
        self._store = given

    @property
    def index(self) -> Any:
        """Return the durable records, past all links to the store."""
        return self._store.index

    def on(self, number: int, function: Callable[[Any], Result]) -> Result:
        """Call ``function`` with a broker's server, on the event loop of the broker."""
        broker = self.brokers[number]
        return broker.call(lambda: function(broker.server))

    def session(self, number: int) -> int:
        """Return the session ID of a broker."""
        return self.brokers[number].server._home.session

    def leads(self, number: int, topic: str) -> set[int]:
        """Return the partitions of a topic that a broker serves."""

        def served(server: Any) -> set[int]:
            found = server.catalogue.topic(topic)
            return {
                each.index
                for each in (found.partitions if found is not None else ())
                if server.leadership.state_of(each.partition_id) is State.SERVED
            }

        return self.on(number, served)

    def partition_ids(self, topic: str) -> list[int]:
        """Return the IDs of the partitions of a topic."""
        return self._partition_ids(topic)

    def settle(self, topic: str, *numbers: int) -> None:
        """Wait until brokers serve all partitions of a topic, and know who leads them.

        ``numbers`` are the brokers; without any, all that run.
        """
        brokers = numbers or tuple(self.running)
        count = len(self._partition_ids(topic))

        def is_settled() -> bool:
            led = [index for each in brokers for index in self.leads(each, topic)]
            if sorted(led) != list(range(count)):
                return False
            return all(leader in brokers for each in brokers for leader in self._seen(each, topic))

        wait_until(is_settled, lambda: f"{[(each, self.leads(each, topic)) for each in brokers]}")
        wait_until(lambda: all(has_loaded(self.brokers[each]) for each in brokers), "coordinators")

    def alternate(self, *topics: str) -> None:
        """Make broker 0 lead the partitions with an even index, and broker 1 the others."""
        wanted = {
            partition_id: index % 2
            for topic in topics
            for index, partition_id in enumerate(self._partition_ids(topic))
        }
        wait_until(lambda: {each.partition_id for each in self._picture().led} >= {*wanted})
        self.index.want(wanted)
        for topic in topics:
            count = len(self._partition_ids(topic))
            for number in (0, 1):
                own = set(range(number, count, 2))
                wait_until(
                    lambda number=number, topic=topic, own=own: self.leads(number, topic) == own
                )
            self.settle(topic)

    def deafen(self, number: int) -> None:
        """Keep all changes of the cluster from a broker; its session continues."""
        self.membership(number).poll_once = lambda: sleep(0.01)

    def let_hear(self, number: int) -> None:
        """Undo ``deafen``."""
        del self.membership(number).poll_once

    def membership(self, number: int) -> Any:
        """Return the membership of a broker."""
        return self.brokers[number].server._member._membership

    def assign(self, topic: str, partition: int, to: int) -> None:
        """Make a broker the leader of a partition whose leader does not release it."""
        partition_id = self._partition_ids(topic)[partition]
        (epoch,) = (e.epoch for e in self._picture().led if e.partition_id == partition_id)
        assigned = Assignment(partition_id, self.session(to), epoch)
        assert self.index.assign([assigned]) == {partition_id}

    def settle_all(self) -> None:
        """Wait until all partitions of all topics are served, and all brokers know by which."""
        for topic in self.on(0, lambda server: [*server.catalogue.topics]):
            self.settle(topic)

    def leader_seen_by(self, number: int, topic: str, partition: int) -> int:
        """Return the leader of a partition in the metadata of a broker."""

        return self._seen(number, topic)[partition]

    def _seen(self, number: int, topic: str) -> list[int]:
        """Return the leader of each partition in the metadata of a broker, in a single call."""
        count = len(self._partition_ids(topic))

        def leaders(server: Any) -> list[int]:
            found = [server.catalogue.partition(topic, index) for index in range(count)]
            return [
                NO_NODE if each is None else server.view.leader_of(each.partition_id).node_id
                for each in found
            ]

        return self.on(number, leaders)

    def want_all(self, topic: str, to: int) -> None:
        """Request that one broker leads all partitions of a topic; do not wait."""
        self.index.want(dict.fromkeys(self._partition_ids(topic), to))

    def move_all(self, topic: str, to: int) -> None:
        """Make one broker lead all partitions of a topic."""
        self.want_all(topic, to)
        count = len(self._partition_ids(topic))
        wait_until(lambda: self.leads(to, topic) == set(range(count)))

    def send(self, topic: str, values: Iterable[int]) -> None:
        """Produce whole numbers with one idempotent producer, round-robin to all partitions."""
        count = len(self._partition_ids(topic))
        addresses = [self.brokers[each].address for each in self.running]
        writer = WireClient("writer", addresses, self.seed or 0)
        place = Led(topic, 0)
        producer_id = writer.asked(
            place,
            lambda: writer.routing.ask(place, INIT_PRODUCER_ID, InitProducerIdRequest(None), 4),
            lambda answer: answer.error_code,
        ).producer_id
        sent = [0] * count
        for value in values:
            place = Led(topic, value % count)
            records = batch(
                b"%d" % value,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sent[place.partition],
            )
            writer.produce(place, records)
            sent[place.partition] += 1
        writer.routing.close()

    def values(self, topic: str) -> list[int]:
        """Return all whole numbers in a topic, by partition and offset."""
        return [int(each.value or b"") for each in self.records(topic).result]


def topic_id(number: int) -> bytes:
    """Return the ID of the topic with this number in ``alternating``, from 1."""
    return bytes([number] * 16)


@contextlib.contextmanager
def alternating(topics: Mapping[str, int], **config: str) -> Iterator[WatchedCluster]:
    """Start two brokers that lead the partitions of ``topics`` in turn.

    ``topics`` holds the number of partitions by name, internal topics included.
    """
    counts = {
        key: str(topics.get(name, 1))
        for key, name in (
            ("offsets.topic.num.partitions", GROUP_OFFSETS),
            ("transaction.state.log.num.partitions", TRANSACTION_STATE),
        )
    }
    with WatchedCluster(2, config={**STAYS, **counts, **config}) as cluster:
        metastore = cluster._base.metastore(NO_NODE)
        for number, (name, partitions) in enumerate(topics.items(), start=1):
            metastore.create_topic(name, topic_id(number), partitions, {})
        cluster.alternate(*topics)
        yield cluster


def coordinated_key(broker: int, name: str) -> str:
    """Return an id that the first (1) or the second broker of ``alternating`` coordinates.

    The internal topic has four partitions.
    """
    found = (f"{name}-{number}" for number in range(100))
    return next(each for each in found if java_hash(each) % 4 % 2 == broker - 1)
