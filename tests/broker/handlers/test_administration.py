"""Responses of one broker about directories, producers, replicas, quotas and ACLs.

tests/interop compares the responses with Apache Kafka's; the tests here inspect the broker, or
need a state that Apache Kafka does not reach.
"""

import pytest

from barnabas.broker.handlers.transactions import producer_states
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DELETE_ACLS, DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicPartitions,
)
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.log.transaction_marker import TransactionMarker
from tests.broker.harness import ROOT, Administration


def batch(*, count=1, producer_id=-1, epoch=-1, sequence=-1, transactional=False):
    records = [Record(offset, 1_700_000_000_000, b"k", b"v" * 100) for offset in range(count)]
    return memoryview(
        encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


@pytest.fixture
async def administration(administration):
    await administration.catalogue.create_topic("a", 2, {"internal.segment.bytes": "2000"})
    await administration.catalogue.create_topic("b", 1, {})
    return administration


# ------------------------------------------------------------------------------- DescribeLogDirs


async def sizes(administration, topics=None):
    response = await administration.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics), 5)
    (directory,) = response.results
    assert (response.error_code, directory.error_code, directory.log_dir) == (0, 0, ROOT)
    assert directory.is_cordoned is False
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in directory.topics
        for partition in topic.partitions
    }


async def test_sizes_follow_the_log_over_segments_and_its_start(administration):
    log = administration.catalogue.topics["a"].partitions[1].log
    appended_bytes = 0
    for _ in range(10):
        data = batch(count=5)
        log.append(data)
        appended_bytes += len(data)
    assert len(log.segments) > 2
    administration.logs.journal.flush()
    assert await sizes(administration) == {("a", 0): 0, ("a", 1): appended_bytes, ("b", 0): 0}
    log.delete_records(log.segments[-1].base_offset)
    administration.logs.journal.flush()
    log.drop_segments_below_start()
    assert await sizes(administration) == {
        ("a", 0): 0,
        ("a", 1): log.active.size_bytes,
        ("b", 0): 0,
    }


async def test_a_partition_named_twice_is_described_once(administration):
    topics = [DescribableLogDirTopic("a", [1, 0, 1]), DescribableLogDirTopic("a", [0])]
    assert await sizes(administration, topics) == {("a", 1): 0, ("a", 0): 0}
    response = await administration.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics), 5)
    (topic,) = response.results[0].topics
    assert len(topic.partitions) == 2


async def test_the_size_of_the_device():
    administration = Administration()
    administration.file_system.capacity_bytes = 1 << 30
    response = await administration.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), 4)
    (directory,) = response.results
    assert directory.total_bytes == 1 << 30
    assert 0 < directory.usable_bytes == administration.file_system.free_bytes("/")
    older = await administration.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), 3)
    assert (older.results[0].total_bytes, older.results[0].usable_bytes) == (-1, -1)
    administration.stop()


# ------------------------------------------------------------------------------ DescribeProducers


async def producers(administration, topic, index):
    request = DescribeProducersRequest([TopicRequest(topic, [index])])
    response = await administration.ask(DESCRIBE_PRODUCERS, request, 0)
    (partition,) = response.topics[0].partitions
    assert partition.partition_index == index
    return partition


async def test_an_open_transaction_shows_where_it_began(administration):
    log = administration.catalogue.topics["b"].partitions[0].log
    log.append(batch(count=4))
    log.append(batch(count=3, producer_id=7, epoch=2, sequence=0, transactional=True))
    administration.logs.journal.flush()
    (found,) = (await producers(administration, "b", 0)).active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (7, 2, 2)
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (-1, 4)
    assert found.last_timestamp == 1_700_000_000_000
    log.append_marker(TransactionMarker(7, 2, coordinator_epoch=5, commit=False))
    administration.logs.journal.flush()
    (found,) = (await producers(administration, "b", 0)).active_producers
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (5, -1)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [("a", 2, 3), ("a", -1, 3), ("nope", 0, 3), ("b d", 0, 17), ("", 0, 17), ("a", 0, 0)],
)
async def test_producers_of_what_is_not_there(administration, topic, index, code):
    partition = await producers(administration, topic, index)
    assert (partition.error_code, partition.active_producers) == (code, [])
    assert bool(partition.error_message) == bool(code)


