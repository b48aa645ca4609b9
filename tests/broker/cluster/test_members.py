"""Brokers that are put together as `barnabas serve` does it, over a store in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Sequence

import pytest

from barnabas.broker.cluster.membership.membership import NodeIdTaken
from barnabas.broker.cluster.start.member import ClusterMember
from barnabas.broker.config.types import ConfigError
from barnabas.broker.http.pages import pages
from barnabas.broker.metadata.resources import ResourceType
from barnabas.broker.runtime.stage import Stage
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.cluster_broker import ClusterBroker
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.links import Links
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.offset_delete import OFFSET_DELETE, OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.log_index import LogBeginning
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.data_plane import (
    Named,
    Wire,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
)
from tests.broker.http.test_server import get_json
from tests.broker.metrics.scrape import scrape
from tests.cluster.watched import WatchedCluster
from tests.requests import (
    alter_configs,
    codes_of,
    delete_records_request,
    describe_producers_request,
    fetch_offsets_request,
)
from tests.waiting import until, wait_until
from tests.worlds import running_threads

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
LEASE_S = 10
"""Default of barnabas.lease.ms, in seconds."""
TOPIC = "orders"
PARTITIONS = 6


def test_topic_created_at_one_broker_is_served_by_all():
    with WatchedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        assert all(cluster.leads(each, TOPIC) for each in range(3)), "not spread"
        cluster.send(TOPIC, range(60))
        assert sorted(cluster.values(TOPIC)) == list(range(60))
        catalogues = [each.server.catalogue for each in cluster.brokers]

        async def delete() -> None:
            await catalogues[0].delete_topic(catalogues[0].topic(TOPIC).topic_id)

        cluster.brokers[0]._do(delete())
        wait_until(lambda: all(each.topic(TOPIC) is None for each in catalogues))


def test_a_member_that_is_made_is_none_of_the_cluster_before_it_registers(monkeypatch):
    found = []
    register = ClusterMember.register

    def noted(member: ClusterMember) -> None:
        others = member._ways.errands.snapshot(0).members
        found.append((member._membership.session, [each.node_id for each in others]))
        register(member)

    monkeypatch.setattr(ClusterMember, "register", noted)
    with WatchedCluster(2):
        assert found == [(None, []), (None, [0])]


def words_of_events(cluster, number, kind):
    events = cluster.on(number, lambda server: [*server.events.newest_first()])
    return [each.words for each in events if each.kind == kind]


def one_event(cluster, number, kind) -> str:
    wait_until(lambda: words_of_events(cluster, number, kind))
    (words,) = words_of_events(cluster, number, kind)
    return words


def test_killed_broker_is_replaced_after_its_lease():
    with WatchedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60))
        began_s = monotonic()
        cluster.kill(0, expire=False)
        cluster.settle(TOPIC)
        assert monotonic() - began_s > LEASE_S / 2
        for number in (1, 2):
            assert one_event(cluster, number, "broker_gone") == "node 0 is out of service"
            joined = f"node {number}, session {cluster.session(number)}"
            assert one_event(cluster, number, "cluster_joined") == joined
            taking_over = words_of_events(cluster, number, "taking_over")
            assert "partitions are to be led here" in taking_over[0]
        assert "node 2 is in service" in words_of_events(cluster, 1, "broker_came")
        cluster.send(TOPIC, range(60, 120))
        assert sorted(cluster.values(TOPIC)) == list(range(120))


def test_stopped_broker_is_replaced_at_once():
    with WatchedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60))
        began_s = monotonic()
        cluster.stop(0)
        cluster.settle(TOPIC)
        assert monotonic() - began_s < LEASE_S / 2
        assert sorted(cluster.values(TOPIC)) == list(range(60))


def test_fenced_broker_starts_new_session():
    with WatchedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(60))
        for number in range(2):
            former = cluster.session(number)
            cluster.index.fence(former)
            # The next flush finds out, even without heartbeats.
            cluster.send(TOPIC, range(60))
            wait_until(lambda number=number, former=former: cluster.session(number) != former)
            lost, begun = (
                one_event(cluster, number, kind) for kind in ("session_lost", "session_begun")
            )
            assert f"session {former}:" in lost
            assert begun == f"session {cluster.session(number)}"
        cluster.settle(TOPIC)
        assert sorted(cluster.values(TOPIC)) == sorted([*range(60)] * 3)


def serves_one_more(cluster):
    cluster.create_topic(TOPIC)
    cluster.send(TOPIC, range(3))


def test_a_broker_that_leads_nothing_learns_from_its_heartbeat():
    with WatchedCluster(1) as cluster:
        former = cluster.session(0)
        cluster.index.fence(former)
        wait_until(lambda: cluster.session(0) != former)
        serves_one_more(cluster)


def test_a_session_that_ends_before_anything_was_done_in_it_is_followed_by_another():
    with WatchedCluster(1) as cluster:
        (broker,) = cluster.brokers
        member = broker.server._member
        membership = member._membership
        begin, short = membership.new_session, []

        def new_session(index):
            session = begin(index)
            if not short:
                short.append(session)
                cluster.index.fence(session)
                membership.beat_once()  # The end is known before the broker starts the session.
                wait_until(lambda: member._sessions._ended_session == session)
                wait_until(lambda: broker.call(member._around.logs.journal.newest_group) is None)
            return session

        membership.new_session = new_session
        former = cluster.session(0)
        cluster.index.fence(former)
        # By itself: within a minute something else would be written, and find it out.
        wait_until(lambda: cluster.session(0) not in {former, *short}, seconds=30)
        serves_one_more(cluster)


def test_partition_returned_during_hand_over_moves_again():
    with WatchedCluster(2) as cluster:
        cluster.create_topic(TOPIC)
        cluster.settle(TOPIC)
        giver = cluster.leader(TOPIC)
        taker = 1 - giver
        (partition_id,) = cluster.partition_ids(TOPIC)
        ways = cluster.brokers[giver].server._member._errands._index
        asked, answered = new_event(), new_event()
        hand_over = ways.hand_over

        def hand_over_late(*arguments):
            asked.set()
            assert answered.wait(60)
            hand_over(*arguments)

        ways.hand_over = hand_over_late
        cluster.want(TOPIC, 0, taker)
        assert asked.wait(60)
        epoch = cluster.index.partition(partition_id).leader_epoch
        assert cluster.index.assign([Assignment(partition_id, cluster.session(giver), epoch)])
        cluster.want(TOPIC, 0, taker)

        def seen(server):
            return server.view.leader_of(partition_id).epoch, server.view.wanted(partition_id)

        wait_until(lambda: cluster.on(giver, seen) == (epoch + 1, taker))
        answered.set()
        wait_until(lambda: cluster.leads(taker, TOPIC) == {0})


def test_reused_metadata_version_after_failover_is_applied():
    with WatchedCluster(2) as cluster:
        follower = cluster.brokers[1].server
        version = cluster.index.snapshot(0).metadata_version
        images, loads = follower.metastore, []
        load = images.load

        def counted():
            image = load()
            loads.append(image.version)
            return image

        images.load = counted
        cluster.index.metadata_changed(version + 1)
        wait_until(lambda: loads)
        assert loads[0] == version, "it is not what was seen"
        wait_until(lambda: len(loads) > 1 or not follower._member._is_following())
        cluster.index._metadata_version = version
        cluster.brokers[0].create_topic(TOPIC)
        assert cluster.index.snapshot(0).metadata_version == version + 1
        wait_until(lambda: cluster.on(1, lambda server: server.catalogue.topic(TOPIC)) is not None)


def test_topics_of_the_configuration_are_made_once(caplog):
    topics = f"{TOPIC}:2:3:compact,others:1:-1"
    with WatchedCluster(2, config={"barnabas.create.topics": topics}) as cluster:
        cluster.settle(TOPIC)
        for broker in cluster.brokers:
            catalogue = broker.server.catalogue
            own = {"cleanup.policy": "compact", "barnabas.replication.factor": "3"}
            assert dict(catalogue.topic(TOPIC).configs) == own
            assert not dict(catalogue.topic("others").configs)
    assert "one replica" not in caplog.text


def test_a_broker_that_is_cordoned_by_its_configuration_leads_nothing_until_that_is_undone():
    with WatchedCluster(1) as cluster:
        cluster.add({"cordoned.log.dirs": "*"})
        cluster.create_topic(TOPIC, 2)
        cluster.settle(TOPIC)
        assert cluster.leads(0, TOPIC) == {0, 1}
        with Wire(cluster.brokers[1].address) as wire:
            alter_configs(wire, ResourceType.BROKER, "1", ("cordoned.log.dirs", 0, ""))
        wait_until(lambda: [len(cluster.leads(each, TOPIC)) for each in range(2)] == [1, 1])


def test_two_brokers_with_one_node_id_do_not_take_turns(caplog):
    """The first one stops, and logs why."""
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    with WatchedCluster(1) as cluster, ClusterBroker(cluster._store, Links(), 0) as second:
        (first,) = cluster.brokers
        wait_until(lambda: first.failure is not None)
        assert isinstance(first.failure, NodeIdTaken)
        assert "node.id=0" in str(first.failure)
        (said,) = (each for each in caplog.messages if each.startswith("broker stops: "))
        assert said == f"broker stops: {first.failure}"
        opened = [each for each in caplog.messages if each.startswith("storage opened")]
        assert [" node_id=0 " in each for each in opened] == [True, True]
        cluster.kill(0, expire=False)
        second.create_topic(TOPIC)
        (partition_id,) = cluster.partition_ids(TOPIC)
        wait_until(lambda: second.serves(partition_id))


def test_stop_does_not_wait_for_unavailable_store():
    with WatchedCluster(2, config={"barnabas.lease.ms": "300000"}) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.cut_from_store(0)
        began_s = monotonic()
        cluster.stop(0)
        assert monotonic() - began_s < 100, "it waits for the store"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"inter.broker.listener.name": "OTHER"}, "OTHER is none of"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL is none of"),
    ],
)
async def test_brokers_that_could_not_ask_each_other_do_not_start(config, reason):
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        server = server_of(store.base(), SimulatedFileSystem(), **config)
        with pytest.raises(ConfigError, match=reason):
            await server.start()
        assert not store.index.snapshot(0).members


# ------------------------------------------------------------------------------------ the identity


def server_of(base, file_system, **settings):
    """Return a server that was not started."""
    config = Broker(config={"listeners": "PLAINTEXT://127.0.0.1:0", **settings})._config
    return BrokerServer(config, file_system=file_system, base=base)


async def life_of(base, file_system, **settings) -> int:
    """Start and stop a broker; return its node id."""
    server = server_of(base, file_system, **settings)
    await server.start()
    assert await server.stop()
    return server.node_id


async def test_a_directory_keeps_who_the_broker_is():
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        first, second = SimulatedFileSystem(), SimulatedFileSystem()
        node_ids = [await life_of(store.base(), each) for each in (first, second, first, second)]
        assert node_ids[0] != node_ids[1]
        assert node_ids[2:] == node_ids[:2]
        chosen = {"node.id": "7"}
        assert await life_of(store.base(), SimulatedFileSystem(), **chosen) == 7
        with pytest.raises(IdentityMismatch, match="node 7"):
            await life_of(store.base(), first, **chosen)


async def test_a_directory_of_another_cluster_is_left_alone():
    other = MemoryStore("c_fOlHZ7TNOuK0kXbFIDrA")
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store), contextlib.closing(other):
        directory = SimulatedFileSystem()
        node_id = await life_of(store.base(), directory)
        with pytest.raises(IdentityMismatch, match=CLUSTER_ID):
            await life_of(other.base(), directory)
        assert not other.index.snapshot(0).members, "it has registered"
        with pytest.raises(IdentityMismatch, match="cluster"):
            await life_of(store.base(), SimulatedFileSystem(), **{"cluster.id": "another"})
        assert await life_of(store.base(), directory) == node_id


async def test_a_broker_that_is_alone_does_not_begin_in_a_cache():
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        directory = SimulatedFileSystem()
        await life_of(store.base(), directory)
        with pytest.raises(IdentityMismatch, match=r"barnabas\.metadata"):
            await life_of(None, directory)


# ----------------------------------------------------------------------------- an unavailable store


HTTP = {"barnabas.http.listener": "127.0.0.1:0"}


async def test_start_waits_for_unavailable_store_and_logs_it(caplog, monkeypatch):
    monkeypatch.setattr("barnabas.broker.cluster.start.store_watch.PATIENCE_S", 0.0)
    monkeypatch.setattr("barnabas.broker.cluster.start.store_watch.LOG_INTERVAL_S", 0.0)
    caplog.set_level(logging.INFO, "barnabas.broker")
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        base = store.base()
        base.cut()
        server = server_of(base, SimulatedFileSystem(), **HTTP)
        starting = server_task(server)
        await until(lambda: "does not answer: it was cut off" in caplog.text)
        await until(lambda: "is down for_s=" in caplog.text)
        assert (await get_json(server.http.address, "/livez"))[0] == 200
        status, found = await get_json(server.http.address, "/readyz")
        assert status == 503
        assert found["checks"]["storage"] == "recovering: waits for the store of the cluster"
        base.mend()
        await starting
        await until(lambda: "answers again" in caplog.text)
        assert (await get_json(server.http.address, "/readyz"))[0] == 200
        assert await server.stop()


async def test_a_start_that_waits_for_the_store_can_be_ended():
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        base = store.base()
        base.cut()
        server = server_of(base, SimulatedFileSystem(), **HTTP)
        starting = server_task(server)
        await until(lambda: server.http is not None)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert server.stage is Stage.OPENING


def server_task(server):
    return asyncio.get_running_loop().create_task(server.start())


def test_crash_leaves_no_thread_with_unavailable_store(world):
    before = running_threads()
    with WatchedCluster(2) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        cluster.cut_from_store(0)
        cluster.kill(0)
    world.run_until(lambda: running_threads() <= before)


def test_store_drops_deleted_records_and_keeps_log_end():
    with WatchedCluster(1) as cluster:
        cluster.create_topic(TOPIC)
        cluster.send(TOPIC, range(20))
        (partition_id,) = cluster.partition_ids(TOPIC)
        row = cluster.index.rows[partition_id]
        assert row.extents
        delete_all_records(cluster.brokers[0], TOPIC)
        wait_until(lambda: cluster.clock.advance(seconds=10) or not row.extents)
        cluster.restart(0)  # Its directory is a cache: the log comes back from the store.
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(20, 25))
        assert cluster.values(TOPIC) == [20, 21, 22, 23, 24]


DAMAGES = {
    "a length": lambda data: data[:8] + b"\xff" * 4 + data[12:],
    "cut off": lambda data: data[:8],
    "a bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_one_damaged_log_ends_no_broker(monkeypatch, caplog, damage):
    monkeypatch.setattr("barnabas.broker.cluster.leading.leadership.DAMAGED_AGAIN_S", 0.1)
    with WatchedCluster(2) as cluster:
        cluster.create_topic(TOPIC, 2)
        cluster.settle(TOPIC)
        cluster.send(TOPIC, range(6))
        partition_id, _ = cluster.partition_ids(TOPIC)
        extents = cluster.index.rows[partition_id].extents
        whole = extents[-1]
        extents[-1] = whole._replace(data=damage(whole.data))
        reads: list[int] = []
        beginnings = cluster.index.beginnings

        def noted_beginnings(partition_ids: Sequence[int], **limits: int) -> list[LogBeginning]:
            reads.extend(each for each in partition_ids if each == partition_id)
            return beginnings(partition_ids, **limits)

        cluster.index.beginnings = noted_beginnings
        cluster.index.fence(cluster.session(cluster.leader(TOPIC)))
        brokers = cluster.brokers
        wait_until(lambda: sorted(map(damaged, brokers)) == [0, 1])
        wait_until(lambda: [e for each in range(2) for e in cluster.leads(each, TOPIC)] == [1])
        (leader,) = [each for each in brokers if damaged(each)]
        words = f"damaged in the store, not served: {TOPIC}-0"
        assert readiness(leader) == (200, "degraded", {"partitions": words})
        for answered in (produced_code, fetched_code, listed_code):
            assert answered(leader) is ErrorCode.KAFKA_STORAGE_ERROR
        read_before = len(reads)
        said = caplog.text.count(f"no broker can serve it partition={TOPIC}-0")
        wait_until(lambda: len(reads) > read_before + 4)
        assert caplog.text.count(f"no broker can serve it partition={TOPIC}-0") == said > 0
        cluster.send(TOPIC, [7])
        extents[-1] = whole
        cluster.settle(TOPIC)
        assert [damaged(each) for each in brokers] == [0, 0]
        assert [readiness(each) for each in brokers] == [(200, "ok", {})] * 2
        assert sorted(cluster.values(TOPIC)) == [0, 1, 2, 3, 4, 5, 7]


def produced_code(broker):
    with Wire(broker.address) as wire:
        (topic,) = wire.ask(PRODUCE, produce_request(9, Named(TOPIC), (0, batch())), 9).responses
    return ErrorCode(topic.partition_responses[0].error_code)


def fetched_code(broker):
    with Wire(broker.address) as wire:
        (topic,) = wire.ask(FETCH, fetch_request(12, (Named(TOPIC), (0, 0))), 12).responses
    return ErrorCode(topic.partitions[0].error_code)


def listed_code(broker):
    with Wire(broker.address) as wire:
        (topic,) = wire.ask(LIST_OFFSETS, list_offsets_request(TOPIC, (0, -1)), 7).topics
    return ErrorCode(topic.partitions[0].error_code)


def damaged(broker):
    return scrape(broker)("barnabas_cluster_partitions_damaged")


def readiness(broker, path="/readyz"):
    """Return the status code, the status word and the warnings of a probe."""
    answer = broker.call(pages(broker.server)[path])
    body = json.loads("".join(answer.body))
    return answer.status, body["status"], body.get("warnings", {})


def test_probes_report_unavailable_store_as_degraded():
    """A restart would not help any broker, and hidden brokers would make clients give up."""
    with WatchedCluster(2) as cluster:
        cluster.create_topic(TOPIC)
        cluster.settle(TOPIC)
        for number in range(2):
            cluster.cut_from_store(number)
        for broker in cluster.brokers:
            wait_until(lambda broker=broker: {"store", "lease"} <= {*readiness(broker)[2]})
            status, word, warnings = readiness(broker)
            assert (status, word) == (200, "degraded")
            assert warnings["store"].startswith("away for ")
            assert readiness(broker, "/livez") == (200, "ok", {})
        for number in range(2):
            cluster.mend_to_store(number)
        wait_until(lambda: [readiness(each) for each in cluster.brokers] == [(200, "ok", {})] * 2)


def test_a_producer_without_a_transactional_id_begins_around_the_end_of_a_lease():
    """The error NOT_COORDINATOR makes kafka-python (3.0.12) look for a coordinator without end."""
    with WatchedCluster(1) as cluster:
        (broker,) = cluster.brokers
        cluster.cut_from_store(0)
        wait_until(lambda: "lease" in readiness(broker)[2])
        with Wire(broker.address) as wire:
            wire.send(INIT_PRODUCER_ID, InitProducerIdRequest(None, 60_000), 4)
            assert wire.silent()
            cluster.mend_to_store(0)
            assert wire.receive().error_code == ErrorCode.NONE


def test_group_and_producer_state_is_refused_without_lease():
    with WatchedCluster(1) as cluster:
        cluster.create_topic(TOPIC)
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 2)
            deleting = DeleteGroupsRequest(["g"])
            wait_until(
                lambda: (
                    wire.ask(DELETE_GROUPS, deleting, 2).results[0].error_code
                    == ErrorCode.GROUP_ID_NOT_FOUND
                )
            )
            broker.server._member._membership.may_serve = lambda: False
            (deleted,) = wire.ask(DELETE_GROUPS, deleting, 2).results
            (described,) = wire.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(["g"]), 5).groups
            (consumers,) = wire.ask(
                CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(["g"]), 1
            ).groups
            (transaction,) = wire.ask(
                DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(["t"]), 0
            ).transaction_states
            offsets = wire.ask(OFFSET_DELETE, OffsetDeleteRequest("g", []), 0)
            producer = wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest("t", 60_000), 4)
            producers = wire.ask(DESCRIBE_PRODUCERS, describe_producers_request((TOPIC, 0)), 0)
            (fetched,) = wire.ask(OFFSET_FETCH, fetch_offsets_request("g"), 9).groups
    answers = (deleted, described, consumers, transaction, offsets, producer, fetched)
    assert [each.error_code for each in answers] == [ErrorCode.NOT_COORDINATOR] * 7
    assert codes_of(producers) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def delete_all_records(broker, topic):
    with Wire(broker.address) as wire:
        response = wire.ask(DELETE_RECORDS, delete_records_request({(topic, 0): -1}), 2)
    assert codes_of(response) == [ErrorCode.NONE]
