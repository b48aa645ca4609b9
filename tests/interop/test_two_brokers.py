"""Clients that know one of two brokers find the partitions of both."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.broker.coordination.shard import java_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from tests.broker.data_plane import Named, Wire, fetch_request
from tests.broker.moves import log_of
from tests.cluster.watched import alternating, topic_id
from tests.interop.clients import CLIENTS, Confluent, Sent, kafka
from tests.interop.recorded_kafka import Barnabas, plain
from tests.requests import create_topic
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(600),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

TOPIC = Named("t", topic_id(1))
PARTITIONS = 4


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_partition_is_written_and_read(client):
    with alternating({TOPIC.name: PARTITIONS}) as cluster:
        first, second = cluster.brokers
        for partition in range(PARTITIONS):
            sent = [Sent(b"key", b"%d of %d" % (number, partition)) for number in range(50)]
            client.produce(first.bootstrap_servers, TOPIC.name, sent, "none", partition)
            received = client.consume(second.bootstrap_servers, TOPIC.name, partition, len(sent))
            assert [each.value for each in received] == [each.value for each in sent]
        for partition in range(PARTITIONS):
            logs = [log_of(each, TOPIC.name, partition) for each in cluster.brokers]
            leader = partition % 2
            assert logs[1 - leader] is None
            assert logs[leader].high_watermark == 50


def test_a_producer_with_old_metadata_is_sent_on():
    """The producer gets the new leader and its address with the error (KIP-951)."""
    with alternating({TOPIC.name: PARTITIONS}) as cluster:
        first, second = cluster.brokers
        cluster.move(TOPIC.name, 1, to=0)
        cluster.settle(TOPIC.name)
        never_ms = 600_000
        producer = Producer(
            {
                "bootstrap.servers": first.bootstrap_servers,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": never_ms,
                "metadata.max.age.ms": never_ms,
                "linger.ms": 0,
            }
        )
        described = producer.list_topics(TOPIC.name, timeout=60).topics[TOPIC.name]
        assert described.partitions[1].leader == 0
        cluster.move(TOPIC.name, 1, to=1)
        cluster.settle(TOPIC.name)
        failed = []
        for number in range(100):
            producer.produce(
                TOPIC.name,
                b"%d" % number,
                partition=1,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert producer.flush(60) == 0
        assert failed == []
        received = Confluent().consume(second.bootstrap_servers, TOPIC.name, 1, 100)
        assert [each.value for each in received] == [b"%d" % number for number in range(100)]
        assert log_of(second, TOPIC.name, 1).high_watermark == 100


def test_an_old_epoch_is_answered_as_kafka_does(kafka, tmp_path):
    """The newer versions name the current leader and its address."""
    with Barnabas(tmp_path) as broker:
        ours = _refusals(broker)
    assert plain(ours) == kafka.observe("old epoch", _refusals)
    assert ours[0] == (ErrorCode.FENCED_LEADER_EPOCH, None, 0)
    assert ours[-1] == (ErrorCode.FENCED_LEADER_EPOCH, (True, True), 1)


def _refusals(broker):
    """Return the response of each version to an epoch from before a restart."""
    topic = _new_topic(broker)
    broker.terminate()
    broker.start()
    # Apache Kafka says that it is there a moment before it leads the partition.
    wait_until(lambda: _is_led(broker, topic), "the partition is led")
    return [_refused(broker, topic, version) for version in range(12, 19)]


def _new_topic(broker):
    with Wire(_address(broker)) as wire:
        return Named(TOPIC.name, create_topic(wire, TOPIC.name))


def _address(broker):
    host, port = broker.bootstrap_servers.split(":")
    return host, int(port)


def _is_led(broker, topic):
    with Wire(_address(broker)) as wire:
        response = wire.ask(FETCH, fetch_request(12, (topic, FetchPartition(0))), 12)
    return not response.responses[0].partitions[0].error_code


def _refused(broker, topic, version):
    """Error, whether the answer names this broker in its newest epoch, how many addresses."""
    asked = FetchPartition(0, current_leader_epoch=0)
    with Wire(_address(broker)) as wire:
        response = wire.ask(FETCH, fetch_request(version, (topic, asked)), version)
    (partition,) = response.responses[0].partitions
    leader = partition.current_leader
    assert all((each.host, each.port) == _address(broker) for each in response.node_endpoints)
    named = None if leader is None else (leader.leader_id >= 0, leader.leader_epoch > 0)
    return partition.error_code, named, len(response.node_endpoints)


@pytest.mark.parametrize("first_asked", [0, 1])
def test_groups_of_both_coordinators(first_asked):
    """Members, offsets and the list of groups are the same at each broker."""
    topics = {TOPIC.name: PARTITIONS, "__consumer_offsets": 4}
    groups = [f"group-{number}" for number in range(8)]
    with alternating(topics) as cluster:
        brokers = cluster.brokers
        servers = brokers[first_asked].bootstrap_servers
        for partition in range(PARTITIONS):
            Confluent().produce(servers, TOPIC.name, [Sent(b"k", b"v")] * 5, "none", partition)
        for group in groups:
            assert _read_by(servers, group) == 5 * PARTITIONS
            assert _read_by(servers, group, more=False) == 0
        listed = [{each for each in groups if _coordinates(broker, each)} for broker in brokers]
        assert all(listed)
        assert listed[0] | listed[1] == set(groups)
        assert not listed[0] & listed[1]
        admin = AdminClient({"bootstrap.servers": servers})
        found = admin.list_consumer_groups().result(30)
        assert found.errors == []
        assert {each.group_id for each in found.valid} == set(groups)


def _read_by(servers, group, *, more=True):
    """Read as a member of a group, to the end, and commit; return how many records there were."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.subscribe([TOPIC.name])
    read, ended, deadline = 0, set(), time.monotonic() + 60
    try:
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, f"{read} read, ended {ended}"
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                read += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        if more:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return read