async def test_an_answer_has_an_end(administration, monkeypatch):
    monkeypatch.setattr(producer_states, "PRODUCERS_PER_ANSWER_MAX", 2)
    log = administration.catalogue.topics["b"].partitions[0].log
    for producer_id in range(2):
        log.append(batch(producer_id=producer_id, epoch=0, sequence=0))
    request = DescribeProducersRequest([TopicRequest("b", [0, 0]), TopicRequest("b", [0])])
    response = await administration.ask(DESCRIBE_PRODUCERS, request, 0)
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    assert [each.error_code for each in partitions] == [0, 42, 42]
    assert [len(each.active_producers) for each in partitions] == [2, 0, 0]


# --------------------------------------------------------------------------------------- replicas


@pytest.mark.parametrize("version", range(3))
async def test_no_election_is_needed(administration, version):
    request = ElectLeadersRequest(0, [TopicPartitions("a", [0, 9]), TopicPartitions("x", [0])])
    response = await administration.ask(ELECT_LEADERS, request, version)
    assert response.error_code == 0
    results = {
        result.topic: result.partition_result for result in response.replica_election_results
    }
    assert [each.error_code for each in results["a"]] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [each.error_message for each in results["x"]] == ["No such topic as x"]


async def test_an_unknown_kind_of_election(administration):
    request = ElectLeadersRequest(7, [TopicPartitions("a", [0])])
    response = await administration.ask(ELECT_LEADERS, request, 2)
    (result,) = response.replica_election_results
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert result.partition_result[0].error_message == "Unknown election type 7"
    everything = await administration.ask(ELECT_LEADERS, ElectLeadersRequest(7, None), 2)
    assert everything.error_code == ErrorCode.INVALID_REQUEST
    assert everything.replica_election_results == []


# ---------------------------------------------------------------------------------------- quotas


async def alter_quota(administration, *operations):
    entry = EntryData([EntityData("user", "u")], [OpData(*each) for each in operations])
    request = AlterClientQuotasRequest([entry])
    (result,) = (await administration.ask(ALTER_CLIENT_QUOTAS, request, 1)).entries
    assert [(each.entity_type, each.entity_name) for each in result.entity] == [("user", "u")]
    return result.error_code, result.error_message


async def described(administration, *components, strict=False):
    request = DescribeClientQuotasRequest([ComponentData(*each) for each in components], strict)
    response = await administration.ask(DESCRIBE_CLIENT_QUOTAS, request, 1)
    assert response.error_code == 0
    return {
        tuple((each.entity_type, each.entity_name) for each in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }


async def test_quotas_are_set_and_removed(administration):
    bytes_in, bytes_out = ("producer_byte_rate", 5.0, False), ("consumer_byte_rate", 7.0, False)
    assert await alter_quota(administration, bytes_in, bytes_out) == (0, None)
    assert await described(administration) == {
        (("user", "u"),): {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}
    }
    assert await alter_quota(administration, ("producer_byte_rate", 0.0, True)) == (0, None)
    # Not there: no error, as in Kafka.
    assert await alter_quota(administration, ("no_such_key", 0.0, True)) == (0, None)
    assert await described(administration) == {(("user", "u"),): {"consumer_byte_rate": 7.0}}


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ([("user", "u")], "producer_byte_rate", 0.0),
        ([("user", "u")], "producer_byte_rate", 0.5),
        ([("user", "u")], "producer_byte_rate", float("nan")),
        ([("user", "u")], "request_percentage", float("inf")),
        ([("user", "u")], "request_percentage", -1.0),
        ([("user", "u")], "no_such_key", 1.0),
        ([("user", "u")], "connection_creation_rate", 1.0),
        ([("ip", "10.0.0.1")], "producer_byte_rate", 1.0),
        ([("ip", "no.such.host.example")], "connection_creation_rate", 1.0),
        ([("ip", "10.0.0.1"), ("user", "u")], "connection_creation_rate", 1.0),
        ([("nobody", "u")], "producer_byte_rate", 1.0),
        ([("user", "")], "producer_byte_rate", 1.0),
        ([("user", "u"), ("user", "v")], "producer_byte_rate", 1.0),
        ([], "producer_byte_rate", 1.0),
    ],
)
async def test_quotas_that_cannot_be(administration, entity, key, value):
    entry = EntryData([EntityData(*each) for each in entity], [OpData(key, value)])
    request = AlterClientQuotasRequest([entry])
    (result,) = (await administration.ask(ALTER_CLIENT_QUOTAS, request, 1)).entries
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert await described(administration) == {}


