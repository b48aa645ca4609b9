"""Tests of brokers and clusters in a world, with crashes, cut links and loss."""

from __future__ import annotations

import pytest

from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Broker, Cluster, World
from tests.broker.data_plane import Named, Wire, batch, produce_request


def records_of_one_broker(seed: int) -> tuple[list[bytes | None], str, list[str]]:
    """Acknowledge five records and crash; return the remaining values, the digest and the log."""
    with World(seed) as world:
        with Broker(seed=seed) as broker:
            broker.create_topic("orders")
            with Wire(broker.address) as wire:
                for number in range(5):
                    request = produce_request(9, Named("orders"), (0, batch(b"%d" % number)))
                    wire.ask(PRODUCE, request, 9)
            broker.crash()
            broker.restart()
            values = [record.value for record in broker.records("orders").result]
        return values, world.digest, [*world.log]


def test_acknowledged_records_survive_a_crash() -> None:
    values, _, _ = records_of_one_broker(seed=3)
    assert values == [b"0", b"1", b"2", b"3", b"4"]


def test_runs_of_one_seed_have_the_same_log() -> None:
    first, again = records_of_one_broker(seed=4), records_of_one_broker(seed=4)
    assert first[2] == again[2]
    assert first[1] == again[1]
    assert records_of_one_broker(seed=5)[1] != first[1]


def test_response_arrives_after_a_cut_link_is_mended() -> None:
    with World(seed=1) as world, Broker() as broker:
        broker.create_topic("orders")
        with Wire(broker.address, timeout_s=5) as wire:
            world.network.cut(broker.address[1], there=False)
            request = produce_request(9, Named("orders"), (0, batch(b"v")))
            with pytest.raises(TimeoutError):
                wire.ask(PRODUCE, request, 9)
            assert len(broker.records("orders").result) == 1  # Only the response is missing.
            world.network.mend(broker.address[1])
            sleep(1)
            assert wire.receive().responses


def test_killed_leader_is_replaced_after_its_lease() -> None:
    with World(seed=1) as world, Cluster(brokers=3, seed=1) as cluster:
        cluster.create_topic("orders", partitions=3)
        leader = cluster.leader("orders", 0)
        assert leader is not None
        cluster.kill(leader, expire=False)
        began_s = world.now_s
        world.run_until(lambda: cluster.leader("orders", 0) not in {leader, None}, "another leader")
        assert world.now_s - began_s > 1  # The lease had to expire.


def test_lost_bytes_are_retransmitted() -> None:
    with World(seed=1) as world, Broker() as broker:
        broker.create_topic("orders")
        world.network.loss = 0.3
        with Wire(broker.address) as wire:
            for number in range(20):
                request = produce_request(9, Named("orders"), (0, batch(b"%d" % number)))
                wire.ask(PRODUCE, request, 9)
        assert world.now_s > 1
        values = [record.value for record in broker.records("orders").result]
        assert values == [b"%d" % number for number in range(20)]


def test_wall_clock_starts_at_begins_ms() -> None:
    with World(seed=1, begins_ms=1_800_000_000_000), Broker() as broker:
        assert broker.clock.now_ms() // 1000 == 1_800_000_000