def _coordinates(broker, group):
    return broker.call(
        lambda: (
            not broker.server.groups.refusal(group)
            and group in broker.server.groups.machine_of(group).groups
        )
    )


def _write_with_confluent(servers, key, group):
    """Begin a transaction, write to every partition and commit offsets; return how it ends."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": key, "linger.ms": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(3 * PARTITIONS):
        producer.produce(TOPIC.name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    consumer.subscribe([TOPIC.name])
    offsets = [TopicPartition(TOPIC.name, 0, 5)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
    consumer.close()
    return lambda: producer.commit_transaction(60)


def _write_with_kafka_python(servers, key, group):
    producer = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id=key)
    producer.init_transactions()
    producer.begin_transaction()
    sent = [
        producer.send(TOPIC.name, b"%d" % number, partition=number % PARTITIONS)
        for number in range(3 * PARTITIONS)
    ]
    for each in sent:
        each.get(60)
    offsets = {kafka.TopicPartition(TOPIC.name, 0): kafka.OffsetAndMetadata(5, "", -1)}
    producer.send_offsets_to_transaction(offsets, group)

    def end():
        producer.commit_transaction()
        producer.close()

    return end


@pytest.mark.parametrize("coordinator", [1, 2])
@pytest.mark.parametrize(
    "write", [_write_with_confluent, _write_with_kafka_python], ids=["confluent", "kafka-python"]
)
def test_a_transaction_is_written_at_both_brokers(write, coordinator):
    """Each leader asks the coordinator, or is it; so does the group's coordinator."""
    topics = {TOPIC.name: PARTITIONS, "__transaction_state": 2, "__consumer_offsets": 2}
    key, group = _falls_to("id", coordinator), _falls_to("group", 3 - coordinator)
    with alternating(topics) as cluster:
        brokers = cluster.brokers
        end = write(brokers[0].bootstrap_servers, key, group)
        transactions = brokers[coordinator - 1].server.transactions
        transaction = brokers[coordinator - 1].call(lambda: transactions.transaction(key))
        places = {(TOPIC.name, index) for index in range(PARTITIONS)}
        assert transaction.partitions == places | {("__consumer_offsets", 2 - coordinator)}
        for index in range(PARTITIONS):
            log = log_of(brokers[index % 2], TOPIC.name, index)
            assert log.next_offset == 3
            assert log.producers.has_open_transaction(transaction.producer_id)
        # One that asks knows what was verified, and of the commit no guard is left.
        counts = [
            broker.call(lambda b=broker: len(b.server.remote_coordinators.guards))
            for broker in brokers
        ]
        assert counts == ([0, 2] if coordinator == 1 else [2, 0])
        end()


def _falls_to(name, broker):
    keys = (f"{name}-{number}" for number in range(100))
    return next(each for each in keys if java_hash(each) % 2 == broker - 1)
