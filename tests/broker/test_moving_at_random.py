"""Partitions go to and fro between two brokers while clients write, commit and end transactions.

Every record that was acknowledged is there once, in order; a group has the offset that it committed
last; a transaction is there as a whole or not at all. A client tries again as long as it is told
something that clients try again for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from tests.broker.committed_reader import committed_values
from tests.broker.data_plane import Named, Wire, batch
from tests.broker.moving import MovingCluster, moving_pair
from tests.broker.raw_producer import AGAIN, TIMEOUT_MS, RawProducer
from tests.seeds import SEED
from tests.waiting import wait_until

DATA, TRANSACTIONAL = Named("data", bytes([1] * 16)), Named("txn", bytes([2] * 16))
TOPICS = {"data": 2, "txn": 2, "__consumer_offsets": 1, "__transaction_state": 1}
BUNDLES = (("data", 0), ("data", 1), ("__consumer_offsets", None), ("txn", None))
"""What moves together: markers reach the partitions of the coordinator's broker only, for now."""
MOVES = 14
RETRIABLE = AGAIN | {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
}
PATIENCE_S = 60


class Client(threading.Thread):
    """Does one thing again and again until it is told to stop; begins no new one then."""

    def __init__(self, cluster: MovingCluster) -> None:
        super().__init__(daemon=True)
        self.wires = [Wire(broker.address) for broker in cluster.brokers]
        self.at = 0
        self.is_over = threading.Event()
        self.error: BaseException | None = None
        self.done = 0

    @property
    def wire(self) -> Wire:
        return self.wires[self.at]

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                self.once()
                self.done += 1
        except BaseException as error:  # noqa: BLE001  told by the test's own thread
            self.error = error
        finally:
            for wire in self.wires:
                wire.socket.close()

    def once(self) -> None:
        raise NotImplementedError

    def until_answered(self, ask: Callable[[], Any]) -> ErrorCode:
        """Ask one broker and the other until the answer is no reason to ask again."""
        deadline = time.monotonic() + PATIENCE_S
        while (code := ErrorCode(ask())) in RETRIABLE:
            assert time.monotonic() < deadline, code
            self.at = 1 - self.at
            time.sleep(0.002)
        return code


class Writer(Client):
    """An idempotent producer of one partition: it numbers its records."""

    def __init__(self, cluster: MovingCluster, partition: int) -> None:
        super().__init__(cluster)
        self.partition = partition

    def once(self) -> None:
        records = batch(
            b"%d" % self.done,
            producer_id=(1 << 62) + self.partition,
            producer_epoch=0,
            base_sequence=self.done,
        )
        results = []

        def ask() -> int:
            results.append(self.wire.produce(DATA, records, self.partition))
            return results[-1].error_code

        assert self.until_answered(ask) == ErrorCode.NONE
        assert results[-1].base_offset == self.done


class Committer(Client):
    """A group of one that commits the numbers."""

    def commit(self) -> int:
        topics = [
            OffsetCommitRequestTopic(
                "data", partitions=[OffsetCommitRequestPartition(0, self.done)]
            )
        ]
        response = self.wire.ask(OFFSET_COMMIT, OffsetCommitRequest("g", topics=topics), 8)
        return response.topics[0].partitions[0].error_code

    def committed(self) -> int:
        """The offset that is told."""
        told = []

        def ask() -> int:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
            (group,) = self.wire.ask(OFFSET_FETCH, request, 8).groups
            told[:] = [each for topic in group.topics for each in topic.partitions]
            return group.error_code

        assert self.until_answered(ask) == ErrorCode.NONE
        return told[0].committed_offset

    def once(self) -> None:
        assert self.until_answered(self.commit) == ErrorCode.NONE
        assert self.committed() == self.done


class Transactor(Client):
    """Writes its number to both partitions, in a transaction that it commits or aborts."""

    def __init__(self, cluster: MovingCluster, version: int, random: Random) -> None:
        super().__init__(cluster)
        self.random = random
        self.version = version
        self.committed: list[bytes] = []
        self.producer = MovingProducer(self)

    def once(self) -> None:
        producer, value = self.producer, b"%d" % self.done
        assert self.until_answered(lambda: producer.add(TRANSACTIONAL, 0, 1)) == ErrorCode.NONE
        for partition in (0, 1):
            records = producer.batch(TRANSACTIONAL, value, partition=partition)
            assert self.until_answered(self.produces(records, partition)) == ErrorCode.NONE
        commits = self.random.random() < 0.7
        request = EndTxnRequest("id", producer.producer_id, producer.epoch, commits)
        version = 3 if producer.is_classic else 5
        answers = []

        def ask() -> int:
            answers.append(self.wire.ask(END_TXN, request, version))
            return answers[-1].error_code

        assert self.until_answered(ask) == ErrorCode.NONE
        if not producer.is_classic:
            producer.takes(answers[-1].producer_id, answers[-1].producer_epoch)
        if commits:
            self.committed.append(value)

    def produces(self, records: memoryview, partition: int) -> Callable[[], int]:
        """What sends a batch, and tells what became of it."""
        more = {"version": self.version, "transactional_id": "id"}

        def ask() -> int:
            return self.wire.produce(TRANSACTIONAL, records, partition, **more).error_code

        return ask


