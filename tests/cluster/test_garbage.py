"""Cycles of objects in a cluster: a full collection that finds one alive freezes it."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Cluster, World
from tests.broker.data_plane import Named, Wire, batch
from tests.broker.moves import STAYS
from tests.cycles import come_and_go, cycles
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture(scope="module")
def cluster(world):
    # The client's clock is the machine's, which is years ahead of the world's.
    config = {"log.message.timestamp.after.max.ms": str((1 << 63) - 1)} | STAYS
    with Cluster(brokers=3, config=config) as running:
        running.create_topic("t", partitions=3)
        world.run(come_and_go(running.brokers[0], 0))  # The internal topics stay.
        running.wait_until_served()
        yield running


def test_topics_groups_and_transactions_leave_no_cycles(world: World, cluster: Cluster):
    with cycles() as found:
        for number in range(3):
            world.run(come_and_go(cluster.brokers[number], number + 1))
        world.sleep(5)
    assert not found, found


@pytest.mark.parametrize("topic", ["t", GROUP_OFFSETS, TRANSACTION_STATE])
def test_partitions_that_move_leave_no_cycles(world: World, cluster: Cluster, topic: str):
    with cycles() as found:
        for number in (0, 1, 2, 0):
            cluster.move(topic, 0, number)
        world.sleep(5)
    assert not found, found


def test_brokers_that_do_not_reach_each_other_leave_no_cycles(world: World, cluster: Cluster):
    with cycles() as found:
        cluster.cut(0, 1)
        world.sleep(30)
        cluster.mend(0, 1)
        world.sleep(30)
        world.run(come_and_go(cluster.brokers[0], 10))
    assert not found, found


async def write_in_transactions(cluster: Cluster, count: int) -> None:
    """Write to all partitions of a topic in transactions with coordinators on all brokers."""
    for number in range(count):
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id=f"id-{number}"
        )
        await producer.start()
        async with producer.transaction():
            for partition in range(3):
                await producer.send_and_wait("t", b"value", partition=partition)
        await producer.stop()


def test_peer_that_does_not_respond_leaves_no_cycles(world: World, cluster: Cluster):
    world.run(write_in_transactions(cluster, 1))
    with cycles() as found:
        cluster.pause(2, expire=True)
        cluster.wait_until_served()
        world.run(write_in_transactions(cluster, 3))
        world.sleep(60)
        cluster.resume(2)
        world.sleep(60)
    cluster.wait_until_served()
    assert not found, found


def test_requests_without_a_lease_leave_no_cycles(world: World, cluster: Cluster):
    leader = cluster.leader("t")
    assert leader is not None
    with cycles() as found:
        with Wire(cluster.brokers[leader].address) as wire:
            cluster.pause(leader, expire=True)
            cluster.cut_from_store(leader)
            cluster.wait_until_served()
            cluster.resume(leader)
            for _ in range(3):
                code = wire.produce(Named("t"), batch(b"late")).error_code
                assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.mend_to_store(leader)
        world.sleep(30)
    cluster.wait_until_served()
    assert not found, found
