"""Brokers that are put together as `barnabas serve` does it, over a store in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Sequence
from functools import partial

import pytest
from kafka import KafkaProducer

from barnabas.broker.cluster.membership import NodeIdTaken
from barnabas.broker.config.types import ConfigError
from barnabas.broker.http.pages import pages
from barnabas.broker.opening.member import ClusterMember
from barnabas.broker.runtime.stage import Stage
from barnabas.broker.server import BrokerServer
from barnabas.broker.topics.resources import ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.offset_delete import OFFSET_DELETE, OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.cluster_index import Assignment
from barnabas.storage.log_index import LogBeginning
from barnabas.storage.memory_base import MemoryStore
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.simulated import SimulatedFileSystem
from barnabas.testing import Broker
from tests.broker.cluster.members import (
    CLUSTER_ID,
    MemberBroker,
    all_served,
    end_lease,
    members,
    send,
    values_in,
)
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
from tests.waiting import until, wait_until

TOPIC = "orders"
PARTITIONS = 6


def test_what_is_made_at_one_broker_is_served_by_all():
    with members() as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        assert all(each.leads(TOPIC) for each in brokers), "not spread"
        send(brokers[1], TOPIC, range(60), PARTITIONS)
        assert sorted(values_in(brokers[2], TOPIC, PARTITIONS)) == list(range(60))
        topic_id = brokers[0].server.catalogue.topic(TOPIC).topic_id

        async def delete() -> None:
            await brokers[0].server.catalogue.delete_topic(topic_id)

        brokers[0]._do(delete())
        wait_until(lambda: all(each.server.catalogue.topic(TOPIC) is None for each in brokers))


def test_a_member_that_is_made_is_none_of_the_cluster_before_it_registers(monkeypatch):
    found = []
    register = ClusterMember.register

    def noted(member: ClusterMember) -> None:
        others = member._ways.errands.picture(0).members
        found.append((member._membership.session, [each.node_id for each in others]))
        register(member)

    monkeypatch.setattr(ClusterMember, "register", noted)
    with members(2) as (_, brokers):
        assert found == [(None, []), (None, [brokers[0].node_id])]


def words_of_events(broker, kind):
    events = broker.call(lambda: [*broker.server.events.newest_first()])
    return [each.words for each in events if each.kind == kind]


def one_event(broker, kind) -> str:
    wait_until(lambda: words_of_events(broker, kind))
    (words,) = words_of_events(broker, kind)
    return words


def test_who_is_killed_is_followed_when_its_lease_is_over():
    config = {"barnabas.lease.ms": "1000"}
    with members(**config) as (store, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        send(brokers[0], TOPIC, range(60), PARTITIONS)
        session = brokers[0].session
        gone = f"node {brokers[0].node_id} is out of service"
        brokers[0].crash()
        end_lease(store, session)
        all_served(brokers[1:], TOPIC, PARTITIONS)
        for broker in brokers[1:]:
            assert one_event(broker, "broker_gone") == gone
            joined = f"node {broker.node_id}, session {broker.session}"
            assert one_event(broker, "cluster_joined") == joined
            assert "partitions are to be led here" in words_of_events(broker, "taking_over")[0]
        assert f"node {brokers[2].node_id} is in service" in words_of_events(
            brokers[1], "broker_came"
        )
        send(brokers[1], TOPIC, range(60, 120), PARTITIONS)
        assert sorted(values_in(brokers[2], TOPIC, PARTITIONS)) == list(range(120))


def test_who_ends_in_order_is_followed_at_once():
    with members() as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        send(brokers[0], TOPIC, range(60), PARTITIONS)
        brokers[0].stop()
        all_served(brokers[1:], TOPIC, PARTITIONS)  # Its lease would have been a minute longer.
        assert sorted(values_in(brokers[2], TOPIC, PARTITIONS)) == list(range(60))


def test_a_broker_whose_session_was_ended_begins_anew():
    with members(**{"barnabas.lease.ms": "1000"}) as (store, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        send(brokers[0], TOPIC, range(60), PARTITIONS)
        for broker in brokers[:2]:
            former = broker.session
            store.index.fence(former)
            # The next flush finds out, whatever heartbeats do.
            send(broker, TOPIC, range(60), PARTITIONS)
            wait_until(lambda broker=broker, former=former: broker.session != former)
            lost, begun = (one_event(broker, kind) for kind in ("session_lost", "session_begun"))
            assert (f"session {former}:" in lost, begun) == (True, f"session {broker.session}")
        all_served(brokers, TOPIC, PARTITIONS)
        assert sorted(values_in(brokers[2], TOPIC, PARTITIONS)) == sorted([*range(60)] * 3)


def test_a_broker_that_leads_nothing_learns_from_its_heartbeat():
    with members(1, **{"barnabas.lease.ms": "1000"}) as (store, (broker,)):
        former = broker.session
        store.index.fence(former)
        wait_until(lambda: broker.session != former)
        broker.create_topic(TOPIC, 1)
        all_served([broker], TOPIC, 1)
        send(broker, TOPIC, range(3), 1)


def test_a_session_that_ends_before_anything_was_done_in_it_is_followed_by_another():
    with members(1, **{"barnabas.lease.ms": "1000"}) as (store, (broker,)):
        member = broker.server._member
        membership = member._membership
        begin, short = membership.new_session, []

        def new_session(index):
            session = begin(index)
            if not short:
                short.append(session)
                store.index.fence(session)
                membership.beat_once()  # It is heard of before its broker can begin it.
                wait_until(lambda: member._sessions._ended_session == session)
                wait_until(lambda: broker.call(member._around.logs.journal.newest_group) is None)
            return session

        membership.new_session = new_session
        former = broker.session
        store.index.fence(former)
        # By itself: within a minute something else would be written, and find it out.
        wait_until(
            lambda: broker.session not in {former, *short}, lambda: broker.session, seconds=30
        )
        broker.create_topic(TOPIC, 1)
        all_served([broker], TOPIC, 1)
        send(broker, TOPIC, range(3), 1)


def test_a_partition_that_another_is_to_lead_is_handed_over():
    with members() as (store, brokers):
        brokers[0].create_topic(TOPIC, 1)
        all_served(brokers, TOPIC, 1)
        send(brokers[0], TOPIC, range(10), 1)
        (partition,) = brokers[0].server.catalogue.topic(TOPIC).partitions
        for broker in brokers:
            store.index.want({partition.partition_id: broker.node_id})
            wait_until(lambda broker=broker: broker.leads(TOPIC) == {0})
        all_served(brokers, TOPIC, 1)
        send(brokers[0], TOPIC, range(10, 20), 1)
        assert values_in(brokers[1], TOPIC, 1) == list(range(20))


def test_what_comes_back_while_it_is_handed_over_goes_again():
    with members(2) as (store, brokers):
        brokers[0].create_topic(TOPIC, 1)
        all_served(brokers, TOPIC, 1)
        giver, taker = sorted(brokers, key=lambda each: not each.leads(TOPIC))
        (partition,) = giver.server.catalogue.topic(TOPIC).partitions
        partition_id = partition.partition_id
        ways = giver.server._member._errands._index
        asked, answered = threading.Event(), threading.Event()
        hand_over = ways.hand_over

        def hand_over_late(*arguments):
            asked.set()
            assert answered.wait(60)
            hand_over(*arguments)

        ways.hand_over = hand_over_late
        store.index.want({partition_id: taker.node_id})
        assert asked.wait(60)
        epoch = store.index.partition(partition_id).leader_epoch
        assert store.index.assign([Assignment(partition_id, giver.session, epoch)])
        store.index.want({partition_id: taker.node_id})
        view = giver.server.view
        wait_until(
            lambda: (
                giver.call(lambda: (view.leader_of(partition_id).epoch, view.wanted(partition_id)))
                == (epoch + 1, taker.node_id)
            )
        )
        answered.set()
        wait_until(lambda: taker.leads(TOPIC) == {0})


def test_a_version_of_the_metadata_that_a_failover_took_back_is_followed_when_it_comes_again():
    with members(2) as (store, (maker, follower)):
        version = store.index.picture(0).metadata_version
        images, loads = follower.server.metastore, []
        load = images.load

        def counted():
            image = load()
            loads.append(image.version)
            return image

        images.load = counted
        store.index.metadata_changed(version + 1)
        wait_until(lambda: loads)
        assert loads[0] == version, "it is not what was seen"
        wait_until(lambda: len(loads) > 1 or not follower.server._member._is_following())
        store.index._metadata_version = version
        maker.create_topic(TOPIC, 1)
        assert store.index.picture(0).metadata_version == version + 1
        wait_until(
            lambda: follower.call(lambda: follower.server.catalogue.topic(TOPIC)) is not None
        )


def test_topics_of_the_configuration_are_made_once(caplog):
    topics = f"{TOPIC}:2:3:compact,others:1:-1"
    with members(2, **{"barnabas.create.topics": topics}) as (_, brokers):
        all_served(brokers, TOPIC, 2)
        for broker in brokers:
            catalogue = broker.server.catalogue
            own = {"cleanup.policy": "compact", "barnabas.replication.factor": "3"}
            assert dict(catalogue.topic(TOPIC).configs) == own
            assert not dict(catalogue.topic("others").configs)
    assert "one replica" not in caplog.text


def test_a_broker_that_is_cordoned_by_its_configuration_leads_nothing_until_that_is_undone():
    cordoned = {"cordoned.log.dirs": "*"}
    store = MemoryStore(CLUSTER_ID)
    with (
        contextlib.closing(store),
        MemberBroker(store) as one,
        MemberBroker(store, **cordoned) as two,
    ):
        one.create_topic(TOPIC, 2)
        all_served([one], TOPIC, 2)
        setting = AlterableConfig("cordoned.log.dirs", 0, "")
        resource = AlterConfigsResource(ResourceType.BROKER, str(two.node_id), [setting])
        with Wire(two.address) as wire:
            asked = IncrementalAlterConfigsRequest([resource])
            (answer,) = wire.ask(INCREMENTAL_ALTER_CONFIGS, asked, 1).responses
        assert answer.error_code == ErrorCode.NONE
        wait_until(lambda: [len(each.leads(TOPIC)) for each in (one, two)] == [1, 1])


def test_two_brokers_with_one_node_id_do_not_take_turns(caplog):
    """Who was there first ends, and says why."""
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    store = MemoryStore(CLUSTER_ID)
    config = {"node.id": "5", "barnabas.lease.ms": "1000"}
    with contextlib.closing(store), MemberBroker(store, **config) as first:
        with MemberBroker(store, **config) as second:
            wait_until(lambda: first.server.failure is not None)
            assert isinstance(first.server.failure, NodeIdTaken)
            assert "node.id=5" in str(first.server.failure)
            (said,) = (each for each in caplog.messages if each.startswith("broker stops: "))
            assert said == f"broker stops: {first.server.failure}"
            opened = [each for each in caplog.messages if each.startswith("storage opened")]
            assert [" node_id=5 " in each for each in opened] == [True, True]
            second.create_topic(TOPIC, 1)
            all_served([second], TOPIC, 1)
        first.crash()


def test_an_end_does_not_wait_for_a_store_that_is_away():
    with members(2, **{"barnabas.lease.ms": "300000"}) as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        brokers[0].base.cut()
        began_s = time.monotonic()
        brokers[0].stop()
        assert time.monotonic() - began_s < 100, "it waits for the store"


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
        assert not store.index.picture(0).members


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
        assert not other.index.picture(0).members, "it has registered"
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


# ----------------------------------------------------------------------------- a store that is away


HTTP = {"barnabas.http.listener": "127.0.0.1:0"}


async def test_while_the_store_is_away_a_start_waits_and_says_so(caplog, monkeypatch):
    monkeypatch.setattr("barnabas.broker.opening.store_watch.PATIENCE_S", 0.0)
    monkeypatch.setattr("barnabas.broker.opening.store_watch.SAID_EVERY_S", 0.0)
    caplog.set_level(logging.INFO, "barnabas.broker")
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store):
        base = store.base()
        base.cut()
        server = server_of(base, SimulatedFileSystem(), **HTTP)
        starting = server_task(server)
        await until(lambda: "does not answer: it was cut off" in caplog.text)
        await until(lambda: "is away for_s=" in caplog.text)
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


def test_a_crash_leaves_no_thread_though_the_store_is_away():
    before = set(threading.enumerate())
    with members(2) as (_, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        brokers[0].base.cut()
        brokers[0].crash()
    wait_until(partial(no_more_than, before))


def no_more_than(before: set[threading.Thread]) -> bool:
    return set(threading.enumerate()) <= before


def test_the_store_keeps_nothing_of_deleted_records_but_where_the_log_goes_on():
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store), MemberBroker(store, **{"node.id": "5"}) as broker:
        broker.create_topic(TOPIC, 1)
        all_served([broker], TOPIC, 1)
        send(broker, TOPIC, range(20), 1)
        (partition,) = broker.server.catalogue.topic(TOPIC).partitions
        row = store.index.rows[partition.partition_id]
        assert row.extents
        delete_all_records(broker, TOPIC)
        wait_until(lambda: broker.clock.advance(seconds=10) or not row.extents)
        broker.restart()  # Its directory is a cache: the log comes back from the store.
        all_served([broker], TOPIC, 1)
        send(broker, TOPIC, range(20, 25), 1)
        assert values_in(broker, TOPIC, 1) == [20, 21, 22, 23, 24]


DAMAGES = {
    "a length": lambda data: data[:8] + b"\xff" * 4 + data[12:],
    "cut off": lambda data: data[:8],
    "a bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_one_damaged_log_ends_no_broker(monkeypatch, caplog, damage):
    monkeypatch.setattr("barnabas.broker.topics.leadership.DAMAGED_AGAIN_S", 0.1)
    with members(2) as (store, brokers):
        brokers[0].create_topic(TOPIC, 2)
        all_served(brokers, TOPIC, 2)
        send(brokers[0], TOPIC, range(6), 2)
        partition, _ = brokers[0].server.catalogue.topic(TOPIC).partitions
        extents = store.index.rows[partition.partition_id].extents
        whole = extents[-1]
        extents[-1] = whole._replace(data=damage(whole.data))
        reads: list[int] = []
        beginnings = store.index.beginnings

        def noted_beginnings(partition_ids: Sequence[int], **limits: int) -> list[LogBeginning]:
            reads.extend(each for each in partition_ids if each == partition.partition_id)
            return beginnings(partition_ids, **limits)

        store.index.beginnings = noted_beginnings
        for broker in [each for each in brokers if 0 in each.leads(TOPIC)]:
            store.index.fence(broker.session)
        wait_until(lambda: [index for each in brokers for index in each.leads(TOPIC)] == [1])
        wait_until(lambda: sorted(map(damaged, brokers)) == [0, 1])
        (leader,) = [each for each in brokers if damaged(each)]
        words = f"damaged in the store, not served: {TOPIC}-0"
        assert readiness(leader) == (200, "degraded", {"partitions": words})
        for answered in (produced_code, fetched_code, listed_code):
            assert answered(leader) is ErrorCode.KAFKA_STORAGE_ERROR
        read_before = len(reads)
        said = caplog.text.count(f"nor can be by others partition={TOPIC}-0")
        wait_until(lambda: len(reads) > read_before + 4)
        assert caplog.text.count(f"nor can be by others partition={TOPIC}-0") == said > 0
        send(brokers[0], TOPIC, range(7, 8), 2)
        extents[-1] = whole
        all_served(brokers, TOPIC, 2)
        assert [damaged(each) for each in brokers] == [0, 0]
        assert [readiness(each) for each in brokers] == [(200, "ok", {})] * 2
        assert sorted(values_in(brokers[1], TOPIC, 2)) == [0, 1, 2, 3, 4, 5, 7]


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
    """Return what a probe is told: the status, the word for it, and what to look after."""
    answer = broker.call(pages(broker.server)[path])
    body = json.loads("".join(answer.body))
    return answer.status, body["status"], body.get("warnings", {})


def test_probes_while_the_store_is_away():
    """No broker is started again for it, nor hidden from clients, which could only give up."""
    with members(2, **{"barnabas.lease.ms": "2000"}) as (_, brokers):
        brokers[0].create_topic(TOPIC, 1)
        all_served(brokers, TOPIC, 1)
        for broker in brokers:
            broker.base.cut()
        for broker in brokers:
            wait_until(lambda broker=broker: {"store", "lease"} <= {*readiness(broker)[2]})
            status, word, warnings = readiness(broker)
            assert (status, word) == (200, "degraded")
            assert warnings["store"].startswith("away for ")
            assert readiness(broker, "/livez") == (200, "ok", {})
        for broker in brokers:
            broker.base.mend()
        wait_until(lambda: [readiness(each) for each in brokers] == [(200, "ok", {})] * 2)


def test_a_producer_without_a_transactional_id_begins_around_the_end_of_a_lease():
    """kafka-python (3.0.12), told NOT_COORDINATOR, asks for the coordinator of no id, for ever."""
    with members(1, **{"barnabas.lease.ms": "1000"}) as (_, (broker,)):
        broker.create_topic(TOPIC, 1)
        all_served([broker], TOPIC, 1)
        broker.base.cut()
        wait_until(lambda: "lease" in readiness(broker)[2])
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        sent = producer.send(TOPIC, b"first")
        sockets = broker.server.sockets
        wait_until(
            lambda: broker.call(
                lambda: INIT_PRODUCER_ID.name in {each.last_api for each in sockets.connections}
            )
        )
        broker.base.mend()
        assert sent.get(60).offset == 0
        producer.close()


def test_what_is_known_of_groups_and_producers_is_not_told_without_a_lease():
    store = MemoryStore(CLUSTER_ID)
    with contextlib.closing(store), MemberBroker(store) as broker:
        broker.create_topic(TOPIC, 1)
        all_served([broker], TOPIC, 1)
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
            (topic,) = wire.ask(
                DESCRIBE_PRODUCERS, DescribeProducersRequest([TopicRequest(TOPIC, [0])]), 0
            ).topics
            own = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
            (fetched,) = wire.ask(OFFSET_FETCH, own, 9).groups
    answers = (deleted, described, consumers, transaction, offsets, producer, fetched)
    assert [each.error_code for each in answers] == [ErrorCode.NOT_COORDINATOR] * 7
    assert [each.error_code for each in topic.partitions] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def delete_all_records(broker, topic):
    partition = DeleteRecordsPartition(0, -1)
    asked = DeleteRecordsRequest([DeleteRecordsTopic(topic, [partition])], 30_000)
    wire = Wire(broker.address)
    with contextlib.closing(wire.socket):
        (answer,) = wire.ask(DELETE_RECORDS, asked, 2).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE
