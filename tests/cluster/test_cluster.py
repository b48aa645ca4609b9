"""Operations of tests on a cluster, and their effects on clients."""

from __future__ import annotations

import contextlib
import operator
from typing import Any

import pytest

from barnabas.broker.cluster.membership.membership import Membership
from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.config.types import ConfigError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import start_thread
from barnabas.testing import Cluster
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until
from tests.workload.routing import Led
from tests.workload.wire_client import WireClient
from tests.worlds import world

__all__ = ["world"]

T = Led("t", 0)
LATE_S = 1.0


@pytest.fixture
def cluster():
    with Cluster(brokers=3) as running:
        running.create_topic("t", partitions=3)
        yield running


@pytest.fixture
def client(cluster):
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def values(cluster: Cluster, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in cluster.records(topic).result]


def produce(value: bytes) -> tuple[Any, Any, int]:
    """Request that a connection sends."""
    return PRODUCE, produce_request(9, Named("t"), (0, batch(value))), 9


def other(cluster: Cluster, *numbers: Any) -> int:
    return next(each for each in cluster.running if each not in numbers)


def test_every_broker_leads_something(cluster):
    assert {cluster.leader("t", index) for index in range(3)} == {0, 1, 2}


def test_partition_is_served_only_under_the_lease_of_its_leader():
    with WatchedCluster(1) as cluster:
        cluster.create_topic("t")
        (broker,), (partition_id,) = cluster.brokers, cluster.partition_ids("t")
        assert broker.serves(partition_id)
        with Wire(broker.address) as wire:
            cluster.membership(0).beat_once = lambda: sleep(0.01)
            wait_until(lambda: wire.fetch_one(Named("t"), 0, max_wait_ms=0).error_code)
            assert not broker.serves(partition_id)
            del cluster.membership(0).beat_once
            cluster.wait_until_served()
            assert wire.fetch_one(Named("t"), 0, max_wait_ms=0).error_code == ErrorCode.NONE


def test_produced_records_are_read_back(cluster, client):
    for index in range(3):
        assert client.produce(Led("t", index), batch(b"%d" % index)) == 0
    assert values(cluster) == [b"0", b"1", b"2"]


def test_others_take_over_from_who_was_killed(cluster, client):
    leader = cluster.leader(*T)
    client.produce(T, batch(b"before"))
    cluster.kill(leader)
    assert client.produce(T, batch(b"after")) == 1
    assert cluster.leader(*T) in cluster.running
    assert leader not in cluster.running
    cluster.restart(leader)
    cluster.wait_until_served()
    assert values(cluster) == [b"before", b"after"]


def test_all_may_die_and_come_back(cluster, client):
    client.produce(T, batch(b"before"))
    for number in range(3):
        cluster.kill(number)
    assert cluster.running == []
    assert cluster.leader(*T) is None
    for number in range(3):
        cluster.restart(number)
    client.produce(T, batch(b"after"))
    assert values(cluster) == [b"before", b"after"]


def test_killed_paused_broker_sends_no_response(cluster):
    leader = cluster.leader(*T)
    with Wire(cluster.brokers[leader].address) as wire:
        wire.produce(Named("t"), batch(b"before"))
        cluster.pause(leader)
        wire.socket.sendall(b"\0\0")
        thread = start_thread("kill", cluster.brokers[leader].kill)
        thread.join(60)
        assert wire.hung_up()
    cluster.expire(leader)
    cluster.wait_until_served()
    assert values(cluster) == [b"before"]


def test_paused_leader_is_replaced_and_refuses_later_produce(cluster, client):
    leader = cluster.leader(*T)
    with Wire(cluster.brokers[leader].address) as wire:
        wire.produce(Named("t"), batch(b"before"))
        cluster.pause(leader, expire=True)
        assert wire.silent()
        assert client.produce(T, batch(b"by another")) == 1
        cluster.resume(leader)
        assert wire.produce(Named("t"), batch(b"late")).error_code in {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NONE,
        }
    cluster.wait_until_served()
    assert values(cluster)[:2] == [b"before", b"by another"]


def test_replaced_leader_without_store_does_not_reject_sequences(cluster, client):
    """The old leader's log is outdated, and the store would not see its wrong error."""
    leader = cluster.leader(*T)
    with Wire(cluster.brokers[leader].address) as wire:
        for sequence in range(3):
            assert wire.produce(Named("t"), numbered(sequence)).error_code == 0
        cluster.pause(leader, expire=True)
        cluster.cut_from_store(leader)
        assert client.produce(T, numbered(3)) == 3
        cluster.resume(leader)
        for sequence in (3, 4):  # One that is appended already, and one that is the next.
            code = wire.produce(Named("t"), numbered(sequence)).error_code
            assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        request = InitProducerIdRequest("t", 60_000)
        code = wire.ask(INIT_PRODUCER_ID, request, 4).error_code
        assert code == ErrorCode.NOT_COORDINATOR
        cluster.mend_to_store(leader)
    assert client.produce(T, numbered(4)) == 4


def numbered(sequence: int) -> Any:
    """A batch of an idempotent producer."""
    return batch(producer_id=1, producer_epoch=0, base_sequence=sequence)


