"""Whole brokers of one cluster in a process: its store is in memory, all else is as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.topics.leadership import State
from barnabas.storage.memory_base import MemoryBase, MemoryStore
from barnabas.testing import Broker
from tests.broker.several import has_loaded
from tests.waiting import wait_until

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
LONG_MS = "60000"
"""A lease that no test waits for."""


class MemberBroker(Broker):
    """One of them."""

    def __init__(self, store: MemoryStore, *, storage: str | None = None, **config: str) -> None:
        settings = {"barnabas.lease.ms": LONG_MS, "offsets.topic.num.partitions": "4"}
        settings["transaction.state.log.num.partitions"] = "4"
        super().__init__(storage=storage, config=settings | config)
        self._store = store
        self.base: MemoryBase

    def _new_server(self, view=None, peers=None, durable_logs=None, base=None):
        self.base = base or self._store.base()
        return super()._new_server(view, peers, durable_logs, self.base)

    @property
    def node_id(self) -> int:
        return self.server.node_id

    @property
    def session(self) -> int:
        return self.server._home.session

    def state(self, partition_id: int) -> State:
        return self.call(lambda: self.server.leadership.state_of(partition_id))

    def leads(self, topic: str) -> set[int]:
        """Which partitions of a topic this broker serves, by index."""

        def serves() -> set[int]:
            server = self.server
            found = server.catalogue.topic(topic)
            return {
                each.index
                for each in (found.partitions if found is not None else ())
                if server.leadership.state_of(each.partition_id) is State.SERVED
            }

        return self.call(serves)

    def leader_of(self, topic: str, index: int) -> int:
        """Which node leads a partition, as this broker sees it."""

        def leader() -> int:
            partition = self.server.catalogue.partition(topic, index)
            if partition is None:
                return NO_NODE
            return self.server.view.leader_of(partition.partition_id).node_id

        return self.call(leader)


@contextlib.contextmanager
def members(count: int = 3, **config: str) -> Iterator[tuple[MemoryStore, list[MemberBroker]]]:
    """Brokers that have started, which all end well."""
    # Its time stands still: no lease ends because the machine is busy, but by ``end_lease``.
    store = MemoryStore(CLUSTER_ID, clock=lambda: 0.0)
    with contextlib.closing(store), contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(MemberBroker(store, **config)) for _ in range(count)]
        yield store, brokers
        failures = [each.server.failure for each in brokers if each._server is not None]
        assert failures == [None] * len(failures)


def end_lease(store: MemoryStore, session: int) -> None:
    """Have the lease of a session be over whose broker does not keep it alive any more."""
    store.index._sessions[session].lease_until = -1.0


def all_served(brokers: list[MemberBroker], topic: str, partitions: int) -> None:
    """Wait until each partition is served by one of these brokers, and all of them know that."""

    def is_so() -> bool:
        served = [index for each in brokers for index in each.leads(topic)]
        known = [each.leader_of(topic, index) for each in brokers for index in range(partitions)]
        nodes = {each.node_id for each in brokers}
        return sorted(served) == list(range(partitions)) and set(known) <= nodes

    wait_until(is_so, lambda: f"{[each.leads(topic) for each in brokers]}")
    wait_until(lambda: all(map(has_loaded, brokers)), "coordinators have read theirs")


def everything_served(broker: MemberBroker) -> None:
    """Wait until the only broker serves all there is, and whom it coordinates it knows by that."""
    topics = broker.call(lambda: dict(broker.server.catalogue.topics))
    for name, topic in topics.items():
        all_served([broker], name, len(topic.partitions))


def send(broker: MemberBroker, topic: str, values: range, partitions: int) -> None:
    """Have a client produce values, each to the partition of its remainder, to the end."""
    servers = broker.bootstrap_servers
    with contextlib.closing(KafkaProducer(bootstrap_servers=servers)) as producer:
        sent = [producer.send(topic, b"%d" % each, partition=each % partitions) for each in values]
        for each in sent:
            each.get(60)


def values_in(broker: MemberBroker, topic: str, partitions: int) -> list[int]:
    """Return all values in a topic, by partition."""
    servers = broker.bootstrap_servers
    with contextlib.closing(KafkaConsumer(bootstrap_servers=servers)) as consumer:
        places = [TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        found: list[int] = []
        while any(consumer.position(each) < ends[each] for each in places):
            for records in consumer.poll(1000).values():
                found += [int(each.value) for each in records]
        return found