async def test_a_key_given_twice_and_a_trial(administration):
    twice = [("producer_byte_rate", 5.0, False), ("producer_byte_rate", 6.0, False)]
    assert (await alter_quota(administration, *twice))[0] == ErrorCode.INVALID_REQUEST
    entry = EntryData([EntityData("user", "u")], [OpData("request_percentage", 0.5)])
    request = AlterClientQuotasRequest([entry], validate_only=True)
    (result,) = (await administration.ask(ALTER_CLIENT_QUOTAS, request, 1)).entries
    assert result.error_code == 0
    assert await described(administration) == {}


async def test_filters_of_quotas(administration):
    entities = {
        "u": [("user", "u")],
        "any user": [("user", None)],
        "u as c": [("client-id", "c"), ("user", "u")],
        "c": [("client-id", "c")],
        "an address": [("ip", "10.0.0.1")],
    }
    for each in entities.values():
        key = "connection_creation_rate" if each[0][0] == "ip" else "producer_byte_rate"
        entry = EntryData([EntityData(*pair) for pair in each], [OpData(key, 1.0)])
        request = AlterClientQuotasRequest([entry])
        (result,) = (await administration.ask(ALTER_CLIENT_QUOTAS, request, 1)).entries
        assert result.error_code == 0, result.error_message

    async def found(*components, strict=False):
        keys = await described(administration, *components, strict=strict)
        return {name for name, each in entities.items() if tuple(each) in keys}

    assert await found() == set(entities)
    assert await found(strict=True) == set()
    assert await found(("user", 0, "u")) == {"u", "u as c"}
    assert await found(("user", 0, "u"), strict=True) == {"u"}
    assert await found(("user", 1, None)) == {"any user"}
    assert await found(("user", 2, None)) == {"u", "any user", "u as c"}
    assert await found(("user", 0, "u"), ("client-id", 0, "c"), strict=True) == {"u as c"}
    assert await found(("ip", 2, None)) == {"an address"}


@pytest.mark.parametrize(
    ("component", "code", "message"),
    [
        (("nope", 0, "x"), 35, "Unsupported entity type nope"),
        (("user", 9, None), 42, "Unknown match type 9"),
        (("", 2, None), 42, "Invalid empty entity type."),
    ],
)
async def test_a_filter_that_makes_no_sense(administration, component, code, message):
    request = DescribeClientQuotasRequest([ComponentData(*component)])
    response = await administration.ask(DESCRIBE_CLIENT_QUOTAS, request, 1)
    assert (response.error_code, response.error_message) == (code, message)
    assert response.entries is None


# --------------------------------------------------------------------------------- access control


async def test_security_is_disabled(administration):
    described = await administration.ask(DESCRIBE_ACLS, DescribeAclsRequest(1, operation=1), 3)
    assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert described.error_message == "No Authorizer is configured on the broker"
    created = await administration.ask(
        CREATE_ACLS, CreateAclsRequest([AclCreation(2, "t", 3, "User:a", "*", 3, 3)]), 3
    )
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED]
    deleted = await administration.ask(
        DELETE_ACLS, DeleteAclsRequest([DeleteAclsFilter(2, "t", 3, None, None, 3, 3)] * 2), 3
    )
    assert [each.error_code for each in deleted.filter_results] == [54, 54]
