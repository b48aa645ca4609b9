"""Connected clients and their topics, shown after requests of third-party clients."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition

from barnabas.broker.api.client_seen import KEPT_MOST, ClientSeen
from barnabas.broker.api.fetch_sessions import FetchPlan
from barnabas.broker.console.pages import clients
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import open_transaction, write
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def broker():
    with Broker(config=HTTP) as running:
        running.create_topic("read", partitions=3)
        yield running


def rows(broker, client, **query):
    return fetch(broker, "clients", filter=client, **query)["items"]


def readers(broker, client, **query):
    return fetch(broker, "readers", filter=client, **query)["items"]


@contextlib.contextmanager
def reader_of(broker, client, group=None, isolation="read_committed"):
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "client.id": client,
        "group.id": group or f"group-of-{client}",
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(config)
    if group is None:
        consumer.assign([TopicPartition("read", each, 0) for each in range(3)])
    else:
        consumer.subscribe(["read"])
    try:
        yield consumer
    finally:
        consumer.close()


def test_connection_shows_its_software_and_address(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "till"})
    for _ in range(5):
        producer.produce("read", b"x" * 1000, partition=0)
    assert producer.flush(30) == 0
    found = rows(broker, "till")
    assert {each["software"] for each in found} == {"confluent-kafka-python"}
    assert all(each["software_version"] for each in found)
    assert {each["address"].rpartition(":")[0] for each in found} == {"127.0.0.1"}
    assert {(each["listener"], each["user"]) for each in found} == {("PLAINTEXT", "User:ANONYMOUS")}
    (writing,) = [each for each in found if each["last_api"] == "Produce"]
    assert writing["received_bytes"] > 5000
    assert 0 < writing["received_bytes_per_s"] <= writing["received_bytes"]
    assert writing["requests"] > 0
    assert writing["idle_ms"] < 60_000
    assert (writing["isolation_seen"], writing["partitions"], writing["refused"]) == (None, 0, 0)
    assert (writing["in_group"], writing["waits_for"]) == (False, [])
    assert [each["connection"] for each in found] == sorted(each["connection"] for each in found)
    by_traffic = rows(broker, "till", sort="-received_bytes")
    assert by_traffic[0]["connection"] == writing["connection"]
    assert rows(broker, "nobody-at-all") == []
    first = fetch(broker, "clients", filter="till", limit=1)
    if len(found) > 1:
        rest = fetch(broker, "clients", filter="till", after=first["next"])
        assert [each["connection"] for each in first["items"] + rest["items"]] == [
            each["connection"] for each in found
        ]


def test_a_rate_is_of_the_time_between_two_looks(broker, monkeypatch):
    monkeypatch.setattr(clients, "SAMPLE_SECONDS", 0.0)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "pulse"})

    def rate():
        return max((each["received_bytes_per_s"] for each in rows(broker, "pulse")), default=0)

    def sends():
        producer.produce("read", b"y" * 100_000, partition=0)
        assert producer.flush(30) == 0
        return rate() > 0

    wait_until(sends)
    wait_until(lambda: rate() == 0)


def test_readers_in_no_group(broker):
    """Position, and lag divided as that of a group is."""
    write(broker, "read", 10, partition=1)
    with (
        reader_of(broker, "alone") as consumer,
        open_transaction(broker, "holder", "read", 0),
    ):
        assert consumer.poll(30) is not None
        wait_until(lambda: any(each["lag"] == 0 for each in readers(broker, "alone")))
        wait_until(
            lambda: all(each["position"] == each["end_offset"] for each in readers(broker, "alone"))
        )
        found = readers(broker, "alone", without_group="true")
        assert [(each["topic"], each["partition"]) for each in found] == [
            ("read", each) for each in range(3)
        ]
        assert {each["isolation_seen"] for each in found} == {"read_committed"}
        assert {each["in_group"] for each in found} == {False}
        with open_transaction(broker, "holder-2", "read", 4):
            wait_until(lambda: readers(broker, "alone")[0]["lag_blocked"] == 4)
            (worst,) = readers(broker, "alone", sort="-lag_blocked", limit=1)
            assert (worst["partition"], worst["lag"]) == (0, 0)
        assert len(readers(broker, "alone", topic="read")) == 3
        assert readers(broker, "alone", topic="other") == []
        (connection,) = {each["connection"] for each in found}
        (row,) = [each for each in rows(broker, "alone") if each["connection"] == connection]
        assert row["partitions"] == 3


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_how_a_member_reads(broker, isolation):
    client = f"member-{isolation}"
    with reader_of(broker, client, f"a-{isolation}", isolation) as consumer:
        assert consumer.poll(60) is not None
        (member,) = fetch(broker, "groups", f"a-{isolation}")["members"]
        assert (member["client"], member["isolation_seen"]) == (client, isolation)
        assert {each["in_group"] for each in readers(broker, client)} == {True}
        assert readers(broker, client, without_group="true") == []


def test_two_that_share_a_client_id(broker):
    """The row belongs to the id and the host, and the page states that."""
    write(broker, "read", 10)
    python = KafkaConsumer(
        "read",
        bootstrap_servers=broker.bootstrap_servers,
        client_id="shared",
        group_id="shared-group",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    other = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        client_id="shared",
        group_id=None,
        isolation_level="read_uncommitted",
        auto_offset_reset="earliest",
    )
    try:
        other.assign([PythonPartition("read", 0)])
        assert python.poll(60_000, max_records=1)
        assert other.poll(60_000, max_records=1)
        (member,) = fetch(broker, "groups", "shared-group")["members"]
        assert member["isolation_seen"] == "both"
        seen = {each["isolation_seen"] for each in readers(broker, "shared")}
        assert seen == {"read_committed", "read_uncommitted"}
    finally:
        python.close()
        other.close()


def test_a_large_fetch_without_a_session_is_not_kept():
    seen = ClientSeen()
    asked = [object()] * (KEPT_MOST + 1)
    seen.fetches(1, FetchPlan(asked, None, incremental=False))
    assert (seen.isolation, seen.fetched) == (1, None)
    seen.fetches(0, FetchPlan(asked[1:], None, incremental=False))
    assert (seen.isolation, seen.fetched) == (0, asked[1:])


def test_a_connection_that_is_closed_is_not_listed(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "goes"})
    producer.list_topics(timeout=30)
    wait_until(lambda: rows(broker, "goes"))
    del producer
    wait_until(lambda: not rows(broker, "goes"))
