"""The contents of a data directory with each kind of file: how clients write and read them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.transaction_client import TransactionClient
from tests.counterparts.wire_client import WireClient
from tests.interop.transactional import Confluent

TIMEOUT_S = 60
SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Settings of the broker, as old as the format: a later broker reads the same file of settings."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    **{f"codec-{codec}": (1, {}) for codec in CODECS},
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "compacted": (1, {"cleanup.policy": "compact"}),
    "segments": (2, {"segment.bytes": "1048576", "retention.ms": "-1"}),
    "transactions": (2, {}),
}
"""Number of partitions and settings of each topic."""
PINNED = "pinned"
"""The transactional ID of a transaction without a timeout (KIP-939), which stays open."""
LARGE_BYTES = 100_000


def fill(broker: BrokerProcess) -> None:
    """Write the contents, once each."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topics = [NewTopic(name, number, config=config) for name, (number, config) in TOPICS.items()]
    _wait_for(admin.create_topics(topics))
    for codec in CODECS:
        _produce(broker, f"codec-{codec}", _small(), compression=codec)
    _produce(broker, "append-time", _small())
    _produce(broker, "compacted", [(b"key-%d" % (n % 5), b"value-%d" % n) for n in range(50)])
    _produce(broker, "compacted", [(b"key-0", None)])
    for partition in range(2):
        large = [(b"%d" % number, b"x" * LARGE_BYTES) for number in range(25)]
        _produce(broker, "segments", large, partition=partition)
    _wait_for(admin.delete_records([TopicPartition("segments", 1, 15)]))
    _transactions(broker)
    places = [TopicPartition("codec-none", 0, 17), TopicPartition("segments", 1, 20)]
    _wait_for(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("readers", places)]))
    _rules(admin)
    quota = EntryData([EntityData("user", "alice")], [OpData("producer_byte_rate", 1e6)])
    with WireClient(broker) as client:
        (result,) = client.ask(ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest([quota]), 1).entries
    assert result.error_code == 0


