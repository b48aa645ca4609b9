"""Batches that were sent after a refused batch do not take its place (S12)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.cluster.membership.durable_logs import FILLED_AT_ONCE
from barnabas.broker.security.acls.access import Access
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from tests.broker.data_plane import Named, Wire, batch, topic_data
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until

VERSION = 9
KEPT, DOOMED = Named("kept"), Named("doomed")


class Producer:
    """An idempotent producer, several of whose requests are on their way to one broker."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        answer = wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 60_000), 4)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id = answer.producer_id

    @classmethod
    def that_has_sent(cls, count: int, wire: Wire) -> Producer:
        producer = cls(wire)
        for sequence in range(count):
            assert producer.sends(sequence) == ErrorCode.NONE
        return producer

    def sends_again_in_order(self, refused: int) -> None:
        """Check that a batch after a refused one is refused, too, until that one arrives."""
        assert self.sends(refused + 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert self.sends(refused) == ErrorCode.NONE
        assert self.sends(refused + 1) == ErrorCode.NONE

    def sends(self, sequence: int, *beside: Named) -> ErrorCode:
        """Send the record of a sequence, and what others write beside it in the same request."""
        records = batch(b"%d" % sequence, **self.identity(sequence))
        topics = [topic_data(VERSION, KEPT, (0, records))]
        topics += [topic_data(VERSION, each, (0, batch())) for each in beside]
        answer = self.wire.ask(PRODUCE, ProduceRequest(None, -1, 30_000, topics), VERSION)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def identity(self, sequence: int) -> dict[str, int]:
        return {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": sequence}


def lease_ends(cluster: WatchedCluster, *, after_s: float) -> None:
    membership = cluster.brokers[0].server._member._membership
    membership._served_until_s = membership._clock() + after_s


def kept(cluster: WatchedCluster) -> Any:
    """Return the partition of the topic that is written to."""
    return cluster.on(0, lambda server: server.catalogue.partition(KEPT.name, 0))


@pytest.mark.parametrize("known", [0, 2])
def test_behind_a_batch_that_was_refused_without_a_lease(known):
    with WatchedCluster(1) as cluster:
        cluster.create_topic(KEPT.name)
        with Wire(cluster.brokers[0].address) as wire:
            producer = Producer.that_has_sent(known, wire)
            lease_ends(cluster, after_s=-1)
            assert producer.sends(known) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            lease_ends(cluster, after_s=1000)
            producer.sends_again_in_order(known)
            assert producer.sends(known + 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("known", [0, 2])
def test_behind_a_batch_that_was_refused_for_the_sake_of_another_partition(known):
    """The topic of which something was in the same flush was deleted by another broker."""
    with WatchedCluster(1) as cluster:
        for topic in (KEPT, DOOMED):
            cluster.create_topic(topic.name)
        with Wire(cluster.brokers[0].address) as wire:
            producer = Producer.that_has_sent(known, wire)
            cluster.index.remove_partitions(cluster.partition_ids(DOOMED.name))
            assert producer.sends(known, DOOMED) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            wait_until(lambda: cluster.leads(0, KEPT.name) == {0})
            producer.sends_again_in_order(known)


@pytest.mark.parametrize("known", [0, 2])
def test_behind_a_batch_that_came_before_the_log_was_read(known):
    with WatchedCluster(1) as cluster:
        cluster.create_topic(KEPT.name)
        with Wire(cluster.brokers[0].address) as wire:
            producer = Producer.that_has_sent(known, wire)
            turns = cluster.brokers[0].server._member.durable_logs._filling
            for _ in range(FILLED_AT_ONCE):
                turns.acquire()
            partition = kept(cluster)
            cluster.on(0, lambda server: server.leadership.reload(partition.log))
            (partition_id,) = cluster.partition_ids(KEPT.name)
            state = cluster.on(0, lambda server: server.leadership.state_of(partition_id))
            assert state is State.READING
            assert producer.sends(known) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            for _ in range(FILLED_AT_ONCE):
                turns.release()
            wait_until(lambda: cluster.leads(0, KEPT.name) == {0})
            producer.sends_again_in_order(known)


def test_unauthorized_producer_does_not_delay_other_batches(monkeypatch):
    with WatchedCluster(1) as cluster:
        cluster.create_topic(KEPT.name)
        partition = kept(cluster)
        with Wire(cluster.brokers[0].address) as wire:
            producer = Producer(wire)
            lease_ends(cluster, after_s=-1)
            with monkeypatch.context() as patched:
                patched.setattr(Access, "may_see", lambda *_: False)
                assert producer.sends(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert partition.refused is None
            assert producer.sends(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert len(partition.refused) == 1
