"""The admin clients of the three libraries: topics, partitions, configurations, records."""

import asyncio
import time

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AiokafkaNewTopic
from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.interop.administration import TIMEOUT_S, admin, create
from tests.interop.clients import Confluent, Sent, kafka
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def result(futures):
    """The one result of a confluent-kafka admin call."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def test_confluent_creates_describes_grows_and_deletes(broker, topic):
    client = admin(broker.bootstrap_servers)
    create(broker.bootstrap_servers, topic, partitions=2, configs={"retention.ms": "123456"})
    described = result(client.describe_topics(TopicCollection([topic])))
    assert [partition.id for partition in described.partitions] == [0, 1]
    assert described.name == topic
    assert not described.is_internal
    result(client.create_partitions([NewPartitions(topic, 5)]))
    wait_until(
        lambda: len(client.list_topics(topic, TIMEOUT_S).topics[topic].partitions) == 5, "grown"
    )
    result(client.delete_topics([topic]))
    wait_until(lambda: topic not in client.list_topics(timeout=TIMEOUT_S).topics, "deleted")


def test_confluent_describes_the_cluster(broker):
    client = admin(broker.bootstrap_servers)
    cluster = client.describe_cluster().result(TIMEOUT_S)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap_servers]
    assert cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.cluster_id) >= 16


def test_confluent_alters_and_describes_configs(broker, create_topic):
    client = admin(broker.bootstrap_servers)
    topic = create_topic(retention_ms="5000")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = result(client.describe_configs([resource]))
    assert entries["retention.ms"].value == "5000"
    assert not entries["retention.ms"].is_default
    assert entries["cleanup.policy"].value == "delete"
    assert entries["cleanup.policy"].is_default
    changed = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    removed = ConfigEntry("retention.ms", "", incremental_operation=AlterConfigOpType.DELETE)
    altered = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[changed, removed])
    result(client.incremental_alter_configs([altered]))

    def current(name):
        return result(client.describe_configs([resource]))[name].value

    wait_until(lambda: current("max.message.bytes") == "2000", "altered")
    assert current("retention.ms") == "604800000"
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        Confluent().produce(broker.bootstrap_servers, topic, [Sent(None, b"x" * 3000)], "none", 0)


def test_confluent_describes_the_brokers_configs(broker):
    client = admin(broker.bootstrap_servers)
    node = client.describe_cluster().result(TIMEOUT_S).controller.id
    entries = result(client.describe_configs([ConfigResource(ResourceType.BROKER, str(node))]))
    assert entries["log.dirs"].value == str(broker.data_directory)
    assert entries["log.retention.hours"].value == "168"


def test_confluent_lists_offsets_and_deletes_records(broker, create_topic):
    client = admin(broker.bootstrap_servers)
    topic = create_topic(retention_ms="-1")  # For records of long ago.
    records = [Sent(None, b"%d" % i, (), 1_700_000_000_000 + i) for i in range(10)]
    Confluent().produce(broker.bootstrap_servers, topic, records, "none", 0)

    def offset(specification):
        return result(client.list_offsets({TopicPartition(topic, 0): specification})).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1_700_000_000_004)) == 4
    deleted = result(client.delete_records([TopicPartition(topic, 0, 7)]))
    assert deleted.low_watermark == 7
    assert offset(OffsetSpec.earliest()) == 7
    assert offset(OffsetSpec.latest()) == 10


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "configs", "error"),
    [
        ("taken", 1, 1, {}, "TOPIC_ALREADY_EXISTS"),
        ("replicated", 1, 3, {}, "INVALID_REPLICATION_FACTOR"),
        ("configured", 1, 1, {"no.such": "1"}, "INVALID_CONFIG"),
        ("mistyped", 1, 1, {"retention.ms": "soon"}, "INVALID_CONFIG"),
        ("no such name/", 1, 1, {}, "TOPIC_EXCEPTION"),
    ],
)
def test_confluent_gets_the_error_of_an_invalid_topic(
    broker, name, partitions, replicas, configs, error
):
    client = admin(broker.bootstrap_servers)
    new = NewTopic(name, partitions, replication_factor=replicas, config=configs)
    if name == "taken":
        result(client.create_topics([NewTopic(name, 1, replication_factor=1)]))
    with pytest.raises(KafkaException, match=error):
        result(client.create_topics([new]))


def test_confluent_gets_the_error_of_an_unknown_topic(broker):
    client = admin(broker.bootstrap_servers)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        result(client.delete_topics(["never-was"]))


def test_confluent_elects_leaders_that_are_there_already(broker, create_topic):
    topic = create_topic(partitions=2)
    client = admin(broker.bootstrap_servers)
    wait_until(
        lambda: len(client.list_topics(topic, TIMEOUT_S).topics[topic].partitions) == 2, "led"
    )
    places = [TopicPartition(topic, index) for index in range(2)]
    elected = client.elect_leaders(ElectionType.PREFERRED, places).result(TIMEOUT_S)
    assert {error.name() for error in elected.values()} == {"ELECTION_NOT_NEEDED"}


def test_confluent_creates_and_deletes_a_user(broker):
    """librdkafka ends the request with one byte more than its last field."""
    client = admin(broker.bootstrap_servers)
    mechanism = ScramMechanism.SCRAM_SHA_512
    user = UserScramCredentialUpsertion(
        "confluent", ScramCredentialInfo(mechanism, 4096), b"secret"
    )
    assert result(client.alter_user_scram_credentials([user])) is None
    assert list(client.describe_user_scram_credentials().result(TIMEOUT_S)) == ["confluent"]
    gone = UserScramCredentialDeletion("confluent", mechanism)
    assert result(client.alter_user_scram_credentials([gone])) is None


def test_confluent_finds_neither_users_nor_rules(broker):
    client = admin(broker.bootstrap_servers)
    assert client.describe_user_scram_credentials().result(TIMEOUT_S) == {}
    (future,) = client.describe_user_scram_credentials(["nobody"]).values()
    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        future.result(TIMEOUT_S)
    everything = AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY),
        *(None, None, AclOperation.ANY, AclPermissionType.ANY),
    )
    # librdkafka keeps SECURITY_DISABLED to itself here.
    assert client.describe_acls(everything).result(TIMEOUT_S) == []
    rule = AclBinding(
        *(ResourceType.TOPIC, "t", ResourcePatternType.LITERAL),
        *("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
        result(client.create_acls([rule]))


def test_kafka_python_creates_describes_and_deletes(broker, topic):
    client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        from kafka.admin import NewTopic

        client.create_topics([NewTopic(name=topic, num_partitions=3, replication_factor=1)])
        (described,) = client.describe_topics([topic])
        assert len(described["partitions"]) == 3
        assert topic in client.list_topics()
        client.delete_topics([topic])
        wait_until(lambda: topic not in client.list_topics(), "deleted")
    finally:
        client.close()


def test_aiokafka_creates_describes_and_deletes(broker, topic):
    async def scenario():
        client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await client.start()
        try:
            await client.create_topics([AiokafkaNewTopic(topic, 3, 1)])
            (described,) = await client.describe_topics([topic])
            assert len(described["partitions"]) == 3
            assert topic in await client.list_topics()
            await client.delete_topics([topic])
            deadline = time.monotonic() + 60
            while topic in await client.list_topics():
                assert time.monotonic() < deadline, "the topic stays listed"
                await asyncio.sleep(0.05)
        finally:
            await client.close()

    asyncio.run(scenario())
