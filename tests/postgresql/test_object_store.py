"""Brokers as processes over PostgreSQL and a directory of objects, killed at any time."""

from __future__ import annotations

import contextlib
from collections import Counter

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.counterparts.mended_kafka_python import PatientClient
from tests.counterparts.postgresql_servers import Server
from tests.counterparts.wire_client import WireClient
from tests.postgresql.brokers import Member, running, start
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 4
TRANSACTIONS = 24
RECORDS = 8
SIZE = 4_000
KILLED_AT = (6, 12)


def members_over(server: Server, tmp_path, count: int) -> list[Member]:
    settings = {
        "barnabas.storage": f"file://{tmp_path}/objects",
        "barnabas.flush.object.min.bytes": "1000",
        "barnabas.flush.ms": "0",
        "barnabas.cache.max.bytes": "4194304",
    }
    return [Member(tmp_path / f"broker-{each}", server.url, **settings) for each in range(count)]


def leads_alone(member: Member) -> bool:
    """Return whether it is the only broker, and leads all partitions of the topic."""
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    with WireClient(member) as client:
        found = client.ask(METADATA, request, 9)
    (broker,) = found.brokers[:1]
    leaders = {each.leader_id for each in found.topics[0].partitions}
    return len(found.brokers) == 1 and leaders == {broker.node_id}


def read_all(bootstrap_servers: str, expected: int, partitions: int = PARTITIONS) -> list[bytes]:
    with contextlib.closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
    ) as consumer:
        # A consumer without a group that subscribes can miss its topic for minutes: docs/clients.
        consumer.assign([TopicPartition(TOPIC, index) for index in range(partitions)])
        found: list[bytes] = []

        def has_all() -> bool:
            for records in consumer.poll(timeout_ms=1000).values():
                found.extend(each.value for each in records)
            return len(found) >= expected

        wait_until(has_all, lambda: f"{len(found)} of {expected}")
        return found


def test_transactions_are_there_once_after_kills_and_a_restart_without_any_disk(server, tmp_path):
    """The logs are read back from the objects: by the other broker, and by one that is new."""
    members = members_over(server, tmp_path, 2)
    with running(members):
        addresses = [each.bootstrap_servers for each in members]
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=addresses)) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
        producer = KafkaProducer(
            bootstrap_servers=addresses,
            transactional_id="writer",
            linger_ms=5,
            kafka_client=PatientClient,
        )
        producer.init_transactions()
        committed: list[bytes] = []
        for number in range(TRANSACTIONS):
            values = [b"%d-%d " % (number, each) + bytes(SIZE) for each in range(RECORDS)]
            producer.begin_transaction()
            sent = []
            for each, value in enumerate(values):
                sent.append(producer.send(TOPIC, value, partition=each % PARTITIONS))
                if number in KILLED_AT and each == RECORDS // 2:
                    victim = members[KILLED_AT.index(number)]
                    victim.kill()
                    start([victim])
            if number % 5 == 4:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                assert all(each.succeeded() for each in sent)
                committed += values
        producer.close()
        assert Counter(read_all(addresses[0], len(committed))) == Counter(committed)
    objects = [each for each in (tmp_path / "objects").rglob("*") if each.is_file()]
    assert objects
    payloads = "SELECT coalesce(sum(octet_length(payload)), 0) FROM barnabas.objects"
    ((in_rows,),) = server.execute(payloads)
    sizes = "SELECT coalesce(sum(size_bytes), 0) FROM barnabas.objects WHERE kind = 'wal'"
    ((elsewhere,),) = server.execute(sizes)
    assert elsewhere > len(committed) * SIZE > in_rows
    (other,) = members_over(server, tmp_path / "new", 1)
    other.overrides["barnabas.storage"] = f"file://{tmp_path}/objects"
    with running([other]):
        # kafka-python raises UnknownBrokerIdError if a leader's broker leaves while it looks it up.
        wait_until(lambda: leads_alone(other), "the only broker, which leads all partitions")
        found = read_all(other.bootstrap_servers, len(committed))
        assert Counter(found) == Counter(committed)