def observe(broker: BrokerProcess) -> dict[str, Any]:
    """Read all of it with clients; return plain data."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    with WireClient(broker) as client:
        quotas = client.ask(DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(), 1).entries
        transactions = client.ask(LIST_TRANSACTIONS, ListTransactionsRequest(), 0)
    return {
        "settings": {name: _settings(admin, name) for name in TOPICS},
        "records": _records(
            broker,
            *((name, each) for name, (number, _) in TOPICS.items() for each in range(number)),
        ),
        "offsets": {group: _offsets(admin, group) for group in ("readers", "workers")},
        "transactions": {
            each.transactional_id: each.transaction_state
            for each in transactions.transaction_states
        },
        "acls": [
            [each.name, each.principal, each.host, each.operation.name, each.permission_type.name]
            for each in admin.describe_acls(_EVERY_ACL).result(TIMEOUT_S)
        ],
        "users": _users(admin),
        "quotas": [
            [[part.entity_type, part.entity_name] for part in each.entity]
            + [[value.key, value.value] for value in each.values]
            for each in quotas
        ],
    }


def continue_with(broker: BrokerProcess) -> None:
    """Abort the open transaction, and write behind the records; a reader must see it."""
    with TransactionClient(broker) as client:
        client.init(PINNED)
    place = "transactions", 0
    (before,) = _records(broker, place).values()
    assert before["read_committed"]["end"] == before["read_uncommitted"]["end"]
    producer = Confluent(broker.bootstrap_servers, "committed")
    producer.begin()
    producer.send(*place, b"later")
    producer.commit()
    (after,) = _records(broker, place).values()
    assert after["read_committed"]["count"] == before["read_committed"]["count"] + 1


_EVERY_ACL = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def _small() -> list[tuple[bytes | None, bytes | None]]:
    """Return records with each combination of keys and values."""
    keys = (None, b"", b"key")
    return [
        (keys[number % 3], (None, b"", b"value %d" % number)[number % 3]) for number in range(60)
    ]


def _produce(
    broker: BrokerProcess,
    topic: str,
    records: list[tuple[bytes | None, bytes | None]],
    *,
    partition: int = 0,
    compression: str = "none",
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "compression.type": compression,
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    for key, value in records:
        headers = [("trace", b"\0\1"), ("empty", None)]
        producer.produce(topic, value, key, partition, on_delivery=delivered, headers=headers)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def _transactions(broker: BrokerProcess) -> None:
    """Write a committed, an aborted and an open transaction; the first one has offsets."""
    committed = Confluent(broker.bootstrap_servers, "committed")
    committed.begin()
    committed.send("transactions", 0, b"one", b"two")
    committed.send("transactions", 1, b"three")
    committed.send_offsets({("codec-none", 0): 30}, "workers")
    committed.commit()
    aborted = Confluent(broker.bootstrap_servers, "aborted")
    aborted.begin()
    aborted.send("transactions", 0, b"never", b"seen")
    aborted.send_offsets({("codec-none", 0): 40}, "workers")
    aborted.abort()
    with TransactionClient(broker) as client:
        client.begin(PINNED, "transactions", 0, is_pinned=True)


def _rules(admin: AdminClient) -> None:
    """Add an ACL and a user with a SCRAM password."""
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders-",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    _wait_for(admin.create_acls([acl]))
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion("alice", credential, b"password", b"salt-of-alice")
    _wait_for(admin.alter_user_scram_credentials([user]))


def _wait_for(futures: Any) -> None:
    for future in futures.values():
        future.result(TIMEOUT_S)


def _settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return the settings that the topic was created with."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return {
        name: entry.value
        for name, entry in future.result(TIMEOUT_S).items()
        if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    }


def _users(admin: AdminClient) -> dict[str, list[list[Any]]]:
    found = admin.describe_user_scram_credentials().result(TIMEOUT_S)
    return {
        name: [[each.mechanism.name, each.iterations] for each in user.scram_credential_infos]
        for name, user in found.items()
    }


def _offsets(admin: AdminClient, group: str) -> dict[str, int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    places = future.result(TIMEOUT_S).topic_partitions
    return {f"{each.topic}-{each.partition}": each.offset for each in places}


def _records(broker: BrokerProcess, *places: tuple[str, int]) -> dict[str, Any]:
    """Return count, end and hash of each partition's records by isolation level."""
    found: dict[str, Any] = defaultdict(dict)
    for isolation in ("read_uncommitted", "read_committed"):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "without-offsets",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "check.crcs": True,
                "log_level": 0,
            }
        )
        try:
            read = _read(consumer, places)
        finally:
            consumer.close()
        for (topic, partition), (lines, end) in read.items():
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            found[f"{topic}-{partition}"][isolation] = {
                "count": len(lines),
                "first": int(lines[0].partition(" ")[0]),
                "end": end,
                "sha256": digest,
            }
    return dict(found)


def _read(
    consumer: Consumer, places: tuple[tuple[str, int], ...]
) -> dict[tuple[str, int], tuple[list[str], int]]:
    """Return a line for each record of each partition, and the offset at which it ends.

    All partitions are read at once: librdkafka takes a second for each new assignment.
    """
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])
    lines: dict[tuple[str, int], list[str]] = {place: [] for place in places}
    ends: dict[tuple[str, int], int] = {}
    while len(ends) < len(places):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"only {ends.keys()} of {places} have ended"
        place = message.topic(), message.partition()
        error = message.error()
        if error is None:
            lines[place].append(_line(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            ends[place] = message.offset()
        else:
            raise KafkaException(error)
    return {place: (lines[place], ends[place]) for place in places}


def _line(message: Message) -> str:
    value = message.value()
    digest = None if value is None else hashlib.sha256(value).hexdigest()
    fields = (message.timestamp(), message.key(), message.headers(), digest)
    return f"{message.offset()} {fields!r}"