class MovingProducer(RawProducer):
    """One whose coordinator is now here, now there."""

    def __init__(self, client: Transactor) -> None:
        self.client = client
        super().__init__(client.wire, "id", client.version)

    def init(self) -> None:
        answers = []

        def ask() -> int:
            request = InitProducerIdRequest(self.name, TIMEOUT_MS)
            answers.append(self.client.wire.ask(INIT_PRODUCER_ID, request, 4))
            return answers[-1].error_code

        assert self.client.until_answered(ask) == ErrorCode.NONE
        self.takes(answers[-1].producer_id, answers[-1].producer_epoch)

    def takes(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._next.clear()

    def add(self, topic: Named, *partitions: int) -> ErrorCode:
        self.wire = self.client.wire
        return super().add(topic, *partitions)


class Mover:
    """Takes partitions from one broker and gives them to another, in every way there is."""

    def __init__(self, cluster: MovingCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random

    def ids_of(self, topic: str, index: int | None) -> list[int]:
        ids = self.cluster.ids
        if topic == "txn":
            return [*ids["txn"], *ids["__transaction_state"]]
        return ids[topic] if index is None else [ids[topic][index]]

    def move(self) -> None:
        ids = self.ids_of(*self.random.choice(BUNDLES))
        cluster = self.cluster
        former = cluster.leader[ids[0]]
        new = cluster.other(former)
        kind = self.random.choice(("planned", "planned", "told", "late", "again", "session"))
        if kind == "planned":
            cluster.move(new, *ids)
        elif kind == "told":
            cluster.give(new, *ids)
        elif kind == "late":
            cluster.assign(new, *ids)
            new.learn()
            cluster.served(new, *ids)
            time.sleep(self.random.random() * 0.05)  # The former one learns it by being refused.
            cluster.tell()
        elif kind == "again":
            cluster.give(former, *ids)
        else:
            self.lose_session(former)
        time.sleep(self.random.random() * 0.03)

    def lose_session(self, broker: Any) -> None:
        cluster, session = self.cluster, broker.runner.session
        ids = [each for each, leader in cluster.leader.items() if leader is broker]
        broker.lose_session()
        wait_until(lambda: broker.runner.session != session)
        heir = self.random.choice(cluster.brokers)
        cluster.give(heir, *ids)


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("number", range(3))
def test_clients_lose_nothing(number, version):
    random = Random(SEED + number)
    with moving_pair(TOPICS, seed=SEED + number) as cluster:
        everything = [each for ids in cluster.ids.values() for each in ids]
        cluster.give(cluster.brokers[0], *everything)
        writers = [Writer(cluster, partition) for partition in (0, 1)]
        committer = Committer(cluster)
        transactor = Transactor(cluster, version, random)
        clients = [*writers, committer, transactor]
        for client in clients:
            client.start()
        mover = Mover(cluster, random)
        for _ in range(MOVES):
            mover.move()
            assert [client.error for client in clients if client.error] == []
        wait_until(lambda: all(client.done or client.error for client in clients))
        for client in clients:
            client.is_over.set()
        for client in clients:
            client.join(PATIENCE_S)
            assert not client.is_alive()
        assert [client.error for client in clients if client.error] == []
        last = cluster.brokers[1]
        cluster.move(last, *everything)
        check(last, writers, committer, transactor)


def check(last: Any, writers: list[Writer], committer: Committer, transactor: Transactor) -> None:
    """What is there in the end, at the broker that leads all."""
    with Wire(last.address) as wire:
        for writer in writers:
            written = [b"%d" % number for number in range(writer.done)]
            assert wire.read(DATA, writer.partition) == written
        for partition in (0, 1):
            assert committed_values(wire, TRANSACTIONAL, partition) == transactor.committed
