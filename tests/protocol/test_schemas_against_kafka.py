"""Every schema, row by row, against the definitions inside Apache Kafka 4.3.0's own jars."""

from typing import Any

import pytest

from barnabas.protocol.generate.schema import Schema
from tests.counterparts.jars import kafka_jars
from tests.protocol.kafka_definitions import definition, read_definitions, schema_definition
from tests.protocol.schemas import FIRST_TAG_OF_OURS, SCHEMAS

SUFFIXES = {"request": "Request", "response": "Response", "key": "Key", "value": "Value"}
LONE_STRUCTURES = {
    "RequestHeader",
    "ConsumerProtocolSubscription",
    "ConsumerProtocolAssignment",
}
NOT_SERVED = {
    *("AddRaftVoter", "DescribeQuorum", "RemoveRaftVoter", "UnregisterBroker"),
    *("AlterReplicaLogDirs", "GetTelemetrySubscriptions", "PushTelemetry"),
    *(f"{verb}DelegationToken" for verb in ("Create", "Describe", "Expire", "Renew")),
    *(f"{verb}ShareGroupState" for verb in ("Delete", "Initialize", "Read", "Write")),
    *("ReadShareGroupStateSummary", "StreamsGroupDescribe", "StreamsGroupHeartbeat"),
}
"""APIs of Kafka's brokers that this one does not have."""
# Apache Kafka 4.3.0 skips tags that it does not know.
ADDED = {
    # Which broker opens a connection to another one, and what for.
    "ApiVersionsRequest": {
        "peer_hello",
        "peer_hello.node_id",
        "peer_hello.session",
        "peer_hello.purpose",
        "peer_hello.number",
    },
    # The target of a marker: a leader in another epoch must not write it, nor may it be written to
    # a topic that was created again under its name.
    "WriteTxnMarkersRequest": {"markers.topics.leader_epoch", "markers.topics.topic_id"},
    # Brokers whose configuration lacks the object store that the others have.
    "DescribeClusterResponse": {"lacks_object_store"},
    # A field that Apache Kafka drops at a restart and Barnabas keeps.
    "TransactionLogValue": {"last_producer_epoch"},
    # Whether partitions stay where they are moved to, and which do.
    "AlterPartitionReassignmentsRequest": {"topics.partitions.pinning"},
    "ListPartitionReassignmentsRequest": {"include_pins"},
    "ListPartitionReassignmentsResponse": {
        "pinned_topics",
        "pinned_topics.name",
        "pinned_topics.partitions",
        "pinned_topics.partitions.partition_index",
        "pinned_topics.partitions.node_id",
    },
    # The client that holds a transaction open.
    "DescribeTransactionsResponse": {
        "transaction_states.client_id",
        "transaction_states.client_host",
    },
}


@pytest.fixture(scope="module")
def documents():
    return read_definitions(kafka_jars())


def is_within(path: str, others: list[str]) -> bool:
    return any(path == other or path.startswith(f"{other}.") for other in others)


def kafka_name(schema: Schema, section: str) -> str:
    return schema.name + SUFFIXES.get(section, "")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
def test_a_schema_states_the_same_facts_as_kafka(documents, schema):
    for section in schema.sections:
        check_facts(documents, schema, section)


def check_facts(documents: dict[str, Any], schema: Schema, section: str) -> None:
    ours = schema_definition(schema, section)
    own = [row.path for row in ours.rows if row.tag is not None and row.tag >= FIRST_TAG_OF_OURS]
    rows = [row for row in ours.rows if not is_within(row.path, own)]
    theirs = definition(documents[kafka_name(schema, section)])
    assert ours._replace(rows=rows) == theirs
    added = {row.path for row in ours.rows} - {row.path for row in rows}
    assert added == ADDED.get(kafka_name(schema, section), set())


def test_every_message_that_a_client_or_coordinator_needs_has_a_schema(documents):
    wanted = set(LONE_STRUCTURES)
    for name, document in documents.items():
        if document["type"] == "request" and "broker" in document.get("listeners", []):
            api = name.removesuffix("Request")
            if api not in NOT_SERVED:
                wanted |= {name, f"{api}Response"}
        elif document["type"].startswith("coordinator-"):
            wanted.add(name)
    ours = {
        kafka_name(schema, section) for schema in SCHEMAS.values() for section in schema.sections
    }
    assert ours == wanted


def test_a_wrong_fact_is_noticed(documents):
    document = documents["HeartbeatRequest"]
    right = definition(document)
    for change in (
        {"type": "int64"},
        {"versions": "1+"},
        {"nullableVersions": "0+"},
        {"default": "7"},
        {"name": "Generation"},
    ):
        fields = [
            field | change if field["type"] == "int32" else field for field in document["fields"]
        ]
        assert definition(document | {"fields": fields}) != right
    assert definition(document | {"flexibleVersions": "3+"}) != right
    assert definition(document | {"validVersions": "0-5"}) != right
