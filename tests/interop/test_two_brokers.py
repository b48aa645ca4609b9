"""Clients that know one of two brokers find the partitions of both."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from tests.broker.data_plane import Named, Wire, fetch_request
from tests.broker.several import pair, topic_id
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.clients import CLIENTS, Confluent, Sent

pytestmark = [
    pytest.mark.timeout(600),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

TOPIC = Named("t", topic_id(1))
PARTITIONS = 4


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_partition_is_written_and_read(client):
    with pair({TOPIC.name: PARTITIONS}) as (first, second):
        for partition in range(PARTITIONS):
            sent = [Sent(b"key", b"%d of %d" % (number, partition)) for number in range(50)]
            client.produce(first.bootstrap_servers, TOPIC.name, sent, "none", partition)
            received = client.consume(second.bootstrap_servers, TOPIC.name, partition, len(sent))
            assert [each.value for each in received] == [each.value for each in sent]
        for partition in range(PARTITIONS):
            logs = [each.log(TOPIC.name, partition) for each in (first, second)]
            leader = partition % 2
            assert logs[1 - leader] is None
            assert logs[leader].high_watermark == 50


def test_a_producer_with_old_metadata_is_sent_on():
    """It hears of the new leader, and where that is, with the error (KIP-951)."""
    with pair({TOPIC.name: PARTITIONS}) as (first, second):
        moved = 2  # The partition with index 1, which the second broker leads.
        view = first.view
        first.call(lambda: view.led_by(moved, 1))
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
        assert described.partitions[1].leader == 1
        first.call(lambda: view.led_by(moved, 2))
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
        assert second.log(TOPIC.name, 1).high_watermark == 100


def test_an_old_epoch_is_answered_as_kafka_does(tmp_path):
    """With the leader of today and where it is, in the versions that can say so."""
    told = []
    for kind in (ApacheKafka, BarnabasProcess):
        with kind(tmp_path / kind.__name__) as broker:
            topic = _new_topic(broker)
            broker.terminate()
            broker.start()
            told.append([_refused(broker, topic, version) for version in range(12, 19)])
    assert told[0] == told[1]
    assert told[0][0] == (ErrorCode.FENCED_LEADER_EPOCH, None, 0)
    assert told[0][-1] == (ErrorCode.FENCED_LEADER_EPOCH, (True, True), 1)


def _new_topic(broker):
    with Wire(_address(broker)) as wire:
        asked = CreatableTopic(TOPIC.name, num_partitions=1, replication_factor=1)
        (made,) = wire.ask(CREATE_TOPICS, CreateTopicsRequest([asked], 60_000), 7).topics
    assert made.error_code == 0
    return Named(TOPIC.name, made.topic_id)


def _address(broker):
    host, port = broker.bootstrap_servers.split(":")
    return host, int(port)


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
