"""Writers and readers of a topic, with third-party clients."""

from __future__ import annotations

import pytest

from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import Producer, commit, delete_topic, open_transaction, write


@pytest.fixture(scope="module")
def broker():
    config = {**HTTP, "transaction.state.log.num.partitions": "3"}
    with Broker(config=config) as running:
        running.port = running.address[1]
        yield running


def producers(broker, topic, **query):
    return fetch(broker, "topics", topic, "producers", **query)["items"]


def test_producers_of_a_topic_are_listed(broker, monkeypatch):
    broker.create_topic("written", partitions=2)
    assert producers(broker, "written") == []
    write(broker, "written", 3)  # Without an id there is nothing to remember.
    assert producers(broker, "written") == []
    with Producer(broker, is_idempotent=True) as producer:
        producer.send("written", *"0123")
    (idempotent,) = producers(broker, "written")
    assert idempotent["transactional_id"] is None
    assert idempotent["transaction_start_offset"] is None
    assert (idempotent["last_sequence"], idempotent["last_offset"]) == (3, 6)
    with open_transaction(broker, "shop/1", "written", 5):
        newest, before = producers(broker, "written")
        assert (newest["transactional_id"], newest["transaction_start_offset"]) == ("shop/1", 7)
        assert before == idempotent
        assert producers(broker, "written", open="true") == [newest]
        assert producers(broker, "written", producer_id=newest["producer_id"]) == [newest]
        assert producers(broker, "written", sort="partition") == [before, newest]
        same_as_kafka_says(broker, monkeypatch, newest)
    # The transaction has ended, and its producer still has its name.
    ended = producers(broker, "written")[0]
    assert (ended["transactional_id"], ended["transaction_start_offset"]) == ("shop/1", None)
    assert producers(broker, "written", open="true") == []


def same_as_kafka_says(broker, monkeypatch, row):
    """Compare with DescribeProducers, as the command line prints it."""
    shell = Shell(monkeypatch, broker.bootstrap_servers)
    (found,) = shell("transactions", "list-blocking", "-t", "written", "--format", "json").json
    (transaction,) = found["transactions"]
    assert str(transaction["producer_id"]) == row["producer_id"]
    assert transaction["producer_epoch"] == row["producer_epoch"]
    assert transaction["start_offset"] == row["transaction_start_offset"]


def test_producers_are_listed_page_by_page(broker):
    broker.create_topic("many", partitions=3)
    for partition in range(3):
        for _ in range(2):
            with Producer(broker, is_idempotent=True) as producer:
                producer.send("many", "x", partition=partition)
    for sort in ("partition", "-last_write_ms"):
        places, after = [], {}
        while True:
            page = fetch(broker, "topics", "many", "producers", sort=sort, limit=4, **after)
            places += [(each["partition"], each["producer_id"]) for each in page["items"]]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert len(places) == len(set(places)) == 6


def test_which_groups_read(broker):
    broker.create_topic("read", partitions=2)
    broker.create_topic("else")
    assert fetch(broker, "topics", "read", "groups")["items"] == []
    write(broker, "read", 10)
    commit(broker, "a/b", "read", 4)
    commit(broker, "behind", "read", 0)
    commit(broker, "behind", "else", 0)
    commit(broker, "elsewhere", "else", 0)
    with open_transaction(broker, "shop-2", "read", 5):
        page = fetch(broker, "topics", "read", "groups", sort="-lag")
        assert [each["group"] for each in page["items"]] == ["behind", "a/b"]
        lags = [(each["lag"], each["lag_readable"], each["lag_blocked"]) for each in page["items"]]
        assert lags == [(15, 10, 5), (11, 6, 5)]
    (found,) = fetch(broker, "topics", "read", "groups", filter="A/")["items"]
    assert (found["group"], found["partitions"], found["state"]) == ("a/b", 1, "Empty")


def test_offsets_of_a_topic_that_was_deleted_are_of_another(broker):
    broker.create_topic("again")
    commit(broker, "old", "again", 0)
    assert fetch(broker, "topics", "again", "groups")["items"]
    delete_topic(broker, "again")
    broker.create_topic("again")
    assert fetch(broker, "topics", "again", "groups")["items"] == []