def test_a_partition_moves(cluster, client):
    former = cluster.leader(*T)
    new = other(cluster, former)
    client.produce(T, batch(b"before"))
    cluster.move(*T, to=new)
    assert cluster.leader(*T) == new
    client.produce(T, batch(b"after"))
    assert values(cluster) == [b"before", b"after"]


def test_stopping_broker_hands_over_its_partitions(cluster, client):
    leader = cluster.leader(*T)
    client.produce(T, batch(b"before"))
    cluster.stop(leader)
    client.produce(T, batch(b"after"))
    assert values(cluster) == [b"before", b"after"]


def test_running_broker_continues_after_lease_expiry(cluster, client):
    client.produce(T, batch(b"before"))
    for number in range(3):
        cluster.expire(number)
    client.produce(T, batch(b"after"))
    cluster.wait_until_served()
    assert values(cluster) == [b"before", b"after"]


def test_no_broker_says_that_there_are_none(cluster):
    """A client with a list of one broker forgets all others, librdkafka permanently."""
    asked = MetadataRequest([MetadataRequestTopic(name="t")])
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(each.address)) for each in cluster.brokers]

        def all_begin_anew(former: list[int]) -> bool:
            for number, wire in enumerate(wires):
                found = wire.ask(METADATA, asked, 12).brokers
                assert number in {each.node_id for each in found}
            return not any(map(operator.eq, sessions(cluster), former))

        for _ in range(10):
            former = sessions(cluster)
            for number in range(3):
                cluster.expire(number)
            wait_until(lambda former=former: all_begin_anew(former), "sessions", pause_s=0.0)


def sessions(cluster: Cluster) -> list[int]:
    return [each.server._home.session for each in cluster.brokers]


def test_broker_cut_from_store_acknowledges_no_produce(cluster, client):
    leader = cluster.leader(*T)
    with Wire(cluster.brokers[leader].address) as wire:
        cluster.cut_from_store(leader)
        wire.send(*produce(b"not yet"))
        assert wire.silent()
        cluster.mend_to_store(leader)
        answer = wire.receive().responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, 0)
        cluster.cut_from_store(leader, expire=True)
        wire.send(*produce(b"never"))
        assert client.produce(T, batch(b"by another")) == 1
        cluster.mend_to_store(leader)
        answer = wire.receive().responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert values(cluster) == [b"not yet", b"by another"]


def test_starting_broker_does_not_list_itself_alone(cluster, monkeypatch):
    """However late a broker that has just started sees the others, as Apache Kafka's does."""
    look = Membership.poll_once

    def look_late(membership: Membership) -> None:
        if not membership.polls_started:
            sleep(LATE_S)
        look(membership)

    monkeypatch.setattr(Membership, "poll_once", look_late)
    cluster.stop(0)
    cluster.restart(0)
    with Wire(cluster.brokers[0].address) as wire:
        told = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), 12)
    assert {each.node_id for each in told.brokers} == {0, 1, 2}
    assert all(each.leader_id in {0, 1, 2} for each in told.topics[0].partitions)


def test_in_the_callers_loop(world):
    async def use() -> None:
        async with Cluster(brokers=2) as cluster:
            await cluster.create_topic("t", 2)
            await cluster.kill(cluster.leader("t", 0))
            assert await cluster.records("t") == []
            assert await cluster.add() == 2
            assert len(cluster.running) == 2

    world.run(use())


def test_cluster_exit_reports_broker_failure():
    cluster = Cluster(brokers=2)
    cluster.__enter__()
    broker = cluster.brokers[1]
    broker.call(lambda: broker.server.fatal(ValueError("no")))
    with pytest.raises(RuntimeError, match="broker 1 had stopped by itself"):
        cluster.__exit__(None, None, None)


def test_settings_are_kafkas():
    with Cluster(brokers=2, config={"num.partitions": "4"}) as cluster:
        cluster.add()
        cluster.add({"num.partitions": "5"})
        assert [each.server.config.num_partitions for each in cluster.brokers] == [4, 4, 4, 5]


def test_a_slip_of_the_pen_is_an_error():
    with pytest.raises(ConfigError):
        Cluster(brokers=2, config={"barnabas.lease": "4"})


def test_a_link_is_cut_and_mended(cluster):
    first, second = cluster.brokers[:2]

    def ask(broker: Any, node_id: int) -> Any:
        """Send an empty request to another broker, as brokers do."""
        answers: list[Any] = []

        def ask() -> None:
            request = AddPartitionsToTxnRequest()
            broker.server.peers.ask(
                node_id,
                Purpose.VERIFICATION,
                ADD_PARTITIONS_TO_TXN,
                5,
                request,
                answers.append,
                timeout_ms=60_000,
            )

        broker.call(ask)
        wait_until(lambda: answers)
        return answers[0]

    assert ask(first, 1).error_code == 0
    cluster.cut(0, 1)
    assert isinstance(ask(first, 1), NoAnswer)
    assert isinstance(ask(second, 0), NoAnswer)
    assert ask(first, 2).error_code == 0
    cluster.mend(0, 1)
    wait_until(lambda: not isinstance(ask(first, 1), NoAnswer))
    wait_until(lambda: not isinstance(ask(second, 0), NoAnswer))
